//! Viscosity and heat conduction: exact rates, order, conservation, equal bits and refusals.

use super::device_runs::agree;
use nestar::Simulation;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::norms::{magnitudes, totals};
use nestar_tests::ranks::{joined, on_ranks};
use std::f64::consts::TAU;

/// A shear wave and a wave of heat, which spread so fast that the gas has no time to move; half of the box is refined.
const WAVES: &str = r#"
scenario = "formula"
[viscosity]
kinematic = 60
[conduction]
diffusivity = 100
[initial]
samples    = 3
density    = "1"
pressure   = "1 + 0.01*sin(2*pi*x)"
velocity_y = "0.01*sin(2*pi*x)"
[domain]
cells = [64, 8, 8]
right_edge = [1, 0.125, 0.125]
[time]
end = 2e-5
[mesh]
max_level = 1
refine = [{ criterion = "box", left = [0.25, 0, 0], right = [0.75, 0.125, 0.125], level = 1 }]
[[diagnostics]]
name = "shear"
formula = "velocity_y*sin(2*pi*x)"
reduction = "mean"
[[diagnostics]]
name = "heat"
formula = "temperature*sin(2*pi*x)"
reduction = "mean"
"#;

/// Relative errors of the rates at which both waves decay, and the length of the first step.
fn rates(settings: &[&str]) -> ([f64; 2], f64) {
    let mut run = Stepper::new(WAVES, settings);
    let names = ["shear", "heat"];
    let before = run.columns(names);
    let first = run.steps(1).time();
    let after = run.finish().columns(names);
    let time = run.time();
    let error = |n: usize, diffusivity: f64| {
        (after[n] / before[n]).ln() / (-diffusivity * TAU * TAU * time) - 1.0
    };
    let errors = [error(0, 60.0), error(1, 100.0)];
    println!("{settings:?}: errors of the rates {errors:?}, first step {first:e}");
    (errors, first)
}

#[test]
fn waves_decay_at_the_exact_rates_with_half_of_the_box_refined() {
    let (errors, first) = rates(&[]);
    assert!(errors.iter().all(|e| e.abs() < 2e-3), "{errors:?}");
    // signals add little to the diffusion of heat, which is faster than that of momentum
    let limit = 0.8 / (6.0 * 100.0 * 64.0 * 64.0);
    assert!(first <= limit, "{first} above {limit}");
    // the same rate of heat at four times the temperature, at 32 cells
    let (other, _) = rates(&[
        "domain.cells=[32,8,8]",
        "domain.right_edge=[1,0.25,0.25]",
        "initial.pressure=4 + 0.04*sin(2*pi*x)",
        "conduction.diffusivity=50",
        "conduction.temperature_power=0.5",
    ]);
    assert!(other.iter().all(|e| e.abs() < 5e-3), "{other:?}");
}

#[test]
fn the_rates_converge_at_second_order() {
    let error = |cells: usize| {
        let (domain, edge) = (
            format!("domain.cells=[{cells},8,8]"),
            format!("domain.right_edge=[1,{0},{0}]", 8.0 / cells as f64),
        );
        // the first order in time is of second order in the width, because the step falls with its square
        rates(&[&domain, &edge, "mesh.max_level=0", "time.courant=0.2"]).0
    };
    let (coarse, fine) = (error(16), error(32));
    for n in 0..2 {
        let order = (coarse[n] / fine[n]).log2();
        assert!(
            (1.9..2.1).contains(&order),
            "order {order} of {coarse:?}, {fine:?}"
        );
    }
}

/// A travelling sound wave of small amplitude in viscous, conducting gas; the classical rate of decay of its amplitude is
/// k^2/2 (4/3 nu + (gamma - 1)/gamma D).
const SOUND: &str = r#"
scenario = "formula"
[constants]
s = 1e-4
[viscosity]
kinematic = 0.003
[conduction]
diffusivity = 0.005
[initial]
samples    = 3
density    = "1 + s*sin(2*pi*x)"
pressure   = "0.6*(1 + 5/3*s*sin(2*pi*x))"
velocity_x = "s*sin(2*pi*x)"
[domain]
cells = [64, 8, 8]
right_edge = [1, 0.125, 0.125]
[time]
end = 1
courant = 0.6
[mesh]
max_level = 0
[[diagnostics]]
name = "sine"
formula = "density*sin(2*pi*x)"
reduction = "mean"
[[diagnostics]]
name = "cosine"
formula = "density*cos(2*pi*x)"
reduction = "mean"
"#;

/// Rate at which the sound wave loses its amplitude.
fn damping(settings: &[&str]) -> f64 {
    let mut run = Stepper::new(SOUND, settings);
    let amplitude = |run: &mut Stepper| {
        let [sine, cosine] = run.columns(["sine", "cosine"]);
        sine.hypot(cosine)
    };
    let before = amplitude(&mut run);
    let after = amplitude(run.finish());
    -(after / before).ln()
}

#[test]
fn a_sound_wave_is_damped_at_the_classical_rate() {
    let exact = 0.5 * TAU * TAU * (4.0 / 3.0 * 0.003 + 0.4 * 0.005);
    let found = damping(&[]);
    println!("damping {found}, classical {exact}");
    assert!((found / exact - 1.0).abs() < 0.02, "{found}, not {exact}");
}

/// The blast with three levels in viscous, conducting gas.
fn blast() -> String {
    format!("{BLAST}\n[viscosity]\nkinematic = 0.004\n[conduction]\ndiffusivity = 0.006\n")
}

