//! Tables against the fits, fits against published numbers, equilibrium.
use super::super::rates::{
    self, BOLTZMANN, COOL_HEII, COOL_HEIII, COOL_HI, COOL_HII, H2_BY_H, H2_LTE, HD_BY_H, HD_LTE,
    K1, K2, K3, K4, K5, K6, K7, K8, K9, K11, K12, K14, K15, K16, K17, K18, K19, K22, K50, K51, K54,
    K57, K58, MYR, Recombination, Temperature, ThreeBody, columns,
};
use super::super::species::{HEI, HEII, HEIII, HI, HII};
use super::super::table::{interpolate_column, table_position};
use super::*;
use nestar_device::Table;

fn fit(column: usize, t: f64) -> f64 {
    rates::value(column, Temperature::at(t), RateChoices::default())
}

/// Returns the table's value at a temperature.
fn tabled<R: Real>(p: &Network<f64>, column: usize, t: f64) -> f64 {
    let table: Table<R> = p.rates.precise();
    interpolate_column(&table, &table_position(R::lit(t), p.columns), column)
        .0
        .to_f64()
}

#[test]
fn tables_follow_the_fits() {
    let p = network(12, 1e-2, 1e-8);
    let mut errors = Vec::new();
    for column in 0..columns(12) {
        let mut worst = 0.0f64;
        let largest = (0..60).fold(0.0f64, |largest, k| {
            largest.max(
                fit(
                    column,
                    nestar_device::math::pow(10.0, 1.0 + 7.9 * f64::from(k) / 60.0),
                )
                .abs(),
            )
        });
        for k in 0..2000 {
            let t = nestar_device::math::pow(10.0, 1.0 + 7.9 * f64::from(k) / 2000.0);
            let (exact, found) = (fit(column, t), tabled::<f64>(&p, column, t));
            let single = tabled::<f32>(&p, column, t);
            assert!(
                (single - found).abs() <= 3e-5 * found.abs().max(exact.abs()) + 1e-30,
                "{column} at {t}"
            );
            if exact.abs() > 1e-6 * largest {
                worst = worst.max((found / exact - 1.0).abs());
            }
        }
        errors.push(worst);
    }
    let mut sorted = errors.clone();
    sorted.sort_by(f64::total_cmp);
    println!(
        "tables: median of worst errors {:.1e}; {:?}",
        sorted[19], errors
    );
    assert!(sorted[19] < 1e-3);
    assert!(errors[K2] < 1e-6 && errors[COOL_HII] < 1e-6);
}

/// Values at single temperatures, computed from the publications' formulas by another program, in cgs.
#[test]
fn fits_have_the_published_values() {
    let cgs = |column, t| fit(column, t) / MYR;
    for (column, t, value) in [
        (K1, 1e5, 3.82461e-9),
        (K2, 1e4, 4.29695e-13),
        (K3, 1e6, 1.85670e-8),
        (K4, 1e5, 7.04227e-13),
        (K5, 1e6, 2.20612e-9),
        (K6, 1e4, 2.22561e-12),
        (K7, 1e3, 8.45781e-16),
        (K8, 300.0, 3.81436e-9),
        (K9, 1e3, 4.98425e-18),
        (K11, 1e4, 2.90798e-11),
        (K12, 1e5, 5.69354e-9),
        (K14, 1e4, 1.04555e-8),
        (K15, 1e4, 1.19473e-9),
        (K16, 1e3, 7.96894e-8),
        (K17, 1e3, 6.30957e-10),
        (K18, 1e4, 1.20385e-9),
        (K19, 1e4, 5e-8),
        (K22, 1e3, 3.12242e-32),
        (K57, 1e4, 1.06173e-19),
        (K58, 1e4, 3.88930e-19),
        (K50, 1e3, 3.09592e-9),
        (K51, 1e3, 3.27769e-9),
        (K54, 1e3, 1.94492e-12),
    ] {
        let found = cgs(column, t);
        assert!(
            (found / value - 1.0).abs() < 1e-4,
            "column {column} at {t}: {found:e}"
        );
    }
    for (column, t, value) in [
        (COOL_HI, 1e6, 1.60078e-19 + 6.59469e-19),
        (
            COOL_HEII,
            1e5,
            2.51476e-21 + 3.93283e-22 + 4.09773e-23 + 6.38883e-25,
        ),
        (COOL_HII, 1e4, 4.59030e-25 + 1.80266e-25),
        (COOL_HEIII, 1e4, 1.00580e-23 + 4.0 * 1.80266e-25),
        (H2_BY_H, 1e3, 5.76501e-25),
        (H2_LTE, 1e3, 2.77176e-21),
        (HD_BY_H, 1e3, 6.67145e-24),
        (HD_LTE, 1e3, 6.40854e-19),
    ] {
        let found = fit(column, t) * BOLTZMANN / MYR;
        assert!(
            (found / value - 1.0).abs() < 1e-4,
            "column {column} at {t}: {found:e}"
        );
    }
    let case_b = RateChoices {
        recombination: Recombination::CaseB,
        ..RateChoices::default()
    };
    let b = rates::value(K2, Temperature::at(1e4), case_b) / MYR;
    assert!((b / 2.59e-13 - 1.0).abs() < 0.01, "{b:e}");
    for (choice, value) in [
        (ThreeBody::PallaSalpeterStahler83, 5.5e-32),
        (ThreeBody::AbelBryanNorman02, 3.9e-33),
        (ThreeBody::FlowerHarris07, 3.453e-31),
        (ThreeBody::Forrey13, 1.699e-32),
    ] {
        let three_body = RateChoices {
            three_body: choice,
            ..RateChoices::default()
        };
        let found = rates::value(K22, Temperature::at(1e3), three_body) / MYR;
        assert!((found / value - 1.0).abs() < 2e-3, "{choice:?} {found:e}");
    }
}

