//! Tests of failures: one message, one status, and no remaining process.

use crate::Case;
use crate::launcher::{Launcher, Outcome};
use crate::place::{PROGRAM, Place};
use std::process::Command;
use std::time::Duration;

/// Deck of gas at rest for one step.
const REST: &str = "
[initial]
density  = \"1\"
pressure = \"1\"

[time]
max_steps = 1
";

/// The tests.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("failures::a_mistake_in_the_deck_is_told_once", mistake),
        Case::new(
            "failures::ranks_that_mpi_does_not_connect_do_not_run",
            strangers,
        ),
        Case::new("failures::a_rank_that_fails_by_itself_ends_all", deserter),
    ]
}

fn ends_soon(outcome: &Outcome) {
    assert!(outcome.time < Duration::from_secs(30), "{:?}", outcome.time);
}

fn mistake(launcher: &Launcher) {
    let place = Place::new("mistake", "[domain]\ncels = [8, 8, 8]\n");
    let outcome = launcher.run(&place.0, 3, PROGRAM, &["run", "deck.toml"]);
    outcome
        .has_status(2)
        .complains(&["deck.toml", "cels", "cells"]);
    assert!(!outcome.err.contains("rank 0"), "{}", outcome.err);
    ends_soon(&outcome);
}

/// With a launcher of another MPI library, each process is a run on one rank.
fn strangers(_: &Launcher) {
    let place = Place::new("strangers", REST);
    let mut command = Command::new(PROGRAM);
    command.current_dir(&place.0).args(["run", "deck.toml"]);
    command.envs([("FLUX_JOB_SIZE", "2"), ("FLUX_TASK_RANK", "1")]);
    let output = command.output().expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("started 2 processes, but MPI connects 1"),
        "{message}"
    );
}

/// The last rank has no deck while the others wait for it.
fn deserter(launcher: &Launcher) {
    let place = Place::new("deserter", REST);
    let run = |ranks, deck| {
        [
            "-n", ranks, PROGRAM, "run", deck, "--quiet", "--device", "cpu",
        ]
    };
    let arguments = [&run("2", "deck.toml")[..], &[":"], &run("1", "none.toml")].concat();
    let outcome = launcher.start(&place.0, &arguments);
    outcome.complains(&["error: rank 2 of 3: ", "none.toml"]);
    assert_ne!(outcome.status, Some(0));
    ends_soon(&outcome);
}
