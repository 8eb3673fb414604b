//! Compares the Jacobian with differences.
use super::super::species::{DI, HEI, HI, OF_DI, OF_HEI, OF_HI, SPECIES};
use super::super::{H2Cooling, derivatives};
use super::sample::Numbers;
use super::*;

/// Returns a state without abundances too small for differences.
fn state<const S: usize>(r: &mut Numbers) -> Abundances<f64> {
    let mut s = Abundances {
        y: [0.0; 11],
        energy: r.decades(3.0, 7.5),
    };
    for i in 0..S {
        s.y[i] = 0.005 + 0.02 * r.next();
    }
    (s.y[HI], s.y[HEI], s.y[DI]) = (0.8, 0.07, if S > 6 { 0.02 } else { 0.0 });
    s
}

/// Returns the state with another value of an unknown, and its consequences.
fn shifted<const S: usize>(s: &Abundances<f64>, unknown: usize, by: f64) -> Abundances<f64> {
    let mut v = *s;
    if unknown == S {
        v.energy += by;
        return v;
    }
    v.y[unknown] += by;
    v.y[HI] += OF_HI[unknown] * by;
    v.y[HEI] += OF_HEI[unknown] * by;
    v.y[DI] += OF_DI[unknown] * by;
    v
}

/// Returns the largest difference relative to the sum of its row.
fn worst<const S: usize, const N: usize>(species: usize, h2_cooling: H2Cooling) -> f64 {
    let mut r = Numbers(5);
    let radiation = Background {
        photo: [1e-13, 5e-14, 3e-15, 1e-12, 2e-13, 4e-13],
        heat_ev: [4.0, 7.0, 20.0],
        redshift: Some(10.0),
    };
    let choices = RateChoices {
        h2_cooling,
        ..RateChoices::default()
    };
    let p = Network::new(
        species,
        choices,
        [HELIUM, DEUTERIUM],
        &radiation,
        Tolerances::default(),
    );
    let mut worst = 0.0f64;
    for _ in 0..100 {
        let (s, cell) = (
            state::<S>(&mut r),
            CellConditions {
                density: r.decades(-2.0, 4.0),
                heating: 3.0,
                dust: 0.0,
            },
        );
        let (mut f, mut j) = ([0.0; N], [[0.0; N]; N]);
        derivatives::<f64, S, N, 1>(&p, &cell, &s, false, &mut f, &mut j);
        let size = |k: usize| if k == S { s.energy } else { 0.02 };
        let rows: Vec<f64> = j
            .iter()
            .map(|row| (0..N).map(|k| row[k].abs() * size(k)).sum())
            .collect();
        for k in 0..N {
            let h = 1e-5 * size(k);
            let (mut up, mut down, mut none) = ([0.0; N], [0.0; N], [[0.0; N]; N]);
            derivatives::<f64, S, N, 0>(
                &p,
                &cell,
                &shifted::<S>(&s, k, h),
                false,
                &mut up,
                &mut none,
            );
            derivatives::<f64, S, N, 0>(
                &p,
                &cell,
                &shifted::<S>(&s, k, -h),
                false,
                &mut down,
                &mut none,
            );
            for i in 0..N {
                let difference = (up[i] - down[i]) / (2.0 * h) - j[i][k];
                worst = worst.max(difference.abs() * size(k) / rows[i]);
            }
        }
    }
    assert_eq!(SPECIES, 11);
    worst
}

#[test]
fn jacobian_is_that_of_the_slopes() {
    // differences across a node of the table include the jump of the second derivative, 1e-5 of the slope
    for found in [
        worst::<3, 4>(6, H2Cooling::default()),
        worst::<6, 7>(9, H2Cooling::default()),
        worst::<6, 7>(9, H2Cooling::GloverAbel08),
        worst::<8, 9>(12, H2Cooling::GloverAbel08),
    ] {
        println!("Jacobian: {found:.1e}");
        assert!(found < 1e-6);
    }
}
