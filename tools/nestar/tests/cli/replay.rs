//! Tests of captures of failed cells, and of `nestar replay`.

use super::{Outcome, Place};
use nestar::engine::data::CellCase;
use nestar::engine::step::{Capture, Replays};

/// Deck of gas whose acceleration is so large that first-order fluxes fail too, on level 0 or 1.
const TORN: &str = r#"
scenario = "formula"

[initial]
density  = "1 + 0.5*sin(2*pi*x)"
pressure = "1 + 0.5*cos(2*pi*y)"
scalars  = { dye = "if(x < 0.5, 1, 0.25)", ink = "if(x < 0.5, 0, 0.75)" }

[domain]
cells = [16, 16, 16]

[time]
end     = 1.0
retries = 2

[mesh]
max_level = 1
refine    = [{ criterion = "sphere", centre = [0.4, 0.5, 0.5], radius = 0.2 }]

[hydro]
scalars     = ["dye", "ink"]
scalar_sets = [["dye", "ink"]]

[sources]
acceleration_x = "if(level == 0, 1, 0)*-3e4*sin(2*pi*(x + 0.1*y))"
limit          = 0.0

[run]
threads = 1
"#;

/// Runs the deck until it fails, and returns its capture.
fn torn(place: &Place, name: &str, more: &[&str]) -> String {
    let arguments = ["run", "deck.toml", "--output", name, "--quiet"];
    let outcome = place.nestar(&[&arguments[..], more].concat());
    let path = format!("is saved in {name}/capture.toml: ");
    outcome
        .has_status(1)
        .complains(&[&path, "the command `replay` repeats the step"]);
    place.read(&format!("{name}/capture.toml"))
}

fn replay(place: &Place, name: &str, more: &[&str]) -> Outcome {
    let file = format!("{name}/capture.toml");
    place.nestar(&[&["replay", &file][..], more].concat())
}

/// Returns a capture without the deck, which contains the device.
fn without_deck(place: &Place, name: &str) -> Capture {
    let capture = Capture::read(&place.0.join(name).join("capture.toml"));
    Capture {
        deck: String::new(),
        ..capture.expect("a capture")
    }
}

#[test]
fn a_cell_that_ends_a_run_is_kept_and_its_step_has_the_same_bits_again() {
    let place = Place::with(TORN);
    for more in [
        &[][..],
        &["--set", "run.precision=single"],
        &["--set", "hydro.scheme=vl", "--set", "hydro.riemann=exact"],
        // on the refined level, with ghost cells from the coarser level
        &[
            "--set",
            "sources.acceleration_x=if(level == 1, 1, 0)*-3e4*(x - 0.4)",
        ],
    ] {
        torn(&place, "alone", more);
        let alone = without_deck(&place, "alone");
        replay(&place, "alone", &[]).has_status(0).prints(&[
            "before the step",
            "fluxes of the scheme",
            "pass 4: ",
            "the last pass has the bits of the run",
        ]);
        // compile a method for the emulated device only once
        let device: &[&str] = match more.contains(&"hydro.scheme=vl") {
            true => &["--ranks", "2"],
            false => &["--device", "emulated"],
        };
        for elsewhere in [&["--ranks", "3"][..], device] {
            torn(&place, "there", &[more, elsewhere].concat());
            assert_eq!(
                alone,
                without_deck(&place, "there"),
                "{more:?} {elsewhere:?}"
            );
        }
    }
}

#[test]
fn a_replay_prints_the_results_of_other_methods() {
    let place = Place::with(TORN);
    torn(&place, "run", &[]);
    let short = replay(&place, "run", &["--dt", "1e-9"]);
    short
        .has_status(0)
        .prints(&["fluxes of the scheme, 0 unphysical"]);
    let other = replay(&place, "run", &["--set", "hydro.riemann=hlle"]);
    other.has_status(0).prints(&["pass 4: "]);
    assert!(
        !other.out.contains("has the bits of the run"),
        "{}",
        other.out
    );
    let ppm = replay(&place, "run", &["--set", "hydro.reconstruction=ppm"]);
    ppm.has_status(2)
        .complains(&["the method needs 3 ghost layers, but the capture has 2"]);
    let wrong = replay(&place, "run", &["--set", "hydro.riemann=best"]);
    wrong.has_status(2).complains(&["riemann"]);
    // another run in this directory keeps the file together with the old run
    torn(&place, "run", &[]);
    assert!(place.0.join("run/earlier.1/capture.toml").exists());
}

#[test]
fn files_that_are_not_captures_are_errors() {
    let place = Place::with(TORN);
    let capture = torn(&place, "run", &[]);
    place
        .nestar(&["replay", "deck.toml"])
        .has_status(2)
        .complains(&["deck.toml is no capture"]);
    place
        .nestar(&["replay", "nowhere.toml"])
        .has_status(1)
        .complains(&["cannot read nowhere.toml"]);
    let changes = [
        (
            capture.replace("capture = 1", "capture = 7"),
            2,
            "it has version 7",
        ),
        (
            capture.replace("layers = ", "layers = 1"),
            2,
            "the number of values does not match",
        ),
        (
            capture.replace("time = ", "tim = "),
            2,
            "unknown field `tim`",
        ),
        (
            capture.replace("\ndt = ", "\ndt = 1e-3 # "),
            1,
            "differs in its bits",
        ),
    ];
    for (text, status, words) in changes {
        place.write("changed.toml", &text);
        let outcome = place.nestar(&["replay", "changed.toml"]);
        outcome.has_status(status).complains(&[words]);
    }
}

