//! Programs of one's own run as the command does: they tell how it goes, end resumably on a signal, and go on.

use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, build};
use nestar_tests::runs::{digests, run_into};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const STEPS: &str = "time.max_steps=60";

/// The program: `Simulation::run`, or `resume` if it is asked to, into a directory that its parent names.
#[test]
#[ignore = "a program that other tests start"]
fn program() {
    let Ok(directory) = std::env::var("NESTAR_TEST_LIBRARY") else {
        return;
    };
    let output = format!("output.directory={directory}");
    let mut sim = build(BLAST, &[&output, STEPS, "output.final=true"]);
    let result = match std::env::var_os("NESTAR_TEST_RESUME") {
        Some(_) => sim.resume(),
        None => sim.run(),
    };
    let summary = result.unwrap_or_else(|e| panic!("{e}"));
    println!("interrupted: {}", summary.interrupted);
}

fn start(directory: &Path, resume: bool) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command
        .args(["--ignored", "--exact", "--nocapture", "library::program"])
        .env("NESTAR_TEST_LIBRARY", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if resume {
        command.env("NESTAR_TEST_RESUME", "1");
    }
    command.spawn().expect("the program starts")
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_program_of_ones_own_shows_progress_ends_on_a_signal_and_resumes_to_the_same_bits() {
    let scratch = Scratch::new();
    let (whole, cut) = (scratch.path().join("whole"), scratch.path().join("cut"));
    run_into(&whole, false, BLAST, &[STEPS, "output.final=true"]).unwrap_or_else(|e| panic!("{e}"));
    let child = start(&cut, false);
    let begun = Instant::now();
    let rows =
        || std::fs::read_to_string(cut.join("diagnostics.csv")).map_or(0, |t| t.lines().count());
    while rows() < 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no root step");
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill is there").success());
    let output = child.wait_with_output().expect("the program ends");
    let text = told(&output);
    for words in [
        "interrupted: true",
        "stops after this root step",
        "the method `resume`",
        "cells/s",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(output.status.success(), "{text}");
    let output = start(&cut, true)
        .wait_with_output()
        .expect("the program ends");
    let text = told(&output);
    assert!(
        text.contains("interrupted: false") && text.contains("done: step 60"),
        "{text}"
    );
    let log = std::fs::read_to_string(cut.join("run.log")).expect("a log");
    assert!(log.contains("step 60 "), "{log}");
    let last = |run: &Path| digests(run).pop().map(|(_, digest)| digest);
    assert_eq!(last(&cut), last(&whole));
}
