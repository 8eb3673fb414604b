//! Levels that touch faces, edges and corners of an isolated domain: a compact cloud with a known potential near a corner.

use super::leaves::{Errors, each_leaf_cell, norm};
use super::{columns, stored};
use crate::device_runs::places;
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar_tests::decks::deck;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, State, Stepper, build};
use std::f64::consts::PI;

/// A cloud of density (1 - (r/0.4)^2)^2 about (0.5, 0.45, 0.4) in a box from -1 to 1. Levels 1 and 2 end at 1 along all axes: where the
/// domain does too they touch three of its faces, three edges and the corner between them.
const CLOUD: &str = r#"
scenario = "formula"
[constants]
n = 32
far = 1
[initial]
samples  = 2
density  = "1e-9 + max(1 - ((x-0.5)^2 + (y-0.45)^2 + (z-0.4)^2)/0.16, 0)^2"
pressure = "0.01"
[domain]
cells = ["n", "n", "n"]
left_edge = [-1, -1, -1]
right_edge = ["far", "far", "far"]
boundary = "outflow"
[time]
end = 1.0
[mesh]
max_level = 2
flag_buffer = 0
refine = [{ criterion = "threshold", field = "max(max(abs(1-x), abs(1-y)), abs(1-z))", below = true, threshold = [0.95, 0.7] }]
[gravity]
initial_cycles = 8
"#;

/// Everything is refined twice.
const EVERYWHERE: &str =
    "mesh.refine=[{ criterion = \"threshold\", field = \"x\", below = true, threshold = [9, 9] }]";

/// Potential and acceleration of the cloud.
fn exact(x: [f64; 3]) -> (f64, [f64; 3]) {
    let d = [x[0] - 0.5, x[1] - 0.45, x[2] - 0.4];
    let (r, radius) = (norm(d), 0.4_f64);
    let s = (r / radius).min(1.0);
    let inside = 1.0 / 3.0 - 2.0 * s.powi(2) / 5.0 + s.powi(4) / 7.0;
    let mass = 4.0 * PI * (s * radius).powi(3) * inside;
    let above = 4.0 * PI * radius.powi(2) / 6.0 * (1.0 - s * s).powi(3);
    (-mass / r - above, d.map(|d| -mass * d / r.powi(3)))
}

/// Errors of potential and acceleration over 0.1 in the leaf cells of the region in which the levels lie.
fn errors(settings: &[&str]) -> [Errors; 2] {
    let mut errors = [Errors::default(), Errors::default()];
    let mut run = Stepper::new(CLOUD, settings);
    each_leaf_cell(&mut run, |leaf| {
        let (x, volume) = (leaf.centre, leaf.width.powi(3));
        if x.iter().any(|x| !(0.0..1.0).contains(x)) {
            return;
        }
        let (right, slope) = exact(x);
        errors[0].add((leaf.potential - right).abs() / 0.1, volume);
        let wrong = norm(std::array::from_fn(|i| leaf.acceleration[i] - slope[i]));
        errors[1].add(wrong / 0.1, volume);
    });
    errors
}

/// The largest residual of all levels after the given number of cycles.
fn residual(cycles: usize, settings: &[&str]) -> f64 {
    let cycles = format!("gravity.initial_cycles={cycles}");
    let mut run = Stepper::new(CLOUD, &[settings, &[&cycles]].concat());
    let columns = columns(&mut run);
    let residuals = columns
        .iter()
        .filter(|(name, _)| name.starts_with("gravity_residual"));
    residuals.fold(0.0, |most, (_, value)| value.max(most))
}

#[test]
fn levels_at_domain_faces_have_the_exact_potential() {
    let [_, apart] = errors(&["constants.far=2", "constants.n=48"]);
    let [phi, a] = errors(&[]);
    assert!(phi.mean() < 5.6e-4 && phi.most < 1.8e-3, "{phi:?}");
    assert!(a.mean() < 2.1e-3 && a.mean() < 1.5 * apart.mean(), "{a:?}");
    assert!(a.most < 1.05 * apart.most, "{a:?}, {apart:?}");
    // the root level alone
    let [coarse, _] = errors(&["constants.n=16", "mesh.max_level=0"]);
    let [phi, a] = errors(&["constants.n=16", EVERYWHERE]);
    assert!(phi.mean() < 0.8 * coarse.mean(), "{phi:?}, {coarse:?}");
    assert!(a.mean() < 4.8e-3 && a.most < 2.7e-2, "{a:?}");
}

#[test]
fn multigrid_converges_with_levels_at_domain_faces() {
    for settings in [&[][..], &["constants.n=16", EVERYWHERE]] {
        let (before, after) = (residual(3, settings), residual(9, settings));
        let rate = (after / before).powf(1.0 / 6.0);
        assert!(rate < 0.2, "{settings:?}: {rate}");
    }
}

/// A short run in which all of level 1 and a corner of level 2 touch domain faces.
const SHORT: [&str; 3] = [
    "constants.n=16",
    "gravity.initial_cycles=2",
    "mesh.refine=[{ criterion = \"threshold\", field = \"max(max(abs(1-x), abs(1-y)), abs(1-z))\", below = true, threshold = [0.95, 0.45] }]",
];

fn cloud(size: usize, settings: &[&str]) -> State {
    let settings = [&SHORT, settings].concat();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(CLOUD, &settings), ranks);
    let states = on_ranks_of(size, build, |stepper| stepper.steps(1).state());
    stored(joined(states))
}

#[test]
fn levels_at_domain_faces_are_identical_on_ranks_and_devices() {
    // ranks in one precision, devices in the other
    for (precision, places) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[2])),
    ] {
        let alone = cloud(1, &[precision]);
        for (device, size) in places {
            let difference = alone.difference(&cloud(size, &[precision, device]));
            assert_eq!(difference, None, "{device}, {size} ranks");
        }
    }
}

#[test]
fn levels_at_domain_faces_are_identical_after_a_restart() {
    let run = |parts: &[&str]| {
        let scratch = Scratch::new();
        for (n, steps) in parts.iter().enumerate() {
            let settings = [&SHORT[..], &["output.steps=1", "output.final=true", steps]].concat();
            let options = quietly_into(&scratch.run(), n > 0);
            let run = build(CLOUD, &settings).run_with(options);
            run.unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&scratch.run()).pop().expect("there is a snapshot")
    };
    let whole = run(&["time.max_steps=2"]);
    assert_eq!(run(&["time.max_steps=1", "time.max_steps=2"]), whole);
}