/// Deck of primordial gas whose reactions need more sub-steps than allowed.
const REACTS: &str = r#"
scenario = "formula"

[units]
length_cgs = 3.0856775814913673e18
time_cgs   = 3.15576e13
mass_cgs   = 4.91686e31

[chemistry]
species      = 6
max_substeps = 3

[initial]
density  = "1"
pressure = "1e6/115.8"

[domain]
cells      = [8, 8, 8]
right_edge = [1.6e5, 1.6e5, 1.6e5]

[hydro]
gamma = "5/3"

[time]
end = 20.0
max_steps = 1

[run]
threads = 1
"#;

#[test]
fn a_cell_that_is_not_done_is_kept_and_is_called_again_with_the_same_bits() {
    let place = Place::with(REACTS);
    let run = |name: &str, more: &[&str]| {
        let arguments = ["run", "deck.toml", "--output", name, "--quiet"];
        let outcome = place.nestar(&[&arguments[..], more].concat());
        let file = format!("{name}/unfinished-cell.toml");
        // several ranks may each write a capture, under different names
        outcome.has_status(1).complains(&[
            "`react_6` is not done after 4 calls in cell [0, 0, 0] of patch [",
            &format!("the command `replay {name}/unfinished-cell."),
            "toml` repeats the call",
        ]);
        let kept = Replays::read(&place.0.join(file)).expect("a cell");
        CellCase {
            deck: String::new(),
            why: String::new(),
            ..kept
        }
    };
    for precision in ["run.precision=double", "run.precision=single"] {
        let more = ["--set", precision];
        let alone = run("alone", &more);
        assert!(alone.calls == 4 && alone.carried[5] == 3.0, "{alone:?}");
        let file = "alone/unfinished-cell.toml";
        let again = place.nestar(&["replay", file]);
        again.has_status(0).prints(&[
            "`react_6` is not done",
            "\n5 unfinished",
            "has the bits of the run",
        ]);
        let longer = place.nestar(&["replay", file, "--set", "chemistry.max_substeps=1000"]);
        longer.has_status(0).prints(&["\n5 unfinished", " done"]);
        for elsewhere in [["--device", "emulated"], ["--ranks", "2"]] {
            let cells = [
                "--set",
                "domain.cells=[16,8,8]",
                "--set",
                "domain.right_edge=[3.2e5,1.6e5,1.6e5]",
            ];
            let there = match elsewhere[0] {
                "--ranks" => run("there", &[&more[..], &cells, &elsewhere].concat()),
                _ => run("there", &[&more[..], &elsewhere].concat()),
            };
            let place_of = |case: &CellCase| (case.state.clone(), case.carried.clone());
            assert_eq!(
                place_of(&there),
                place_of(&alone),
                "{precision} {elsewhere:?}"
            );
        }
    }
    let text = place.read("alone/unfinished-cell.toml");
    for (from, to, status, words) in [
        ("cell_case = 1", "cell_case = 7", 2, "it has version 7"),
        (
            "react_6\"",
            "react_8\"",
            2,
            "this program and deck have no sub-cycled function",
        ),
        ("\nstate = [1.0", "\nstate = [2.0", 1, "differs in its bits"),
    ] {
        place.write("changed.toml", &text.replacen(from, to, 1));
        let outcome = place.nestar(&["replay", "changed.toml"]);
        outcome.has_status(status).complains(&[words]);
    }
}

/// Deck of gas with one cell in the corner that cools to negative energy, so `sources` fails.
const COLD: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "1"

[domain]
cells = [16, 16, 16]

[time]
end       = 1.0
max_steps = 1

[sources]
heating = "if(min(x, y, z) > 0.95, -1e6, 0)"

[run]
threads = 1
"#;

#[test]
fn a_cell_that_fails_on_one_rank_ends_the_run_of_all_with_one_message_and_status_1() {
    let place = Place::with(COLD);
    for more in [
        &[][..],
        &["--ranks", "2"],
        &["--ranks", "4"],
        &["--device", "emulated"],
        &["--set", "run.precision=single"],
    ] {
        let arguments = ["run", "deck.toml", "--output", "run", "--quiet"];
        let outcome = place.nestar(&[&arguments[..], more].concat());
        outcome.has_status(1).complains(&[
            "`sources` has failed in cell [7, 7, 7] of patch [1, 1, 1] on level 0",
            "the command `replay run/unfinished-cell.toml` repeats the call",
        ]);
        let again = place.nestar(&["replay", "run/unfinished-cell.toml"]);
        again.has_status(0).prints(&["failed"]);
    }
    // an invalid formula is an error in the deck
    let formula = "sources.heating=sqrt(x - 2)";
    let outcome = place.nestar(&["run", "deck.toml", "--quiet", "--set", formula]);
    outcome.has_status(2).complains(&["sources.heating"]);
}
