//! Cooling and conduction: energy, orders and exact solutions.

use super::{COOLING, conduction, cooling, stepper};
use nestar::engine::comm::DiagnosticColumns;
use nestar::prelude::*;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;

#[test]
fn radiated_energy_is_accounted_for() {
    let mut run = stepper(cooling::program, COOLING, &["domain.cells=[16,16,16]"]);
    let before = run.0.with(|sim| totals(sim));
    run.steps(10);
    assert!(run.state().counts()[1] > 0, "nothing is refined");
    let after = run.0.with(|sim| totals(sim));
    let radiated = after[5];
    assert!(radiated > 1e-3 * before[4], "{radiated} of {}", before[4]);
    let drift = (after[4] + radiated) / before[4] - 1.0;
    assert!(drift.abs() < 1e-12, "{drift:e}");
}

/// Energy that a uniform gas is left with after a time, in steps of a given length.
fn left(step: f64) -> f64 {
    let settings = [
        "domain.cells=[8,8,8]",
        "mesh.max_level=0",
        "initial.density=1",
        "initial.pressure=2",
        "time.end=0.05",
        "radiation.rates=[0,0,0,0,0,4,16,16]",
        &format!("time.max_step={step}"),
    ];
    let mut run = stepper(cooling::program, COOLING, &settings);
    run.finish();
    run.0.with(|sim| totals(sim))[4]
}

#[test]
fn cooling_is_of_second_order_in_time() {
    let [a, b, c] = [0.01, 0.005, 0.0025].map(left);
    let ratio = (a - b) / (b - c);
    assert!((3.6..4.4).contains(&ratio), "{ratio} of {a}, {b}, {c}");
}

#[device]
fn wave<R: Real>(u: Conserved<R>, at: &Place<R>) -> R {
    let specific = (u.energy - kinetic_energy(u)) / u.density;
    (specific - 1.5) * sin(6.283_185_307_179_586 * at.centre[0])
}

/// Writes the share of a wave in the diagnostics.
#[derive(Clone)]
struct Watch;

impl Plugin for Watch {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.column::<Gas, wave>("wave", Reduce::Integral, []);
        Ok(())
    }
}

const HEAT: &str = r#"
scenario = "formula"
[heat_flow]
diffusivity = 100
[initial]
samples  = 3
density  = "1"
pressure = "1 + 0.01*sin(2*pi*x)"
[domain]
cells = [32, 8, 8]
right_edge = [1, 0.25, 0.25]
[time]
end = 2e-5
[mesh]
max_level = 2
refine = [
    { criterion = "box", left = [0.1, 0, 0], right = [0.6, 0.1, 0.25], level = 1 },
    { criterion = "box", left = [0.25, 0, 0], right = [0.45, 0.05, 0.25], level = 2 },
]
"#;

/// How far a wave of heat is from where it should be after a while, in which the gas has no time to move; and the
/// change of the energy.
fn decay(settings: &[&str]) -> [f64; 2] {
    let sim = conduction::program(App::default()).always(Watch);
    let sim = sim.simulation(deck(HEAT, settings));
    let mut run = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    let amplitude = |run: &mut Stepper| {
        let values = run.0.with(|sim| DiagnosticColumns::values(&mut sim.world));
        values.unwrap_or_else(|e| panic!("{e}"))[0]
    };
    let (first, before) = (amplitude(&mut run), run.0.with(|sim| totals(sim)));
    run.finish();
    let (last, after) = (amplitude(&mut run), run.0.with(|sim| totals(sim)));
    let exponent = -100.0 * std::f64::consts::TAU.powi(2) * run.time();
    [
        (last / first).ln() / exponent - 1.0,
        after[4] / before[4] - 1.0,
    ]
}

#[test]
fn a_heat_wave_over_three_levels_decays_at_the_exact_rate() {
    let [error, drift] = decay(&[]);
    assert!(error.abs() < 1e-3, "{error}");
    assert!(drift.abs() < 1e-13, "{drift:e}");
}
