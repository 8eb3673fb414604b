//! Conservation of elements and charge in any step.
use super::super::species::{DI, DP, H2, H2P, HD, HEI, HEII, HEIII, HI, HII, HM};
use super::sample::cells;
use super::*;

/// Nuclei of hydrogen, helium and deuterium.
fn elements(s: &Abundances<f64>) -> [f64; 3] {
    let y = &s.y;
    [
        y[HI] + y[HII] + y[HM] + 2.0 * (y[H2] + y[H2P]) + y[HD],
        y[HEI] + y[HEII] + y[HEIII],
        y[DI] + y[DP] + y[HD],
    ]
}

fn kept<R: Real, const S: usize, const N: usize>(species: usize, within: f64) {
    let p = network(species, 1e-2, 1e-8);
    let precise = p.precise::<R>();
    for cell in cells::<S>(&p, 300) {
        let (end, _) = through::<R, S, N>(&precise, cell.density, to(&cell.state), cell.dt);
        let [h, he, d] = elements(&double(&end));
        assert!(
            (h - 1.0).abs() < within && (he / HELIUM - 1.0).abs() < within,
            "{h} {he}"
        );
        assert!(S < 7 || (d / DEUTERIUM - 1.0).abs() < within, "{d}");
        assert!(end.y.iter().all(|y| *y >= R::lit(0.0)));
    }
}

#[test]
fn elements_are_kept_to_rounding() {
    kept::<f64, 3, 4>(6, 2e-15);
    kept::<f64, 6, 7>(9, 2e-15);
    kept::<f64, 8, 9>(12, 2e-15);
    kept::<f32, 3, 4>(6, 4e-7);
    kept::<f32, 6, 7>(9, 4e-7);
    kept::<f32, 8, 9>(12, 4e-7);
}

/// Checks that residual H in nearly ionised gas, and every relevant abundance, have the digits of double precision.
fn single_is_as_good<const S: usize, const N: usize>(species: usize) {
    let p = network(species, 1e-2, 1e-8);
    let single = p.precise::<f32>();
    let mut apart = Vec::new();
    for cell in cells::<S>(&p, 400) {
        let (exact, _) = through::<f64, S, N>(&p, cell.density, cell.state, cell.dt);
        let (found, _) = through::<f32, S, N>(&single, cell.density, to(&cell.state), cell.dt);
        let small = exact.y[HI] < 1e-3;
        apart.extend(small.then(|| (double(&found).y[HI] / exact.y[HI] - 1.0).abs()));
    }
    apart.sort_by(f64::total_cmp);
    let (median, most) = (apart[apart.len() / 2], apart[apart.len() * 9 / 10]);
    println!(
        "{species} species: HI of single precision {median:.1e} (median) {most:.1e} (90%) of {}",
        apart.len()
    );
    assert!(median < 1e-4 && most < 1e-2);
}

#[test]
fn little_hydrogen_keeps_its_digits_in_single_precision() {
    single_is_as_good::<3, 4>(6);
    single_is_as_good::<6, 7>(9);
}
