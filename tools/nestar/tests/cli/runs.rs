//! Tests of runs: files, signals and resuming.

use crate::{BLAST, Outcome, Place};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_run_writes_its_files_and_prints_a_summary() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&["run", "deck.toml"]);
    outcome.has_status(0).tells(&[
        "nestar 0.",
        "deck deck.toml",
        "device: CPU",
        "precision: double",
        "320.0 KiB for the fields of the root grid (8 patches)",
        "time by plugin: ",
        "done: step 12",
    ]);
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
    let log = place.read("run/run.log");
    let steps: Vec<&str> = log.lines().filter(|l| l.starts_with("step ")).collect();
    assert_eq!(steps.len(), 12, "{log}");
    assert!(
        steps[0].contains("(courant)") && steps[0].contains("patches 8 "),
        "{log}"
    );
    assert!(log.contains("done: step 12"), "{log}");
    // header, initial state and one row per root step
    assert_eq!(place.read("run/diagnostics.csv").lines().count(), 14);
    assert!(place.read("run/run.toml").contains("max_steps = 12"));
}

#[test]
fn a_healthy_run_outlives_a_short_watchdog() {
    let place = Place::with(BLAST);
    let run = |limit: &str| {
        let limit = format!("run.watchdog={limit}");
        place.nestar(&["run", "deck.toml", "--set", &limit])
    };
    run("2").has_status(0);
    for wrong in ["-1", "nan", "1e8", "'off'"] {
        run(wrong).has_status(2).complains(&["watchdog"]);
    }
}

#[test]
fn a_quiet_run_prints_nothing_and_writes_the_given_log() {
    let place = Place::with(BLAST);
    let arguments = [
        "run",
        "deck.toml",
        "--quiet",
        "--log",
        "here.log",
        "--output",
        "there",
    ];
    let outcome = place.nestar(&arguments);
    outcome.has_status(0);
    assert_eq!((&*outcome.out, &*outcome.err), ("", ""));
    assert!(place.read("here.log").contains("step 12 "));
    assert!(place.0.join("there/snapshots").is_dir());
    assert!(!place.0.join("there/run.log").exists() && !place.0.join("run").exists());
}

#[test]
fn one_digest_for_any_number_of_threads() {
    let place = Place::with(BLAST);
    for threads in ["1", "2"] {
        let arguments = [
            "run",
            "deck.toml",
            "--threads",
            threads,
            "--output",
            threads,
            "--audit",
        ];
        let outcome = place.nestar(&arguments);
        outcome
            .has_status(0)
            .tells(&[&format!("threads: {threads},")]);
    }
    assert_eq!(place.digest("1"), place.digest("2"));
}

#[test]
fn ranks_of_one_process_share_a_run_and_resume() {
    let place = Place::with(BLAST);
    let run = |more: &[&str]| {
        let outcome = place.nestar(&[&["run", "deck.toml"], more].concat());
        outcome.has_status(0);
        outcome
    };
    run(&["--output", "alone"]);
    let short = ["--output", "shared", "--set", "time.max_steps=5"];
    let first = run(&[&short[..], &["--ranks", "3"]].concat());
    first.tells(&["ranks: 3, 3 on this host, connected by threads"]);
    assert_eq!(
        first.err.matches("done: step 5").count(),
        1,
        "{}",
        first.err
    );
    let more = ["--output", "shared", "--resume", "--ranks", "2"];
    run(&more).tells(&[
        "continues from shared/snapshots/000001.zarr",
        "done: step 12",
    ]);
    assert_eq!(place.digest("shared"), place.digest("alone"));
    let log = place.read("shared/run.log");
    assert_eq!(log.lines().filter(|l| l.starts_with("step ")).count(), 12);
    assert_eq!(place.read("shared/diagnostics.csv").lines().count(), 14);
}

#[test]
fn resuming_without_a_run_starts_from_the_beginning_with_a_message() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&["run", "deck.toml", "--resume", "--set", "time.max_steps=1"]);
    outcome
        .has_status(0)
        .tells(&["no snapshot in run: starts from the beginning"]);
}

/// Refinement to 256 patches of level 1 from step 3, with a memory limit of 5 MiB that suffices before.
const LATE: [&str; 8] = [
    "--set",
    "mesh.flag_buffer=0",
    "--set",
    "domain.cells=[32, 32, 32]",
    "--set",
    "mesh.refine=[{ criterion = \"formula\", when = \"t > 0.0025 and x > 0\" }]",
    "--set",
    "time.max_step=0.001",
];

