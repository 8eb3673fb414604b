//! Total momentum under the stress tensor force, and the accuracy of that force.

use super::energy::drift as energy_drift;
use super::jeans::along_x;
use super::leaves::each_leaf_cell;
use super::{LUMP, MULTIGRID, OUTFLOW, Twin, same_everywhere};
use bevy_ecs::prelude::Local;
use nestar::engine::mesh::{LevelClock, Levels};
use nestar::engine::step::StepVerdict;
use nestar::prelude::*;
use nestar_tests::norms::totals;
use nestar_tests::{Stepper, build};
use std::f64::consts::{PI, TAU};

pub(super) const STRESS: &str = "gravity.force=\"stress\"";
const UNIFORM: &str = "mesh.max_level=0";

/// The sum of the absolute forces of gravity in a run with Newton's constant 1.
fn forces(run: &mut Stepper) -> f64 {
    let mut sum = 0.0;
    each_leaf_cell(run, |leaf| {
        let force: f64 = leaf.acceleration.iter().map(|a| a.abs()).sum();
        sum += leaf.density * force * leaf.width.powi(3);
    });
    sum
}

/// Change of the total momentum along any axis over some steps, relative to the sum of absolute forces in that time.
fn drift_of(mut run: Stepper, steps: usize) -> f64 {
    let momentum = |run: &mut Stepper| run.0.with(|sim| totals(sim))[1..4].to_vec();
    let (before, scale) = (momentum(&mut run), forces(&mut run));
    let after = momentum(run.steps(steps));
    let most = before.iter().zip(after).map(|(a, b)| (b - a).abs());
    most.fold(0.0, f64::max) / (scale * run.time())
}

fn drift(settings: &[&str], steps: usize) -> f64 {
    drift_of(Stepper::new(LUMP, settings), steps)
}

/// An inexact potential accelerates the whole box, unless the force is a divergence.
#[test]
fn momentum_on_a_uniform_mesh_is_conserved_to_round_off() {
    let common = [UNIFORM, MULTIGRID, "gravity.root_cycles=1"];
    let gradient = drift(&common, 6);
    let stress = drift(&[&common[..], &[STRESS]].concat(), 6);
    assert!(gradient > 1e-8 && stress < 1e-13, "{gradient:e} {stress:e}");
}

/// Two levels whose faces cut through dense matter, sub-cycled and changed on the way.
#[test]
fn momentum_with_refinement_is_conserved_to_round_off() {
    let gradient = drift(&[], 4);
    assert!(gradient > 1e-5, "{gradient:e}");
    for case in [
        &[][..],
        &["gravity.energy=\"kicks\"", MULTIGRID],
        &["gravity.order=2", "time.levels=shared"],
        &["gravity.coupling=\"one-way\"", "gravity.constant=3"],
    ] {
        let stress = drift(&[case, &[STRESS]].concat(), 4);
        assert!(stress < 1e-13, "{case:?}: {stress:e}");
    }
}

/// Rejects the first attempt of every third step of a level.
struct Refuse;

impl Plugin for Refuse {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let refuse = |clock: Res<LevelClock>,
                      levels: Res<Levels>,
                      mut seen: Local<Option<(usize, u64)>>,
                      mut verdict: ResMut<StepVerdict>| {
            let now = (clock.level, levels.clock(clock.level).steps);
            if now.1 % 3 == 1 && *seen != Some(now) {
                *seen = Some(now);
                verdict.rejected = Some("a test says no".into());
            }
        };
        sim.system_in(Advance::Exchange, refuse);
        Ok(())
    }
}

#[test]
fn rejected_steps_do_not_change_the_momentum() {
    let run = |settings: &[&str]| {
        let sim = build(LUMP, settings).add(Refuse);
        Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
    };
    let mut again = run(&[STRESS]);
    assert!(again.steps(4).counters().retried_steps > 8);
    for factor in ["time.retry_factor=0.4", "time.retry_factor=0.8"] {
        let stress = drift_of(run(&[STRESS, factor]), 6);
        assert!(stress < 1e-13, "{factor} {stress:e}");
    }
}

/// Two lumps at rest in an isolated box, for steps so short that no gas leaves it: the force on the whole is none, where no finer level
/// touches the faces of the domain.
#[test]
fn momentum_of_an_isolated_box_is_conserved() {
    let pair = [
        "initial.density=\"2e-2 + 3*exp(-((x-0.45)^2+(y-0.52)^2+(z-0.5)^2)/0.01) + 2*exp(-((x-0.6)^2+(y-0.4)^2+(z-0.55)^2)/0.004)\"",
        "initial.pressure=\"0.1\"",
        "initial.velocity_x=\"0\"",
        "initial.velocity_y=\"0\"",
        "time.max_step=1e-9",
        "domain.cells=[32,32,32]",
        "mesh.refine=[{ criterion = \"threshold\", field = \"density\", threshold = [2.0, 2.5] }]",
        OUTFLOW,
    ];
    let gradient = drift(&pair, 3);
    let stress = drift(&[&pair[..], &[STRESS]].concat(), 3);
    assert!(gradient > 1e-7 && stress < 1e-13, "{gradient:e} {stress:e}");
}

