//! Ghost values outside the domain do not depend on the order of the axes. A run with exchanged or mirrored axes is
//! bitwise the exchanged or mirrored run, for every combination of boundaries that meet in an edge or a corner.

use crate::boundary_plugins::program;
use crate::device_runs::emulation;
use crate::symmetry::{Change, GENERATORS, changed};
use nestar_tests::{State, Stepper};
use std::fmt::Write as _;

const AXES: [&str; 3] = ["x", "y", "z"];
const SIDES: [&str; 2] = ["lower", "upper"];
const IDENTITY: Change = Change {
    from: [0, 1, 2],
    mirrored: [false; 3],
};

/// The faces of a case, `[axis][side]`; `open` is an inflow through a part of the face.
type Faces = [[&'static str; 2]; 3];

/// Every pair of kinds meets in an edge, and triples of them in corners.
const CASES: [Faces; 6] = [
    [
        ["inflow", "outflow"],
        ["reflecting", "inflow"],
        ["periodic"; 2],
    ],
    [
        ["inflow", "diode"],
        ["inflow", "outflow"],
        ["inflow", "reflecting"],
    ],
    [
        ["open", "inflow"],
        ["open", "reflecting"],
        ["open", "diode"],
    ],
    [["diode", "open"], ["periodic"; 2], ["diode", "outflow"]],
    [
        ["open", "reflecting"],
        ["outflow", "diode"],
        ["reflecting", "inflow"],
    ],
    [
        ["leaning", "open"],
        ["reflecting", "leaning"],
        ["diode", "leaning"],
    ],
];

/// The deck of a case after a change of its axes.
fn deck(faces: &Faces, change: &Change) -> String {
    // the old coordinates in words of the new ones, and which new axis an old one is
    let now = [0, 1, 2].map(|old| {
        (0..3)
            .find(|&new| change.from[new] == old)
            .expect("an axis")
    });
    let [x, y, z] = now.map(|new| match change.mirrored[new] {
        true => format!("(-{})", AXES[new]),
        false => AXES[new].to_string(),
    });
    let velocity = |of: [String; 3]| {
        let component = |new: usize| {
            let sign = if change.mirrored[new] { "-" } else { "" };
            format!(
                "velocity_{} = \"{sign}({})\"\n",
                AXES[new], of[change.from[new]]
            )
        };
        (0..3).map(component).collect::<String>()
    };
    let mut text = format!(
        "scenario = \"formula\"
[initial]
density = \"1 + 0.3*sin(3*{x} + 5*{y}*{y} - 2*{z})\"
pressure = \"1 + 0.2*cos(4*{x} - 3*{z}*{y})\"
scalars = {{ dye = \"0.5 + {x}*{y} + 0.25*{z}\" }}
{}[hydro]
scalars = [\"dye\"]
[mesh]
max_level = 1
regrid_interval = 1
flag_buffer = 1
refine = [{{ criterion = \"formula\", when = \"max({x}*{x}, max({y}*{y}, {z}*{z})) > 0.1 && {x} + 2*{y} + 4*{z} < -1\" }}]
[time]
courant = 0.4
[run]
threads = 1
",
        velocity([format!("0.4 - {y}"), format!("0.3*{z} - 0.2"), format!("0.1 + {x}*{y}")]),
    );
    let kind = |new: usize, side: usize| {
        let old = side ^ usize::from(change.mirrored[new]);
        faces[change.from[new]][old]
    };
    text += "[domain]\ncells = [16, 16, 16]\nleft_edge = [-0.5, -0.5, -0.5]\nright_edge = [0.5, 0.5, 0.5]\n[domain.boundary]\n";
    for (new, name) in AXES.iter().enumerate() {
        let kinds = [0, 1].map(|side| match kind(new, side) {
            "open" => "inflow",
            other => other,
        });
        let _ = writeln!(text, "{name} = {kinds:?}");
    }
    for (new, side) in (0..6).map(|n| (n / 2, n % 2)) {
        let (kind, old) = (kind(new, side), change.from[new]);
        if !["inflow", "open"].contains(&kind) {
            continue;
        }
        // each face has a state of its own
        let own = 0.1 * (1 + 2 * old + (side ^ usize::from(change.mirrored[new]))) as f64;
        let _ = writeln!(text, "[inflow.{}_{}]", AXES[new], SIDES[side]);
        if kind == "open" {
            let _ = writeln!(text, "where = \"{x} + {y} + {z} < 0.1 + {own} + t\"");
        }
        let _ = write!(
            text,
            "density = \"1 + {own} + 0.3*{x}*{y} + 0.2*{z}\"\npressure = \"1.5 + {own}*{y} - 0.3*{x}*{z} + t\"\n\
             scalars = {{ dye = \"0.5 + {own}*{z}\" }}\n{}",
            velocity([
                format!("0.2 + {own}*{y}"),
                format!("{own} - {z}"),
                format!("{x} - {own}")
            ]),
        );
    }
    text
}

fn state(deck: &str, settings: &[&str]) -> State {
    let sim = program().simulation(nestar_tests::decks::deck(deck, settings));
    let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
    let state = stepper.steps(3).state();
    assert!(
        state.counts()[1] >= 8,
        "no refinement: {:?}",
        state.counts()
    );
    state
}

fn follow_the_axes(faces: &Faces, settings: &[&str]) {
    let plain = state(&deck(faces, &IDENTITY), settings);
    for change in &GENERATORS {
        let image = state(&deck(faces, change), settings);
        // changed twice as the others are, so that zeros have one sign
        if let Some(difference) = changed(&plain, change).difference(&changed(&image, &IDENTITY)) {
            let Change { from, mirrored } = change;
            panic!(
                "{faces:?} {settings:?}: axes from {from:?}, mirrored {mirrored:?}: {difference}"
            );
        }
    }
}

#[test]
fn boundary_edges_and_corners_are_symmetric_in_double_precision() {
    CASES.iter().for_each(|faces| follow_the_axes(faces, &[]));
}

#[test]
fn boundary_edges_and_corners_are_symmetric_in_single_precision() {
    let settings = ["run.precision=single", "hydro.scheme=vl"];
    CASES
        .iter()
        .for_each(|faces| follow_the_axes(faces, &settings));
}

#[test]
fn boundary_edges_and_corners_are_identical_on_a_device() {
    if !emulation() {
        return;
    }
    // every kind of face that is not periodic
    for (faces, precision) in [(&CASES[1], "double"), (&CASES[5], "single")] {
        let precision = format!("run.precision={precision}");
        let on = |device: &str| state(&deck(faces, &IDENTITY), &[&precision, device]);
        if let Some(difference) = on("run.device=cpu").difference(&on("run.device=emulated")) {
            panic!("{faces:?} {precision}: {difference}");
        }
    }
}