#[test]
fn a_run_out_of_memory_prints_a_remedy_and_is_resumed_or_capped() {
    let place = Place::with(BLAST);
    let run = |more: &[&str]| {
        let common = ["run", "deck.toml", "--set", "mesh.regrid_interval=1"];
        place.nestar(&[&common[..], &LATE, more].concat())
    };
    let limited = ["--set", "run.memory_limit=6"];
    run(&limited).has_status(4).complains(&[
        "with 256 new patches of level 1 the fields need 15.1 MiB, run.memory_limit allows 6.0 MiB",
        "a larger run.memory_limit (MiB)",
        "run.out_of_memory = \"cap\"",
        "--set run.memory_limit=6 --resume --set run.memory_limit=16",
    ]);
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
    let more = ["--resume", "--set", "run.memory_limit=16"];
    run(&[&limited[..], &more].concat())
        .has_status(0)
        .tells(&["continues from run/snapshots/000001.zarr", "done: step 12"]);
    let capped = [&limited[..], &["--set", "run.out_of_memory=cap"]].concat();
    let outcome = run(&[&capped[..], &["--output", "capped"]].concat());
    let note = "note: goes on with the patches that fit";
    outcome.has_status(0).tells(&[note]);
    assert_eq!(outcome.err.matches(note).count(), 1, "{}", outcome.err);
    let log = place.read("capped/run.log");
    assert!(log.contains("patches 64 64  capped 24  "), "{log}");
    place.nestar(&["info", "capped"]).has_status(0);
}

#[test]
fn a_check_reports_an_initial_hierarchy_that_does_not_fit() {
    let place = Place::with(BLAST);
    let cells = "domain.cells=[32, 32, 32]";
    let changes = ["--set", cells, "--set", "run.memory_limit=6"];
    let check = place.nestar(&[&["check", "deck.toml"][..], &changes].concat());
    check.has_status(0);
    for text in [
        "# a run would not start (the root grid fits): too little memory: with ",
        "#     0        64 ",
        "#   2 Fluid",
    ] {
        assert!(check.out.contains(text), "no {text:?} in\n{}", check.out);
    }
    let run = place.nestar(&[&["run", "deck.toml"][..], &changes].concat());
    run.has_status(4)
        .complains(&["run.memory_limit allows 6.0 MiB"]);
    assert!(!place.0.join("run/snapshots").exists());
}

/// Waits until `done` returns `true`, or panics after a generous time limit.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited too long for {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    kill("-TERM", &[&child.id().to_string()]);
}

#[cfg(unix)]
fn kill(signal: &str, targets: &[&str]) {
    let mut command = Command::new("kill");
    let status = command.arg(signal).arg("--").args(targets).status();
    assert!(status.expect("kill is there").success());
}

