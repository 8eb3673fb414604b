//! Burning, a potential, a scenario and an atmosphere.

use super::{atmosphere, burning, collision, potential, stepper};
use nestar::prelude::*;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;

#[test]
fn mass_fractions_sum_to_one_and_reaction_heat_goes_to_the_gas() {
    let text = include_str!("../../../../scenarios/programs/burning.toml");
    let periodic = ["domain.cells=[32,32,8]", "domain.boundary=periodic"];
    let mut run = stepper(burning::program, text, &periodic);
    let heat = |u: &[f64]| u[4] + 3.0 * u[5] + 1.0 * (u[5] + u[6]);
    let before = run.0.with(|sim| totals(sim));
    run.steps(20);
    let after = run.0.with(|sim| totals(sim));
    assert!(after[5] < 0.99 * before[5], "nothing burns");
    let drift = heat(&after) / heat(&before) - 1.0;
    assert!(drift.abs() < 1e-12, "{drift:e}");
    run.state().each_leaf_cell(|_, _, _, u| {
        let shares = [5, 6, 7].map(|c| u[c] / u[0]);
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{shares:?}");
        assert!(
            shares.iter().all(|x| (-1e-12..1.0 + 1e-12).contains(x)),
            "{shares:?}"
        );
    });
}

/// The sweeps come to the solution of the discrete equation.
#[test]
fn relaxation_sweeps_solve_for_the_potential() {
    let text = include_str!("../../../../scenarios/programs/potential.toml");
    let settings = [
        "domain.cells=[16,8,8]",
        "domain.right_edge=[1,0.5,0.5]",
        "sweeps.strength=1e-9",
    ];
    let mut run = stepper(
        potential::program,
        text,
        &[&settings[..], &["sweeps.sweeps=600"]].concat(),
    );
    run.steps(1);
    let width: f64 = 1.0 / 16.0;
    let (half, phase) = (std::f64::consts::PI * width, std::f64::consts::TAU);
    // the cell means of the density, over the eigenvalue of the discrete Laplacian
    let eigenvalue = (2.0 * half.sin() / width).powi(2);
    let amplitude = -1e-9 * 0.1 / eigenvalue;
    run.state().each_leaf_cell(|_, x, _, u| {
        let exact = amplitude * (phase * x[0]).sin();
        assert!(
            (u[5] - exact).abs() < 1e-6 * amplitude.abs(),
            "{} {exact} at {x:?}",
            u[5]
        );
    });
}

#[test]
fn a_user_scenario_reports_invalid_decks_with_their_line() {
    let text = include_str!("../../../../scenarios/programs/collision.toml");
    let build = |setting: &str| {
        let sim = collision::program(App::default()).simulation(deck(text, &[setting]));
        sim.map(|_| ()).expect_err("refused").to_string()
    };
    let bump = build("collision.bump=3");
    assert!(
        bump.contains("the bump must not exceed half the length of the box, 2"),
        "{bump}"
    );
    let pressure = build("collision.pressure=0");
    assert!(
        pressure.contains("`collision.pressure` must be above 0"),
        "{pressure}"
    );
    let stock = App::default()
        .simulation(deck(text, &[]))
        .map(|_| ())
        .expect_err("refused");
    assert!(stock.to_string().contains("\"collision\""), "{stock}");
}

/// Without a boundary that continues it the gas falls out; with one its own truncation error is all that moves it.
#[test]
fn an_atmosphere_at_rest_stays_below_a_thousandth_of_the_speed_of_sound() {
    let text = include_str!("../../../../scenarios/programs/atmosphere.toml");
    let fastest = |settings: &[&str]| {
        let mut run = stepper(atmosphere::program, text, settings);
        let mut most = 0.0f64;
        run.finish().state().each_leaf_cell(|_, _, _, u| {
            let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
            let sound = (1.4 * 0.4 * (u[4] - kinetic) / u[0]).sqrt();
            most = most.max((2.0 * kinetic / u[0]).sqrt() / sound);
        });
        most
    };
    let rest = fastest(&[]);
    assert!(rest < 3e-4, "{rest:e}");
    let open = "domain.boundary={ x = \"periodic\", y = \"periodic\", z = \"outflow\" }";
    let falling = fastest(&[
        open,
        "domain.cells=[8,8,16]",
        "domain.right_edge=[0.5,0.5,1.0]",
    ]);
    assert!(falling > 1e-2, "{falling:e}");
}
