//! Matter beside reflecting faces attracts as if its mirror images were there.

use super::leaves::{each_leaf_cell, norm};
use super::stored;
use crate::device_runs::places;
use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar_tests::decks::deck;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::{State, Stepper};
use std::collections::BTreeMap;

/// Width of a cell of the root level.
const WIDTH: f64 = 1.0 / 16.0;
/// Cells of the part of the domain on one side of all mirrors.
const PART: [i32; 3] = [16, 8, 24];

/// Faces of an axis: the lower one, the upper one.
type Faces = [&'static str; 2];

const LOWER: Faces = ["reflecting", "outflow"];
const UPPER: Faces = ["outflow", "reflecting"];
const BOTH: Faces = ["reflecting"; 2];
const OPEN: Faces = ["outflow"; 2];
const PERIODIC: Faces = ["periodic"; 2];

/// Returns the deck of a domain, or of the domain and its mirror images. A blob and a bar lie away from all faces.
fn domain(faces: [Faces; 3], whole: bool) -> String {
    let [mut cells, mut left, mut right] = [PART, [0; 3], PART];
    let (mut boundaries, mut along) = (Vec::new(), Vec::new());
    for axis in 0..3 {
        let (name, length) = (["x", "y", "z"][axis], f64::from(PART[axis]) * WIDTH);
        let mirrors = faces[axis].contains(&"reflecting");
        let kinds = match (whole && mirrors, faces[axis]) {
            (false, faces) => faces,
            (true, BOTH) => PERIODIC,
            (true, _) => OPEN,
        };
        boundaries.push(format!("{name} = {kinds:?}"));
        along.push(match faces[axis] {
            LOWER => format!("abs({name})"),
            UPPER | BOTH => format!("({length} - abs({name} - {length}))"),
            _ => name.into(),
        });
        if whole && mirrors {
            cells[axis] *= 2;
            match faces[axis] {
                LOWER => left[axis] = -PART[axis],
                _ => right[axis] *= 2,
            }
        }
    }
    let edge = |edge: [i32; 3]| edge.map(|n| f64::from(n) * WIDTH);
    let [x, y, z] = &along[..] else {
        unreachable!("three axes")
    };
    format!(
        r#"
scenario = "formula"
[initial]
density  = "0.01 + exp(-(({x}-0.3)^2 + ({y}-0.2)^2 + ({z}-0.9)^2)/0.01) + 0.3*exp(-(({x}-0.7)^2 + ({z}-0.5)^2)/0.02)"
pressure = "0.1"
[domain]
cells = {cells:?}
left_edge = {:?}
right_edge = {:?}
boundary = {{ {} }}
[time]
end = 1.0
[run]
precision = "double"
[gravity]
"#,
        edge(left),
        edge(right),
        boundaries.join(", ")
    )
}

/// Potential and acceleration of the leaf cells of the part, by level and centre in half widths of fine cells.
type Found = BTreeMap<[i32; 3], (f64, [f64; 3])>;

fn found(deck: &str, settings: &[&str], steps: usize) -> Found {
    let mut run = Stepper::new(deck, settings);
    run.steps(steps);
    let mut all = Found::new();
    each_leaf_cell(&mut run, |leaf| {
        let inside =
            (0..3).all(|axis| (0.0..f64::from(PART[axis]) * WIDTH).contains(&leaf.centre[axis]));
        if inside {
            let place = leaf.centre.map(|x| (x / WIDTH * 64.0).round() as i32);
            all.insert(place, (leaf.potential, leaf.acceleration));
        }
    });
    all
}

/// Returns the largest errors of potential and acceleration in a part, relative to the largest values of the whole.
fn errors(faces: [Faces; 3], settings: &[&str], steps: usize) -> [f64; 2] {
    let [part, whole] = [false, true].map(|whole| found(&domain(faces, whole), settings, steps));
    assert!(part.keys().eq(whole.keys()), "other cells");
    let mut most = [0.0_f64; 2];
    let mut errors = [0.0_f64; 2];
    for ((potential, a), (right, b)) in part.values().zip(whole.values()) {
        let difference = norm([0, 1, 2].map(|axis| a[axis] - b[axis]));
        for (n, (error, size)) in [
            ((potential - right).abs(), right.abs()),
            (difference, norm(*b)),
        ]
        .into_iter()
        .enumerate()
        {
            errors[n] = errors[n].max(error);
            most[n] = most[n].max(size);
        }
    }
    [0, 1].map(|n| errors[n] / most[n])
}

#[test]
fn parts_of_symmetric_domains_have_the_potential_of_the_whole() {
    for faces in [
        [LOWER, LOWER, LOWER],
        [UPPER, OPEN, OPEN],
        [OPEN, LOWER, UPPER],
        [BOTH, PERIODIC, PERIODIC],
        [PERIODIC, BOTH, BOTH],
        [BOTH, BOTH, BOTH],
    ] {
        let [potential, acceleration] = errors(faces, &[], 0);
        assert!(potential < 1e-13, "{faces:?}: {potential}");
        assert!(acceleration < 1e-12, "{faces:?}: {acceleration}");
    }
}

/// Two refined levels that touch mirrored and other faces.
const LEVELS: &[&str] = &[
    "mesh.max_level=2",
    "mesh.refine=[{ criterion = \"threshold\", field = \"density\", threshold = [0.05, 0.6] }]",
    "mesh.flag_buffer=0",
    "gravity.initial_cycles=10",
    "gravity.cycles=6",
];

#[test]
fn levels_beside_mirrors_have_the_potential_of_the_whole() {
    for faces in [
        [LOWER, LOWER, LOWER],
        [UPPER, OPEN, UPPER],
        [BOTH, PERIODIC, BOTH],
    ] {
        let [potential, acceleration] = errors(faces, LEVELS, 0);
        assert!(potential < 1e-6, "{faces:?}: {potential}");
        assert!(acceleration < 1e-6, "{faces:?}: {acceleration}");
    }
}

/// The setting for a ball at a place, for which a multipole expansion converges.
fn ball(from: [&str; 3]) -> String {
    let [x, y, z] = from;
    format!("initial.density=\"1e-6 + exp(-({x}^2 + {y}^2 + {z}^2)/0.01)\"")
}

#[test]
fn a_root_level_that_is_solved_by_cycles_has_the_potential_of_the_whole() {
    let as_it_is = "gravity.root=multigrid";
    for (faces, density) in [
        ([LOWER, UPPER, LOWER], &*ball(["x", "(y-0.5)", "z"])),
        ([PERIODIC, BOTH, BOTH], as_it_is),
    ] {
        let settings = [LEVELS, &[density, "gravity.root=multigrid"]].concat();
        let [potential, acceleration] = errors(faces, &settings, 0);
        assert!(potential < 1e-6, "{faces:?}: {potential}");
        assert!(acceleration < 1e-6, "{faces:?}: {acceleration}");
    }
}

#[test]
fn momentum_by_stress_beside_mirrors_is_that_of_the_whole() {
    let stress = "gravity.force=stress";
    let faces = [LOWER, UPPER, OPEN];
    let [potential, _] = errors(faces, &[stress], 2);
    assert!(potential < 1e-10, "{potential}");
    let [potential, _] = errors(faces, &[LEVELS, &[stress]].concat(), 1);
    assert!(potential < 1e-6, "{potential}");
}

#[test]
fn gas_on_levels_beside_mirrors_moves_as_in_the_whole() {
    let [potential, acceleration] = errors([LOWER, UPPER, OPEN], LEVELS, 1);
    assert!(potential < 1e-6, "{potential}");
    assert!(acceleration < 1e-6, "{acceleration}");
}

#[test]
fn gas_beside_mirrors_moves_as_in_the_whole() {
    for faces in [[LOWER, UPPER, OPEN], [PERIODIC, BOTH, PERIODIC]] {
        let [potential, acceleration] = errors(faces, &[], 3);
        assert!(potential < 1e-10, "{faces:?}: {potential}");
        assert!(acceleration < 1e-9, "{faces:?}: {acceleration}");
    }
}

fn state(faces: [Faces; 3], size: usize, settings: &[&str]) -> State {
    let text = domain(faces, false);
    let build = |ranks: Ranks| Simulation::with_ranks(deck(&text, settings), ranks);
    let states = on_ranks_of(size, build, |stepper| stepper.steps(1).state());
    stored(joined(states))
}

#[test]
fn potentials_beside_mirrors_are_identical_on_ranks_and_devices() {
    let open = [LOWER, LOWER, UPPER];
    let closed = [BOTH, PERIODIC, BOTH];
    // ranks in one precision, devices in the other
    for (faces, precision, places) in [
        (open, "run.precision=double", places(&[3], &[])),
        (closed, "run.precision=single", places(&[], &[2])),
    ] {
        let ball = ball(["x", "y", "(z-1.5)"]);
        let cycles = ["gravity.root=multigrid", "gravity.force=stress", &ball];
        for others in [&[][..], &cycles] {
            let settings = [&LEVELS[..3], others, &[precision]].concat();
            let alone = state(faces, 1, &settings);
            for (device, size) in &places {
                let other = state(faces, *size, &[&settings[..], &[device]].concat());
                assert_eq!(alone.difference(&other), None, "{device}, {size} ranks");
            }
        }
    }
}

#[test]
fn domains_that_are_closed_along_some_axes_only_are_refused_by_key() {
    let [open, periodic] =
        [[BOTH, OPEN, OPEN], [PERIODIC, LOWER, BOTH]].map(|faces| domain(faces, false));
    for text in [&open, &periodic] {
        let error = Simulation::new(deck(text, &[])).err();
        let why = error.expect("it is refused").to_string();
        for key in ["gravity.boundary", "domain.boundary"] {
            assert!(why.contains(key), "{why}");
        }
    }
    let consented = Simulation::new(deck(&open, &["gravity.boundary=isolated"]));
    assert!(consented.is_ok());
}
