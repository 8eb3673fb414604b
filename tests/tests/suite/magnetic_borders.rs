//! Magnetic fields on cell faces at the faces of the domain: inflows, and boundaries that change at a restart.

use super::device_runs::{agree, emulation};
use nestar::App;
use nestar_tests::decks::deck;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};

const AXES: [&str; 3] = ["x", "y", "z"];

/// Returns a deck in which a stream along `axis` carries a transverse field of a large pressure into a box without a field. Its pressure
/// balances the field, so that the profile moves without a change. `side` is the face through which it enters.
fn stream(axis: usize, side: usize, cells: usize) -> String {
    let [n, b, c] = [0, 1, 2].map(|step| AXES[(axis + step) % 3]);
    let (sign, towards) = [(1, '+'), (-1, '-')][side];
    // distance behind the front of the profile
    let behind = format!("(t - (0.5 {towards} {n}))");
    let [first, second] = profile_texts(&behind);
    let number = |of: usize, along: usize| if of == axis { along } else { 8 };
    let count: Vec<usize> = (0..3).map(|a| number(a, cells)).collect();
    let width = 8.0 / cells as f64;
    let edge = |of: usize| if of == axis { 0.5 } else { 0.5 * width };
    let [x, y, z] = [0, 1, 2].map(edge);
    let (open, other) = (["inflow", "outflow"][side], ["outflow", "inflow"][side]);
    format!(
        r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "2"
velocity_{n} = "{sign}"
[domain]
cells      = {count:?}
left_edge  = [-{x}, -{y}, -{z}]
right_edge = [{x}, {y}, {z}]
boundary   = {{ {n} = ["{open}", "{other}"], {b} = "periodic", {c} = "periodic" }}
[inflow.{n}_{}]
density     = "1"
pressure    = "2 - 0.5*(({first})^2 + ({second})^2)"
velocity_{n} = "{sign}"
magnetic_{b} = "{first}"
magnetic_{c} = "{second}"
[time]
end     = 0.5
courant = 0.4
[mesh]
[mhd]
method = "ct"
"#,
        ["lower", "upper"][side]
    )
}

/// Returns the formulas of both transverse components, at a distance `s` behind the front.
fn profile_texts(s: &str) -> [String; 2] {
    [
        format!("if({s} > 0, 0.8*sin(2*pi*{s})^2, 0)"),
        format!("if({s} > 0, 0.6*sin(4*pi*{s})*sin(2*pi*{s}), 0)"),
    ]
}

/// Returns both transverse components at a distance `s` behind the front.
fn profile(s: f64) -> [f64; 2] {
    let wave = |turns: f64| (turns * std::f64::consts::PI * s).sin();
    match s > 0.0 {
        true => [0.8 * wave(2.0).powi(2), 0.6 * wave(4.0) * wave(2.0)],
        false => [0.0; 2],
    }
}

/// Returns the mean distances of both components of the field in [`stream`] from the exact ones at the end, and the largest divergence.
fn stream_error(axis: usize, side: usize, cells: usize) -> [f64; 3] {
    let mut stepper = Stepper::new(&stream(axis, side, cells), &[]);
    let state = stepper.finish().state();
    let mut error = [0.0; 2];
    let mut count = 0.0;
    state.each_leaf_cell(|_, centre, _, u| {
        let along = [1.0, -1.0][side] * centre[axis];
        let exact = profile(0.5 - (0.5 + along));
        for (n, exact) in exact.into_iter().enumerate() {
            error[n] += (u[5 + (axis + 1 + n) % 3] - exact).abs();
        }
        count += 1.0;
    });
    assert_eq!(stepper.counters().fallback_cells, 0);
    let [divergence] = stepper.columns(["divergence_error"]);
    [error[0] / count, error[1] / count, divergence]
}

/// The field enters with the gas, through every face alike.
#[test]
fn a_stream_carries_its_field_into_the_box() {
    let [fine, second, divergence] = stream_error(0, 0, 64);
    let [coarse, ..] = stream_error(0, 0, 32);
    println!("{fine:e} {second:e}, of 32 cells {coarse:e}, divergence {divergence:e}");
    assert!(fine < 2.5e-3 && second < 4e-3, "{fine:e} {second:e}");
    assert!(fine < 0.4 * coarse, "{fine:e} {coarse:e}");
    assert!(divergence < 1e-13, "{divergence:e}");
    for (axis, side) in [(0, 1), (1, 0), (2, 1)] {
        let [first, other, divergence] = stream_error(axis, side, 64);
        assert!((first - fine).abs() < 1e-12, "{axis} {side}: {first:e}");
        assert!((other - second).abs() < 1e-12, "{axis} {side}: {other:e}");
        assert!(divergence < 1e-13, "{axis} {side}: {divergence:e}");
    }
}

