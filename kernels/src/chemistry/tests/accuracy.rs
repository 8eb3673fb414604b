//! Compares histories with converged ones and with SciPy's BDF at 1e-10 on the fits themselves (no tables).
use super::super::species::{H2, HI, HII};
use super::*;

/// Results of a network: largest errors of temperature, electrons and H2 at a tolerance, and number of sub-steps.
struct Found {
    t: f64,
    e: f64,
    h2: f64,
    substeps: i32,
}

fn compare<R: Real, const S: usize, const N: usize>(
    p: &Network<f64>,
    density: f64,
    start: &Abundances<f64>,
    end: f64,
    exact: &[Abundances<f64>],
) -> Found {
    let (found, substeps) = history::<R, S, N>(p, density, start, end);
    Found {
        t: largest(exact, &found, 0.0, kelvin::<S>),
        e: largest(exact, &found, 0.0, charge::<S>),
        h2: largest(exact, &found, 1e-9, |s| s.y[H2]),
        substeps,
    }
}

#[test]
fn six_species_cool_from_a_million_kelvin() {
    let tight = network(6, 1e-6, 1e-12);
    let start = at::<3>(&tight, 1.0, 1e6);
    let (exact, _) = history::<f64, 3, 4>(&tight, 1.0, &start, 30.0);
    let last = exact[39];
    assert!(
        (kelvin::<3>(&last) / 6716.0 - 1.0).abs() < 1e-3,
        "{}",
        kelvin::<3>(&last)
    );
    assert!(
        (charge::<3>(&last) / 2.017e-3 - 1.0).abs() < 1e-3,
        "{}",
        charge::<3>(&last)
    );
    for (tolerance, t, e, substeps) in [(1e-2, 5e-4, 5e-4, 150), (1e-3, 1e-4, 2e-4, 260)] {
        let p = with_tolerance(&tight, tolerance, 1e-8);
        for found in [
            compare::<f64, 3, 4>(&p, 1.0, &start, 30.0, &exact),
            compare::<f32, 3, 4>(&p, 1.0, &start, 30.0, &exact),
        ] {
            let Found {
                t: dt,
                e: de,
                substeps: n,
                ..
            } = found;
            println!("6 species {tolerance}: T {dt:.1e} electrons {de:.1e} sub-steps {n}");
            assert!(dt < t && de < e && n <= substeps);
        }
    }
}

#[test]
fn nine_species_cool_from_a_million_kelvin() {
    let tight = network(9, 1e-6, 1e-13);
    let start = at::<6>(&tight, 1.0, 1e6);
    let (exact, _) = history::<f64, 6, 7>(&tight, 1.0, &start, 100.0);
    let last = exact[39];
    println!(
        "ends at T {} H2 {:e} e {:e}",
        kelvin::<6>(&last),
        last.y[H2],
        charge::<6>(&last)
    );
    assert!((kelvin::<6>(&last) - 192.3).abs() < 0.2);
    assert!((last.y[H2] / 2.596e-3 - 1.0).abs() < 2e-3);
    assert!((charge::<6>(&last) / 7.321e-5 - 1.0).abs() < 2e-3);
    for (tolerance, t, e, h2) in [(1e-2, 1.5e-3, 2e-3, 1e-2), (1e-3, 3e-4, 5e-4, 1e-3)] {
        let p = with_tolerance(&tight, tolerance, 1e-8);
        for found in [
            compare::<f64, 6, 7>(&p, 1.0, &start, 100.0, &exact),
            compare::<f32, 6, 7>(&p, 1.0, &start, 100.0, &exact),
        ] {
            let Found {
                t: dt,
                e: de,
                h2: dh,
                substeps: n,
            } = found;
            println!("9 species {tolerance}: T {dt:.1e} e {de:.1e} H2 {dh:.1e} sub-steps {n}");
            assert!(dt < t && de < e && dh < h2 && n < 300);
        }
    }
}

/// Returns the states of the steps of a one-zone free fall from n = 1 and 200 K to 1e8, in density steps of 2%, including the work of
/// compression.
fn free_fall<R: Real, const S: usize, const N: usize>(
    p: &Network<f64>,
) -> Vec<(f64, Abundances<f64>)> {
    let p = p.precise::<R>();
    let mut s = Abundances {
        y: [0.0; 11],
        energy: 0.0,
    };
    (s.y[HII], s.y[H2]) = (1e-4, 1e-6);
    (s.y[HI], s.y[super::super::species::HEI]) = (1.0 - 1e-4 - 2e-6, HELIUM);
    s.y[super::super::species::DI] = if S > 6 { DEUTERIUM } else { 0.0 };
    s.energy = 200.0 * heat_capacity::<f64, S>(&s, charge::<S>(&s));
    let (mut s, mut n, mut states) = (to::<R>(&s), 1.0, Vec::new());
    while n < 1e8 {
        // sqrt(3 pi / (32 G rho)) in Myr
        let rho = n * 1.6726e-24 / 0.76;
        let free_fall = (3.0 * std::f64::consts::PI / (32.0 * 6.674e-8 * rho)).sqrt() / 3.15576e13;
        n *= 1.02;
        let now = double(&s);
        let capacity = heat_capacity::<f64, S>(&now, charge::<S>(&now));
        let particles = capacity / 1.5 - (2.5 / 1.5 - 1.0) * now.y[H2];
        let work = nestar_device::math::pow(1.02, particles / capacity);
        s.energy *= R::lit(work);
        s = through::<R, S, N>(&p, n, s, 0.02 * free_fall).0;
        states.push((n, double(&s)));
    }
    states
}

#[test]
fn nine_species_in_free_fall() {
    let tight = network(9, 1e-6, 1e-14);
    let exact = free_fall::<f64, 6, 7>(&tight);
    let near = |n: f64| {
        exact
            .iter()
            .find(|(at, _)| *at >= n)
            .unwrap_or(&exact[exact.len() - 1])
            .1
    };
    for (n, t) in [(1e3, 235.8), (1e6, 481.8), (9.9e7, 763.8)] {
        println!(
            "free fall n {n:e}: T {} H2 {:e}",
            kelvin::<6>(&near(n)),
            near(n).y[H2]
        );
        assert!(
            (kelvin::<6>(&near(n)) / t - 1.0).abs() < 2e-3,
            "{}",
            kelvin::<6>(&near(n))
        );
    }
    assert!((near(9.9e7).y[H2] / 1.070e-3 - 1.0).abs() < 3e-3);
    let all = |states: &[(f64, Abundances<f64>)]| states.iter().map(|s| s.1).collect::<Vec<_>>();
    let exact = all(&exact);
    let p = with_tolerance(&tight, 1e-2, 1e-8);
    for found in [
        all(&free_fall::<f64, 6, 7>(&p)),
        all(&free_fall::<f32, 6, 7>(&p)),
    ] {
        let t = largest(&exact, &found, 0.0, kelvin::<6>);
        let h2 = largest(&exact, &found, 0.0, |s| s.y[H2]);
        let e = largest(&exact, &found, 0.0, charge::<6>);
        println!("free fall: T {t:.1e} H2 {h2:.1e} e {e:.1e}");
        assert!(t < 1e-4 && h2 < 1e-4);
    }
}