/// `timeout` and batch systems signal a program and then its process group.
#[cfg(unix)]
#[test]
fn signals_to_a_program_and_its_group_are_one_request() {
    use std::os::unix::process::CommandExt as _;
    for signal in ["-TERM", "-INT", "-HUP", "-USR1"] {
        let place = Place::with(BLAST);
        let long = ["--set", "time.max_steps=1000000", "--set", "time.end=1e9"];
        // also where the tests run under nohup
        let mut command = Command::new("env");
        command.current_dir(&place.0);
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_nestar")]);
        command.args([&["run", "deck.toml"][..], &long].concat());
        let child = command.stderr(Stdio::piped()).process_group(0).spawn();
        let child = child.expect("the program starts");
        let log = place.0.join("run/run.log");
        let stepped = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("step 2 "));
        wait_until("two steps", stepped);
        let id = child.id().to_string();
        kill(signal, &[&id, &format!("-{id}"), &id]);
        let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
        outcome
            .has_status(3)
            .tells(&["interrupted at step", "the snapshot is in"]);
        assert_eq!(place.snapshots("run").len(), 2, "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn a_terminated_run_is_resumed_to_the_digest_of_an_uninterrupted_one() {
    let place = Place::with(BLAST);
    let more = ["--set", "time.max_steps=60"];
    let run =
        |output: &'static str| [&["run", "deck.toml", "--output", output][..], &more].concat();
    place.nestar(&run("whole")).has_status(0);
    let mut command = place.command(&run("cut"));
    let child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let diagnostics = place.0.join("cut/diagnostics.csv");
    let rows = || std::fs::read_to_string(&diagnostics).map_or(0, |text| text.lines().count());
    wait_until("three root steps", || rows() > 4);
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    let command = "nestar run deck.toml --output cut --set time.max_steps=60 --resume";
    outcome
        .has_status(3)
        .tells(&["interrupted at step", command]);
    assert_eq!(place.snapshots("cut"), ["000000.zarr", "000001.zarr"]);
    place.nestar(&["info", "cut"]).has_status(0);
    let resumed = place.nestar(&[&run("cut")[..], &["--resume", "--threads", "1"]].concat());
    resumed
        .has_status(0)
        .tells(&["continues from cut/snapshots/000001.zarr"]);
    assert_eq!(place.digest("cut"), place.digest("whole"));
    assert_eq!(rows(), 62);
    let log = place.read("cut/run.log");
    assert!(
        log.contains("interrupted at step") && log.contains("done: step 60"),
        "{log}"
    );
}

#[cfg(unix)]
#[test]
fn snapshots_that_are_removed_from_a_run_are_noticed_and_written_again() {
    let place = Place::with(BLAST);
    let arguments = [
        "run",
        "deck.toml",
        "--set",
        "time.max_steps=100000",
        "--set",
        "time.end=1000",
        "--set",
        "mesh.max_level=0",
    ];
    let mut command = place.command(&arguments);
    let child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let there = |number: &str| place.0.join("run/snapshots").join(number).exists();
    wait_until("the first snapshot", || there("000000.zarr"));
    // rename, because the run may write files during a recursive removal
    std::fs::rename(place.0.join("run/snapshots"), place.0.join("gone")).expect("it can go");
    wait_until("another one", || there("000001.zarr"));
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    outcome
        .has_status(3)
        .tells(&["snapshots/000000.zarr was removed: writes another"]);
    place.nestar(&["info", "run"]).has_status(0);
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_the_program_at_once_also_where_its_threads_are_ranks() {
    second_signal("1");
    second_signal("2");
}

#[cfg(unix)]
fn second_signal(ranks: &str) {
    // one root step takes longer than the second within which signals belong to one request
    let place = Place::with(BLAST);
    let big = [
        "run",
        "deck.toml",
        "--set",
        "mesh.max_level=4",
        "--threads",
        "1",
        "--ranks",
        ranks,
    ];
    let mut command = place.command(&big);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    while !said.contains("step 1 ") {
        assert!(lines.read_line(&mut said).expect("a line") > 0, "{said}");
    }
    // the next root step, which takes seconds, must have begun
    std::thread::sleep(Duration::from_millis(300));
    terminate(&child);
    while !said.contains("another signal ends the program at once") {
        assert!(lines.read_line(&mut said).expect("a line") > 0, "{said}");
    }
    std::thread::sleep(Duration::from_millis(1000));
    terminate(&child);
    let status = child.wait().expect("the program ends");
    assert_eq!(status.code(), Some(143), "{said}");
}

/// Starts a long run and waits until it has taken two root steps.
#[cfg(unix)]
fn long_run(place: &Place, more: &[&str]) -> Child {
    let long = ["--set", "time.max_steps=1000000", "--set", "time.end=1e9"];
    let mut command = place.command(&[&["run", "deck.toml"][..], &long, more].concat());
    let child = command.stderr(Stdio::piped()).spawn();
    let log = place.0.join("run/run.log");
    let stepped = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("step 2 "));
    wait_until("two steps", stepped);
    child.expect("the program starts")
}

#[cfg(unix)]
#[test]
fn a_signal_or_a_file_causes_a_snapshot_of_a_run_that_goes_on() {
    for ranks in ["1", "2"] {
        let place = Place::with(BLAST);
        let child = long_run(&place, &["--ranks", ranks]);
        let count = || {
            place
                .snapshots("run")
                .iter()
                .filter(|name| name.ends_with("1.zarr"))
                .count()
        };
        kill("-USR2", &[&child.id().to_string()]);
        wait_until("a snapshot by the signal", || count() == 1);
        place.write("run/NOW", "");
        let second = place.0.join("run/snapshots/000002.zarr");
        wait_until("a snapshot by the file", || second.is_dir());
        assert!(!place.0.join("run/NOW").exists());
        terminate(&child);
        let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
        outcome.has_status(3);
        assert_eq!(place.snapshots("run").len(), 4);
        let verified = place.nestar(&["verify", "run"]);
        verified.has_status(0);
    }
}

#[cfg(unix)]
#[test]
fn a_request_that_cannot_be_removed_is_reported_once() {
    let place = Place::with(BLAST);
    std::fs::create_dir_all(place.0.join("run/NOW/inside")).expect("a folder");
    let child = long_run(&place, &[]);
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    outcome
        .has_status(3)
        .tells(&["warning: cannot remove run/NOW"]);
    assert_eq!(outcome.err.matches("run/NOW").count(), 1, "{}", outcome.err);
    assert_eq!(place.snapshots("run").len(), 2);
}

/// A gas whose pressure is a function of a table beside the deck, in a run with units.
const WITH_FILE: &str = r#"
scenario = "formula"
[units]
length = "kpc"
mass = "1e10 Msun"
velocity = "km/s"
[tables]
profile = { file = "profile.txt", x = "radius", y = "pressure" }
[initial]
density = "0.1*mH/cm3"
pressure = "profile(r)*k_B/cm3"
[domain]
cells = [16, 16, 16]
[time]
end = "10 Myr"
max_steps = 2
[output]
directory = "run"
"#;

#[test]
fn a_run_with_files_continues_and_is_drawn_from_any_place() {
    let place = Place::with(WITH_FILE);
    place.write("profile.txt", "radius pressure\n0 8000\n1 4000\n3 4000\n");
    let run = place.nestar(&["run", "deck.toml"]);
    run.has_status(0)
        .tells(&[" of 1e1 Myr  dt ", "done: step 2, time "]);
    let elsewhere = Place::new();
    let path = |name: &str| place.0.join(name).to_string_lossy().into_owned();
    let run = path("run");
    let plot = [
        "plot",
        &run,
        "--field",
        "temperature_k",
        "--slice",
        "300 pc",
        "-o",
        "t.png",
    ];
    elsewhere.nestar(&plot).has_status(0);
    let resumed = elsewhere.nestar(&[
        "run",
        &path("run/run.toml"),
        "--resume",
        "--set",
        "time.max_steps=3",
    ]);
    resumed.has_status(0).tells(&["done: step 3"]);
    for (slice, why) in [
        (
            "20 Myr",
            "--slice: must be a length, but \"20 Myr\" is a time",
        ),
        (
            "3 kpc",
            "the slice must lie in the domain: z from 0 to 1 kpc",
        ),
        ("nonsense", "--slice: \"nonsense\" is no number"),
    ] {
        let wrong = place.nestar(&["plot", "run", "--slice", slice]);
        wrong.has_status(2).complains(&[why]);
    }
    let info = place.nestar(&["info", "run"]);
    info.has_status(0).prints(&[
        "domain [0, 1] x [0, 1] x [0, 1] kpc",
        " g/cm3 ",
        " Msun",
        " Myr, step 3",
    ]);
    let cgs = place.nestar(&["info", "run", "--units", "cgs"]);
    cgs.prints(&["domain [0, 3.0856775814914e21]"]);
    let code = place.nestar(&["info", "run", "--units", "code"]);
    code.prints(&[
        "domain [0, 1] x [0, 1] x [0, 1], 16 x 16",
        " mass/length**3 ",
    ]);
}

/// Returns `true` if a process handles SIGTERM.
#[cfg(target_os = "linux")]
fn handles_sigterm(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> 14 & 1 == 1)
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_during_the_set_up_stops_the_run_with_a_snapshot() {
    let place = Place::new();
    // the set-up of equilibrium spheres takes a second
    let small = ["constants.n=2000", "constants.cells=16", "mesh.max_level=1"];
    let sets = small.iter().flat_map(|change| ["--set", change]);
    let arguments: Vec<&str> = ["run", "cluster-merger", "--output", "run"]
        .into_iter()
        .chain(sets)
        .collect();
    let child = place.command(&arguments).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    wait_until("a handler of signals", || handles_sigterm(&child));
    assert!(!place.0.join("run").exists(), "the set-up is over");
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    outcome.has_status(3).tells(&["interrupted at step 0"]);
    assert_eq!(place.snapshots("run"), ["000000.zarr"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_ends_its_run_with_a_snapshot() {
    let place = Place::with(BLAST);
    let values = [
        "--set",
        "time.max_steps=1000000,1000001",
        "--set",
        "time.end=1e9",
    ];
    let sweep = ["sweep", "deck.toml", "--output", "all"];
    let mut command = place.command(&[&sweep[..], &values].concat());
    let child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let child = child.expect("the program starts");
    let run = "all/time.max_steps=1000000,time.end=1e9";
    let log = place.0.join(run).join("run.log");
    wait_until("two steps", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("step 2 "))
    });
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    outcome
        .has_status(3)
        .tells(&["interrupted at step", "the same command continues it"]);
    assert_eq!(place.snapshots(run).len(), 2);
    assert_eq!(place.read("all/sweep.csv").lines().count(), 2);
    let missing = place.nestar(&["sweep", "nothing", "--set", "a=1", "--output", "other"]);
    missing
        .has_status(2)
        .complains(&["with the name `nothing`; `nestar deck` lists all"]);
    assert!(!place.0.join("other").exists());
}