#[test]
fn fits_that_jump_are_joined_over_one_interval() {
    let p = network(9, 1e-2, 1e-8);
    for (column, jump) in [(K9, 30.0), (K17, 1e4), (K18, 617.0)] {
        let (below, above) = (fit(column, jump * 0.9), fit(column, jump * 1.1));
        let steps = (0..200).map(|k| tabled::<f64>(&p, column, jump * (0.9 + f64::from(k) * 1e-3)));
        let (low, high) = (below.min(above) * 0.9, below.max(above) * 1.1);
        for found in steps {
            assert!(
                found > low && found < high,
                "column {column}: {found:e} beyond {low:e} {high:e}"
            );
        }
        for t in [jump * 0.93, jump * 1.07] {
            assert!((tabled::<f64>(&p, column, t) / fit(column, t) - 1.0).abs() < 1e-4);
        }
    }
}

/// Rates 1 to 6, 57 and 58 balance, by the fits themselves.
#[test]
fn ionisation_in_equilibrium() {
    let p = network(6, 1e-2, 1e-8);
    for t in [8e3, 1.5e4, 3e4, 6e4, 1e5, 1e6] {
        let s = at::<3>(&p, 1.0, t);
        assert!((kelvin::<3>(&s) / t - 1.0).abs() < 1e-9);
        let k = |n: usize| fit(n, t);
        let by_atoms = (k(K57) * s.y[HI] + k(K58) * s.y[HEI]) / charge::<3>(&s);
        let ratios = [
            s.y[HII] / s.y[HI] / ((k(0) + by_atoms) / k(1)),
            s.y[HEII] / s.y[HEI] / (k(2) / k(3)),
            s.y[HEIII] / s.y[HEII] / (k(4) / k(5)),
        ];
        for (n, ratio) in ratios.iter().enumerate() {
            // no ratio if one of both is at the smallest abundance
            let there = s.y[[HII, HEII, HEIII][n]] > 1e-10 && s.y[[HI, HEI, HEII][n]] > 1e-10;
            assert!(!there || (ratio - 1.0).abs() < 1e-4, "{n} at {t}: {ratio}");
        }
    }
}

/// Photo-ionisation: a network relaxes to the equilibrium that is computed directly.
#[test]
fn ionisation_by_photons_relaxes_to_equilibrium() {
    let radiation = Background {
        photo: [1e-12, 6e-13, 3e-14, 0.0, 0.0, 0.0],
        ..Background::default()
    };
    let precision = Tolerances {
        relative: 1e-5,
        absolute: 1e-12,
        floor_k: 1e4,
    };
    let p = Network::new(
        6,
        RateChoices::default(),
        [HELIUM, 0.0],
        &radiation,
        precision,
    );
    let start = at::<3>(&p, 0.01, 1e4);
    // gas at the floor keeps its temperature while ions settle
    let mut other = start;
    (other.y[HII], other.y[HI]) = (0.5, 0.5);
    (other.y[HEII], other.y[HEI], other.y[HEIII]) = (0.04, 0.02, HELIUM - 0.06);
    other.energy = 1e4 * heat_capacity::<f64, 3>(&other, charge::<3>(&other));
    let (end, _) = through::<f64, 3, 4>(&p, 0.01, other, 1e5);
    for i in [HI, HII, HEI, HEII, HEIII] {
        assert!(
            (end.y[i] / start.y[i] - 1.0).abs() < 1e-3,
            "{i}: {} {}",
            end.y[i],
            start.y[i]
        );
    }
}
