//! Tests of the background against closed solutions.

use super::{Background, DensityParameters};
use nestar_device::math::sqrt;

const EDS: DensityParameters = DensityParameters {
    matter: 1.0,
    dark_energy: 0.0,
    radiation: 0.0,
    w0: -1.0,
    wa: 0.0,
};
const CONCORDANCE: DensityParameters = DensityParameters {
    matter: 0.3,
    dark_energy: 0.7,
    ..EDS
};

fn table(parameters: DensityParameters) -> Background {
    Background::new(parameters, 0.01, 1.0).expect("an expanding universe")
}

fn close(found: f64, wanted: f64, tolerance: f64, what: &str) {
    let error = (found / wanted - 1.0).abs();
    assert!(
        error < tolerance,
        "{what}: {found:e} instead of {wanted:e}, error {error:e}"
    );
}

/// Scale factors within a run from 0.01 to 1, between and on entries of the table.
fn scale_factors() -> impl Iterator<Item = f64> {
    (1..=100).map(|n| f64::from(n) / 100.0)
}

#[test]
fn the_critical_density_is_that_of_a_flat_universe() {
    let (eds, concordance) = (table(EDS), table(CONCORDANCE));
    for a in scale_factors() {
        close(eds.critical_density(a), 1.0, 1e-14, "critical density");
        // matter has 1 of the critical density, and dark energy the rest
        let found = concordance.critical_density(a);
        close(
            found,
            1.0 + 0.7 / 0.3 * a.powi(3),
            1e-13,
            "critical density",
        );
    }
}

#[test]
fn an_einstein_de_sitter_universe_has_its_powers() {
    let table = table(EDS);
    for a in scale_factors().skip(1) {
        let tau = 2.0 * (10.0 - 1.0 / sqrt(a));
        close(table.time_of(a), tau, 1e-12, "comoving time");
        let [found, age] = table.scale_factor_and_age(tau);
        close(found, a, 1e-12, "scale factor");
        close(age, 2.0 / 3.0 * a * sqrt(a), 1e-11, "age");
        close(table.growth(a), a, 1e-11, "growing mode");
        close(table.growth_rate(a), sqrt(a), 1e-11, "growth rate");
        close(table.hubble(a), 1.0 / (a * sqrt(a)), 1e-14, "Hubble rate");
        close(
            table.second_growth(a),
            -3.0 / 7.0,
            1e-10,
            "second-order growth",
        );
        close(
            table.second_growth_rate(a),
            2.0 * sqrt(a),
            1e-10,
            "second-order growth rate",
        );
    }
    let [first, _] = table.scale_factor_and_age(0.0);
    close(first, 0.01, 1e-15, "scale factor at the start");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the closed solution of a test")]
fn a_flat_universe_with_dark_energy_has_its_age_and_growth() {
    let table = table(CONCORDANCE);
    for a in scale_factors() {
        let [found, age] = table.scale_factor_and_age(table.time_of(a));
        close(found, a, 1e-12, "scale factor");
        let root = (0.7_f64 / 0.3).sqrt() * a.powf(1.5);
        close(
            age,
            2.0 / (3.0 * 0.7_f64.sqrt()) * root.asinh(),
            1e-11,
            "age",
        );
    }
    close(table.growth(1.0), 0.778_981_0, 1e-7, "growing mode today");
    // integrated for both modes themselves with 40000 steps
    let second = [table.second_growth(1.0), table.second_growth_rate(1.0)];
    close(second[0], -0.432_270_241_193, 1e-10, "second order today");
    // between entries of the table, rates have the error of cubic polynomials
    close(second[1], 1.040_447_831_419, 1e-8, "its rate today");
}

/// The fit of Bouchet et al. (1995, A&A 296, 575) for flat universes, -3/7 Omega^(-1/143), is good to 0.02%.
#[test]
#[allow(clippy::disallowed_methods, reason = "the fit of a test")]
fn the_second_order_grows_as_the_published_fit() {
    let table = table(CONCORDANCE);
    for a in scale_factors() {
        let omega = 0.3 / (0.3 + 0.7 * a * a * a);
        let fit = -3.0 / 7.0 * omega.powf(-1.0 / 143.0);
        close(table.second_growth(a), fit, 2e-4, "second-order growth");
    }
}

/// A run that ends early has the same growth until today as one that ends today.
#[test]
fn the_table_contains_today() {
    let early = Background::new(CONCORDANCE, 0.01, 0.1).expect("an expanding universe");
    let whole = table(CONCORDANCE);
    for a in [0.05, 0.1, 0.4, 1.0] {
        assert_eq!(early.growth(a), whole.growth(a), "{a}");
        assert_eq!(early.time_of(a), whole.time_of(a), "{a}");
    }
}

/// The cycloid of a closed universe of matter, until shortly before turnaround, and the refusal to go beyond it.
#[test]
#[allow(clippy::disallowed_methods, reason = "the closed solution of a test")]
fn a_closed_universe_is_a_cycloid() {
    let closed = DensityParameters { matter: 2.0, ..EDS };
    let table = table(closed);
    for a in scale_factors() {
        let eta = (1.0 - a).acos();
        let [_, age] = table.scale_factor_and_age(table.time_of(a));
        let exact = eta - eta.sin();
        // the right-hand side loses digits by cancellation
        close(age, exact, 1e-9, "age");
    }
    let turn = Background::new(closed, 0.01, 2.5).expect_err("turnaround at a = 2");
    assert!((1.95..2.05).contains(&turn), "{turn}");
}

/// Dark energy with a changing equation of state, against a sum over many small steps.
#[test]
fn changing_dark_energy_agrees_with_a_fine_sum() {
    let parameters = DensityParameters {
        w0: -0.9,
        wa: 0.3,
        radiation: 1e-4,
        ..CONCORDANCE
    };
    let table = table(parameters);
    let (steps, a) = (400_000, 0.7);
    let width = (a - 0.01) / f64::from(steps);
    let per_tau = |a: f64| 1.0 / (a * a * a * sqrt(parameters.hubble_squared(a)));
    // Simpson's rule
    let sum: f64 = (0..steps)
        .map(|n| {
            let x = 0.01 + width * f64::from(n);
            width / 6.0 * (per_tau(x) + 4.0 * per_tau(x + 0.5 * width) + per_tau(x + width))
        })
        .sum();
    close(table.time_of(a), sum, 1e-11, "comoving time");
    close(table.scale_factor(sum), a, 1e-11, "scale factor");
}