/// A density wave in a partly refined periodic box, with a step so short that the momentum measures the force.
const WAVE: &str = r#"
scenario = "formula"
[constants]
n = 24
[initial]
samples  = 3
density  = "1 + 0.5*sin(2*pi*x)*cos(2*pi*y)*sin(2*pi*z)"
pressure = "1"
[domain]
cells = ["n", "n", "n"]
[time]
end = 1.0
max_step = 1e-7
levels = "shared"
[mesh]
max_level = 1
flag_buffer = 0
refine = [{ criterion = "threshold", field = "max(abs(x-0.5), abs(y-0.5), abs(z-0.5))", below = true, threshold = [0.1] }]
[gravity]
initial_cycles = 10
"#;

/// Mean and largest error of the acceleration, relative to the largest acceleration, with `n` root cells along an axis.
fn force_errors(n: usize, settings: &[&str]) -> [f64; 2] {
    let cells = format!("constants.n={n}");
    let mut run = Stepper::new(WAVE, &[&[cells.as_str()], settings].concat());
    let dt = run.steps(1).time();
    let size = 4.0 * PI * 0.5 / (3.0 * TAU);
    let (mut sum, mut most) = (0.0, 0.0_f64);
    run.state().each_leaf_cell(|_, x, volume, u| {
        let [[sx, cx], [sy, cy], [sz, cz]] = x.map(|x| [(TAU * x).sin(), (TAU * x).cos()]);
        let exact = [cx * cy * sz, -sx * sy * sz, sx * cy * cz];
        for axis in 0..3 {
            let error = (u[1 + axis] / (u[0] * dt) / size - exact[axis]).abs();
            sum += volume * error / 3.0;
            most = most.max(error);
        }
    });
    [sum, most]
}

/// On a uniform mesh the force is the slope of second order times the density; with levels it converges at second order in the mean,
/// and at first order beside their borders.
#[test]
fn the_stress_tensor_force_converges() {
    let order = |coarse: f64, fine: f64| (coarse / fine).log2();
    let uniform = [8, 16].map(|n| force_errors(n, &[UNIFORM, STRESS]));
    let slopes = force_errors(16, &[UNIFORM, "gravity.order=2"]);
    assert!((uniform[1][0] - slopes[0]).abs() < 1e-6 * slopes[0]);
    assert!(order(uniform[0][0], uniform[1][0]) > 1.8, "{uniform:?}");
    let [coarse, fine] = [24, 48].map(|n| force_errors(n, &[STRESS]));
    assert!(order(coarse[0], fine[0]) > 1.8, "{coarse:?} {fine:?}");
    assert!(order(coarse[1], fine[1]) > 0.8, "{coarse:?} {fine:?}");
}

#[test]
fn jeans_waves_have_the_exact_rates_with_the_stress_tensor_force() {
    let growth = [32, 64].map(|n| (along_x(n, true, &[STRESS]) - 1.0).abs());
    assert!((growth[0] / growth[1]).log2() > 1.9, "{growth:?}");
    assert!(growth[1] < 1e-3, "{growth:?}");
    let lost = along_x(32, false, &[STRESS]).abs();
    assert!(lost < 1e-3, "{lost}");
}

#[test]
fn the_stress_tensor_force_is_identical_on_ranks_and_devices() {
    same_everywhere(&[STRESS, OUTFLOW, "run.precision=double"]);
    same_everywhere(&[STRESS, "run.precision=single", "gravity.energy=\"kicks\""]);
}

#[test]
fn total_energy_is_conserved_with_the_stress_tensor_force() {
    let uniform = [UNIFORM, "gravity.constant=3", STRESS];
    let found = energy_drift(&uniform, 12);
    assert!(found < 1e-11, "{found:e}");
}

#[test]
fn the_stress_tensor_force_is_refused_with_matter_other_than_gas() {
    let sim = build(LUMP, &[STRESS]).add(Twin);
    let begun = Stepper::begin(sim.unwrap_or_else(|e| panic!("{e}")));
    let why = begun.map(|_| ()).expect_err("refused").to_string();
    assert!(why.contains("needs gas as the only source"), "{why}");
}