#[test]
fn a_blast_conserves_mass_momentum_and_energy_and_is_identical_on_ranks() {
    let text = blast();
    let end = |stepper: &mut Stepper| {
        let before = stepper.0.with(|sim| totals(sim));
        stepper.steps(3);
        let after = stepper.0.with(|sim| totals(sim));
        (stepper.state(), before, after)
    };
    let (alone, before, after) = {
        let mut run = Stepper::new(&text, &[HALF]);
        end(&mut run)
    };
    assert!(
        alone.counts()[2] > 0,
        "no third level: {:?}",
        alone.counts()
    );
    let scale = magnitudes(&alone);
    for c in 0..5 {
        let drift = ((after[c] - before[c]) / scale[c]).abs();
        assert!(drift < 1e-14, "component {c} drifts by {drift:e}");
    }
    let ends = on_ranks(3, &text, &[HALF], end);
    let others = joined(ends.into_iter().map(|end| end.0).collect());
    assert_eq!(alone.difference(&others), None);
}

#[test]
fn a_viscous_blast_is_identical_on_the_device() {
    let text = blast();
    agree(&text, &["time.max_steps=3"]);
    // separate fluxes of momentum and heat
    let settings = [
        "time.max_steps=3",
        "run.precision=single",
        "hydro.dual_energy=true",
    ];
    agree(&text, &settings);
    let conducting = text.replace("[viscosity]\nkinematic = 0.004", "").replace(
        "diffusivity = 0.006",
        "conductivity = 0.006\ntemperature_power = 0.5",
    );
    agree(&conducting, &["time.max_steps=3", "run.precision=single"]);
}

#[test]
fn heat_of_viscosity_reaches_the_internal_energy() {
    let text = WAVES.replace("1 + 0.01*sin(2*pi*x)", "1e-4");
    let ends = [false, true].map(|dual| {
        let dual = format!("hydro.dual_energy={dual}");
        let mut run = Stepper::new(&text, &[&dual, "mesh.max_level=0", "time.end=1e-4"]);
        let before = run.0.with(|sim| totals(sim));
        run.finish();
        let after = run.0.with(|sim| totals(sim));
        let drift = after[4] / before[4] - 1.0;
        assert!(drift.abs() < 1e-13, "{dual}: energy drifts by {drift:e}");
        let state = run.state();
        let mut internal = 0.0;
        state.each_leaf_cell(|_, _, volume, u| {
            let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
            internal += volume
                * if state.components == 6 {
                    u[5]
                } else {
                    u[4] - kinetic
                };
        });
        internal / before[4]
    });
    let [single, dual] = ends;
    assert!((single / dual - 1.0).abs() < 1e-6, "{ends:?}");
}

/// Uniform gas in a stream of Mach 1e10, whose total energy does not tell the internal energy. The end is so late that steps are as long as
/// their limit.
#[test]
fn limits_of_cold_gas_have_the_temperature_of_the_internal_energy() {
    let uniform = |table: &str| {
        format!(
            r#"
scenario = "formula"
{table}
[hydro]
dual_energy = true
[initial]
density = "1"
pressure = "1e-20"
velocity_x = "1.3"
[domain]
cells = [8, 8, 8]
[time]
end = 1e9
[mesh]
max_level = 0
"#
        )
    };
    let first = |text: &str| {
        Stepper::new(text, &["run.precision=double"])
            .steps(1)
            .time()
    };
    let sound = (5.0_f64 / 3.0 * 1e-20).sqrt();
    let signals = 8.0 * (1.3 + 3.0 * sound);
    // the diffusivity of heat is 1e-21/T
    let heat = 6.0 * 64.0 * 1e-21 / 1e-20;
    let momentum = 8.0 / 3.0 * 3.0 * 64.0 * 0.1;
    for (table, rate) in [
        (
            "[conduction]\ndiffusivity = 1e-21\ntemperature_power = -1",
            heat,
        ),
        ("[viscosity]\nkinematic = 0.1", momentum),
    ] {
        let (found, exact) = (first(&uniform(table)), 0.8 / (signals + rate));
        let error = found / exact - 1.0;
        assert!(error.abs() < 1e-9, "{table}: {found:e} for {exact:e}");
    }
}

#[test]
fn tables_without_sense_are_refused_with_key_and_reason() {
    let blast = |more: &str, settings: &[&str]| {
        let deck = deck(&format!("{BLAST}\n{more}"), settings);
        let refused = Simulation::new(deck).err();
        refused
            .unwrap_or_else(|| panic!("{more} is accepted"))
            .to_string()
    };
    let viscous = "[viscosity]\nkinematic = 0.1";
    let cases = [
        (
            "[viscosity]\nkinematic = -0.1",
            "viscosity.kinematic",
            "above 0",
        ),
        ("[viscosity]\n", "viscosity", "kinematic"),
        (
            "[viscosity]\nkinematic = nan",
            "viscosity.kinematic",
            "finite",
        ),
        (
            "[conduction]\n",
            "conduction",
            "`diffusivity` or `conductivity`",
        ),
        (
            "[conduction]\ndiffusivity = -1",
            "conduction.diffusivity",
            "above 0",
        ),
        (
            "[conduction]\ndiffusivity = 1\nconductivity = 1",
            "conduction.diffusivity",
            "remove one",
        ),
    ];
    for (table, key, reason) in cases {
        let found = blast(table, &[]);
        assert!(
            found.contains(key) && found.contains(reason),
            "{table}: {found}"
        );
    }
    let found = blast(viscous, &["hydro.frozen=true"]);
    assert!(
        found.contains("viscosity") && found.contains("frozen"),
        "{found}"
    );
}