/// A weak magnetic loop that enters the box through its lower x face, on levels that follow it. Its field is the curl of
/// `1e-3*exp(-50*((x - c)^2 + y^2))` along z, with `c = t - 0.9`.
const LOOP: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "1"
velocity_x = "1"
vector_potential_z = "1e-3*exp(-50*((x + 0.9)^2 + y*y))"
[domain]
cells      = [16, 16, 8]
left_edge  = [-0.5, -0.5, 0.0]
right_edge = [0.5, 0.5, 0.5]
boundary   = { x = ["inflow", "outflow"], y = "periodic", z = "periodic" }
[inflow.x_lower]
density    = "1"
pressure   = "1"
velocity_x = "1"
magnetic_x = "-0.1*y*exp(-50*((x + 0.9 - t)^2 + y*y))"
magnetic_y = "0.1*(x + 0.9 - t)*exp(-50*((x + 0.9 - t)^2 + y*y))"
[time]
end     = 0.9
courant = 0.4
[mesh]
max_level = 1
refine = [{ criterion = "threshold", field = "magnetic_energy", threshold = 2e-6 }]
[mhd]
method = "ct"
"#;

/// The loop enters without a divergence, also its field normal to the face, which changes by the electric field there.
#[test]
fn a_loop_enters_on_moving_levels() {
    let mut stepper = Stepper::new(LOOP, &[]);
    let mut most = 0.0f64;
    while stepper.time() < 0.9 {
        stepper.steps(1);
        let [divergence] = stepper.columns(["divergence_error"]);
        most = most.max(divergence);
    }
    let state = stepper.state();
    assert!(state.counts()[1] > 16, "{:?}", state.counts());
    let (mut error, mut norm, mut volume) = ([0.0; 2], [0.0; 2], 0.0);
    state.each_leaf_cell(|level, [x, y, _], _, u| {
        let part = 0.125f64.powi(level as i32);
        let envelope = 0.1 * (-50.0 * (x * x + y * y)).exp();
        let exact = [-y * envelope, x * envelope];
        for n in 0..2 {
            error[n] += part * (u[5 + n] - exact[n]).abs();
            norm[n] += part * exact[n].abs();
        }
        volume += part;
    });
    let relative = [error[0] / norm[0], error[1] / norm[1]];
    println!("errors {relative:?}, divergence {most:e}");
    assert!(relative[0] < 0.09 && relative[1] < 0.15, "{relative:?}");
    assert!(most < 1e-13, "{most:e}");
}

/// The loop when it passes the face, on fine patches there.
const PASSES: [&str; 1] = ["initial.vector_potential_z=1e-3*exp(-50*((x + 0.5)^2 + y*y))"];

#[test]
fn the_number_of_ranks_does_not_matter() {
    let alone = Stepper::new(LOOP, &PASSES).steps(4).state();
    assert!(alone.counts()[1] > 0);
    for ranks in [2, 3] {
        let joint = on_ranks(ranks, LOOP, &PASSES, |stepper| stepper.steps(4).state());
        assert_eq!(alone.difference(&joined(joint)), None, "{ranks} ranks");
    }
}

/// With an inflow through two faces, a wall and an open face: faces beyond two of them have the mean of both inflows, or a mirror image.
const EVERYTHING: [&str; 5] = [
    "time.max_steps=3",
    "domain.boundary={ x = [\"inflow\", \"outflow\"], y = [\"inflow\", \"reflecting\"], z = [\"diode\", \"outflow\"] }",
    "inflow.y_lower={ density = \"1\", pressure = \"1\", velocity_x = \"1\", velocity_y = \"0.3\", magnetic_z = \"1e-3*sin(x + t)\" }",
    "run.precision=single",
    "hydro.riemann=hlle",
];

#[test]
fn runs_on_the_device_have_the_bits_of_the_cpu() {
    if !emulation() {
        return;
    }
    agree(LOOP, &[&PASSES[..], &["time.max_steps=3"]].concat());
    agree(LOOP, &[&PASSES[..], &EVERYTHING].concat());
}

