//! Tests of `tools/python/scaling.py` with complete and incomplete results and with wrong arguments.

use super::{Outcome, Place};
use std::path::Path;
use std::process::Command;

/// Runs the script in a folder; returns `None` without Python.
fn scaling(place: &Place, arguments: &[&str]) -> Option<Outcome> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/scaling.py");
    let mut command = Command::new("python3");
    let command = command.current_dir(&place.0).arg(script).args(arguments);
    let run = command.output();
    let run = run.inspect_err(|e| eprintln!("skipped: no python3: {e}"));
    run.ok().map(Outcome::of)
}

/// Results of a measurement with failures: no double precision on one GPU, no profile, no slab.
const FIGURES: &str = r#"{
  "date": "2026-01-01", "gpu": "a GPU", "driver": "1.2", "program": "nestar 0", "counts": [1, 2, 4],
  "failed": [["disk", "dd: status 1\n\nno space"], ["digest | sedov.toml | 4 | mpi", "built without MPI"]],
  "strong, uniform 512^3 | single | 1": { "cell_updates_per_second": 1e9 },
  "strong, uniform 512^3 | single | 2": { "cell_updates_per_second": 1.9e9 },
  "plan | strong, uniform 512^3 | single | 2": 2.09e9,
  "strong, uniform 512^3 | double | 2": { "cell_updates_per_second": 9e8 },
  "snapshot | 1": 2.0, "snapshot | 4": 0.5,
  "digest | plummer.toml | 1 | threads": "aa", "digest | plummer.toml | 2 | threads": "bb"
}"#;

#[test]
fn tables_contain_the_measured_results() {
    let place = Place::new();
    place.write("figures.json", FIGURES);
    place.write(
        "doc.md",
        "before\n<!-- scaling: begin -->\nold\n<!-- scaling: end -->\nafter\n",
    );
    let Some(outcome) = scaling(&place, &["write", "figures.json", "doc.md"]) else {
        return;
    };
    outcome.has_status(0);
    let text = place.read("doc.md");
    let around = text.starts_with("before\n") && text.ends_with("<!-- scaling: end -->\nafter\n");
    assert!(around && !text.contains("old\n"), "{text}");
    for line in [
        "| strong, uniform 512^3 | single | 1.000e9 | 1.900e9 (95.0%), plan 2.090e9 (+10%) | - |",
        "| strong, uniform 512^3 | double | - | 9.000e8 | - |",
        "| 4 | - | - | 0.50 s (4.00 times) | - |",
        "ranks 1 by threads, 2 by threads: DIFFERENT digests",
        "Not measured: disk: no space.",
        "mpi: the program was built without MPI, or there is no launcher.",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn wrong_arguments_of_the_script_are_named() {
    let place = Place::new();
    place.write("figures.json", FIGURES);
    place.write("empty.json", "{}");
    place.write("torn.json", "{");
    place.write("doc.md", "no marks");
    for (arguments, message) in [
        (
            &["write", "empty.json", "doc.md"][..],
            "empty.json: `counts` is missing",
        ),
        (&["write", "torn.json", "doc.md"], "torn.json: Expecting"),
        (
            &["write", "figures.json", "doc.md"],
            "doc.md: the line `<!-- scaling: begin -->`",
        ),
        (&["write", "none.json", "doc.md"], "none.json"),
        (
            &["measure", "--parts", "cases,slabs"],
            "no `slabs`; known are cases, slab",
        ),
        (
            &["measure", "--cases", "blob"],
            "no `blob`; known are uniform",
        ),
        (&["measure", "--most", "0"], "--most: must be at least 1"),
    ] {
        let Some(outcome) = scaling(&place, arguments) else {
            return;
        };
        let said = outcome.err.contains(message) && !outcome.err.contains("Traceback");
        assert!(
            said && outcome.status != Some(0),
            "{arguments:?}: {outcome:?}"
        );
    }
}
