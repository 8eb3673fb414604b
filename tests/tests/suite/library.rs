//! A program that uses the library runs like the command: it reports progress, stops resumably on a signal, and resumes bitwise.

use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, build};
use nestar_tests::runs::{digests, run_into};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SETTINGS: [&str; 3] = ["time.max_steps=40", "mesh.max_level=1", "output.final=true"];

/// The program: it runs, or resumes where `NESTAR_TEST_RESUME` says so, in the directory that the other test names.
#[test]
#[ignore = "a program that another test starts"]
fn program() {
    let Ok(directory) = std::env::var("NESTAR_TEST_LIBRARY") else {
        return;
    };
    let output = format!("output.directory={directory}");
    let mut sim = build(BLAST, &[&SETTINGS[..], &[&output]].concat());
    let result = match std::env::var_os("NESTAR_TEST_RESUME") {
        Some(_) => sim.resume(),
        None => sim.run(),
    };
    let summary = result.unwrap_or_else(|e| panic!("{e}"));
    eprintln!("interrupted: {}", summary.interrupted);
}

fn start(directory: &Path, resume: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "--nocapture", "library::program"])
        .env("NESTAR_TEST_LIBRARY", directory)
        .envs(resume.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits for the program; checks that it succeeds and prints all `words`.
fn tells(program: Child, words: &[&str]) {
    let output = program.wait_with_output().expect("the program ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    for word in words {
        assert!(told.contains(word), "no {word:?} in {told}");
    }
}

#[test]
fn a_library_program_reports_progress_stops_on_a_signal_and_resumes_identically() {
    let scratch = Scratch::new();
    let [whole, cut] = ["whole", "cut"].map(|name| scratch.path().join(name));
    run_into(&whole, false, BLAST, &SETTINGS).unwrap_or_else(|e| panic!("{e}"));
    let program = start(&cut, &[]);
    let begun = Instant::now();
    let table = || std::fs::read_to_string(cut.join("diagnostics.csv")).unwrap_or_default();
    while table().lines().count() < 5 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no root step");
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = program.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill is there").success());
    let told = [
        "step ",
        "interrupted at step",
        "calling `resume`",
        "interrupted: true",
    ];
    tells(program, &told);
    let resumed = start(&cut, &[("NESTAR_TEST_RESUME", "1")]);
    tells(resumed, &["done: step 40", "interrupted: false"]);
    let log = std::fs::read_to_string(cut.join("run.log")).expect("a log");
    assert!(
        log.contains("interrupted at step") && log.contains("step 40 "),
        "{log}"
    );
    let last = |run: &Path| digests(run).pop();
    let [cut, whole] = [&cut, &whole].map(|run| last(run).map(|(_, digest)| digest));
    assert_eq!(cut, whole);
}