#[test]
fn a_partly_closed_inflow_is_refused() {
    let setting = "inflow.x_lower.where=y > 0";
    let refused = App::default().simulation(deck(LOOP, &[setting]));
    let error = refused.map(|_| ()).expect_err(setting).to_string();
    assert!(error.contains("inflow.x_lower.where"), "{error}");
}

/// A field that differs between opposite faces of the domain.
const OPEN: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "1"
vector_potential_z = "0.1*x*y"
[domain]
cells      = [16, 8, 8]
boundary   = "outflow"
[time]
max_steps = 1
end       = 1.0
[mesh]
[mhd]
method = "ct"
[output]
final = true
"#;

/// Faces that become periodic must hold the same field. A run that changes its boundaries otherwise continues.
#[test]
fn faces_that_become_periodic_are_compared() {
    let scratch = Scratch::new();
    let go = |resume: bool, text: &str, settings: &[&str]| {
        let settings = [&["output.initial=true", "output.final=true"], settings].concat();
        run_into(scratch.path(), resume, text, &settings).map_err(|e| e.to_string())
    };
    go(false, OPEN, &[]).unwrap_or_else(|e| panic!("{e}"));
    let more = "time.max_steps=2";
    let refused =
        |text: &str, settings: &[&str]| go(true, text, settings).map(|_| ()).expect_err("refused");
    // a deck with other boundaries needs consent
    let why = refused(&OPEN.replace("\"outflow\"", "\"periodic\""), &[more]);
    assert!(why.contains("--set domain.boundary"), "{why}");
    let why = refused(OPEN, &[more, "domain.boundary=periodic"]);
    assert!(
        why.contains("magnetic_y_face on the periodic face"),
        "{why}"
    );
    assert!(why.contains("keep the `domain.boundary`"), "{why}");
    // along z the field is the same on both faces
    let along_z = "domain.boundary={ x = \"outflow\", y = \"outflow\", z = \"periodic\" }";
    go(true, OPEN, &[more, along_z]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(scratch.path()).len(), 3);
}

/// A current sheet: the field `tanh(10 x)` along y.
const SHEET: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "1"
magnetic_y = "tanh(10*x)"
[domain]
cells      = [64, 8, 8]
left_edge  = [-2.0, 0.0, 0.0]
right_edge = [2.0, 0.5, 0.5]
boundary   = { x = "outflow", y = "periodic", z = "periodic" }
[time]
end = 1.0
[mesh]
max_level   = 1
flag_buffer = 0
refine      = [{ criterion = "current", threshold = 0.1 }]
[mhd]
method = "ct"
"#;

/// The criterion refines the patches in which the curl of the field is as large as its formula says.
#[test]
fn current_sheets_are_refined() {
    let refined = |setting: &str| {
        let state = Stepper::new(SHEET, &[setting]).state();
        let fine = state.levels[1].keys().map(|index| index[0] / 2);
        fine.collect::<std::collections::BTreeSet<_>>()
    };
    let width = 4.0 / 64.0;
    let wanted = |threshold: f64, least: f64| {
        let flagged = (0..64).filter(|cell| {
            let x = -2.0 + (f64::from(*cell) + 0.5) * width;
            let field = (10.0 * x).tanh();
            let curl = (10.0 * (x + width)).tanh() - (10.0 * (x - width)).tanh();
            0.5 * curl > threshold * field.abs().max(least)
        });
        flagged.map(|cell| cell / 8).collect()
    };
    assert_eq!(refined("mesh.max_level=1"), wanted(0.1, 0.0));
    assert_eq!(wanted(0.1, 0.0).len(), 2);
    let faint = "mesh.refine=[{ criterion = \"current\", threshold = 1e-7 }]";
    assert_eq!(refined(faint), wanted(1e-7, 0.0));
    let strong = "mesh.refine=[{ criterion = \"current\", threshold = 0.1, least = 10 }]";
    assert_eq!(refined(strong), wanted(0.1, 10.0));
    assert!(wanted(0.1, 10.0).is_empty() && wanted(1e-7, 0.0).len() > 2);
    let without = SHEET
        .replace("[mhd]\nmethod = \"ct\"\n", "")
        .replace("magnetic_y", "velocity_y");
    let error = App::default()
        .simulation(deck(&without, &[]))
        .map(|_| ())
        .expect_err("refused");
    assert!(error.to_string().contains("[mhd]"), "{error}");
}
