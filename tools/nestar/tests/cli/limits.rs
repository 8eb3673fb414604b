//! Tests of resource limits: message, snapshot if possible, and documented exit status.

use super::{BLAST, Outcome, Place};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs the program in bash after setting `limits`; other shells do not support all limits.
fn limited(place: &Place, limits: &str, arguments: &[&str]) -> Outcome {
    let program = env!("CARGO_BIN_EXE_nestar");
    let output = Command::new("bash")
        .current_dir(&place.0)
        .args(["-c", &format!("{limits} exec \"$@\""), "sh", program])
        .args(arguments)
        .output();
    Outcome::of(output.expect("bash starts"))
}

#[test]
fn an_override_with_20000_parts_is_an_error() {
    let place = Place::with(BLAST);
    let deep = format!("{}=1", vec!["a"; 20_000].join("."));
    for command in ["check", "run", "order"] {
        let outcome = place.nestar(&[command, "deck.toml", "--set", &deep]);
        outcome
            .has_status(2)
            .complains(&["a key has at most 64 parts, found 20000"]);
    }
    let nested = format!("a={}1{}", "[".repeat(20_000), "]".repeat(20_000));
    place
        .nestar(&["check", "deck.toml", "--set", &nested])
        .has_status(2);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_the_snapshots_before_stay() {
    let place = Place::with(BLAST);
    // 8 KiB are too few for all metadata
    let run = ["run", "deck.toml", "--threads", "1"];
    let outcome = limited(&place, "ulimit -f 8;", &run);
    outcome.has_status(1).complains(&["File too large"]);
    assert!(
        place
            .snapshots("run")
            .iter()
            .all(|name| !name.starts_with('0'))
    );
    place.nestar(&["run", "deck.toml"]).has_status(0);
    let picture = ["plot", "run", "--width", "2000", "-o", "a.png"];
    let outcome = limited(&place, "ulimit -f 1;", &picture);
    outcome
        .has_status(1)
        .complains(&["a.png", "File too large"]);
}

/// A box of noise on one level, whose arrays do not compress.
const NOISE: &str = r#"
scenario = "formula"
[initial]
density  = "1 + 0.5*random(3)"
pressure = "1"
[domain]
cells = [64, 64, 8]
[time]
end       = 100
max_steps = 7
[output]
directory = "run"
steps     = 4
final     = false
[[output.view]]
name   = "noise"
steps  = 1
fields = ["density"]
"#;

/// Returns the files of the view `noise` of a run, without those that contain the run's directory.
fn files_of_view(place: &Place, run: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let views = place.0.join(run).join("views");
    let (mut files, mut waiting) = (vec![], vec![views.clone()]);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let inside = path.strip_prefix(&views).expect("a view").to_path_buf();
            let of_store = inside.components().count() == 3 && inside.starts_with("noise");
            match path.is_dir() {
                true => waiting.push(path),
                false if of_store => files.push((inside, vec![])),
                false => files.push((inside, std::fs::read(path).expect("a file"))),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_view_beyond_a_limit_of_file_sizes_ends_the_run_which_goes_on_later() {
    for (kind, limit, file) in [
        (
            "kind = \"slice\"\naxis = \"z\"\nposition = 0.5\nprecision = \"double\"",
            24,
            "views/noise.zarr/density/c.5.0.0",
        ),
        (
            "kind = \"picture\"\nwidth = 1600",
            24,
            "views/noise/.000005.png.partial",
        ),
        (
            "kind = \"snapshot\"\nprecision = \"double\"",
            64,
            "views/noise/.000005.zarr.partial/level_0/density",
        ),
    ] {
        let place = Place::with(&format!("{NOISE}{kind}\n"));
        let run = |steps: &str, output: &str, more: &[&'static str]| {
            let most = format!("time.max_steps={steps}");
            let mut arguments = vec!["run", "deck.toml", "--threads", "1", "--set"];
            arguments.extend([&*most, "--output", output]);
            arguments.extend(more);
            arguments.into_iter().map(String::from).collect::<Vec<_>>()
        };
        let plain = |arguments: Vec<String>| {
            place.nestar(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        plain(run("7", "whole", &[])).has_status(0);
        plain(run("4", "run", &[])).has_status(0);
        let none = ["--resume", "--set", "output.steps=0"];
        let arguments = run("7", "run", &none);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let outcome = limited(&place, &format!("ulimit -f {limit};"), &arguments);
        outcome
            .has_status(1)
            .complains(&[file, "File too large", "raise it (ulimit -f)"]);
        assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
        plain(run("7", "run", &["--resume"])).has_status(0);
        let [whole, found] = ["whole", "run"].map(|run| files_of_view(&place, run));
        let names = |files: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
            files.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&found), names(&whole), "{kind}");
        for (one, other) in found.iter().zip(&whole) {
            assert!(one == other, "{kind}: {}", one.0.display());
        }
    }
}

#[test]
fn a_limit_of_the_address_space_is_foreseen() {
    let place = Place::with(BLAST);
    let below = |limit: &str, command: &str, cells: &str| {
        let cells = format!("domain.cells=[{cells}, {cells}, {cells}]");
        let sets = ["run.threads=1", "run.device=cpu", &cells];
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = [command, "deck.toml"].into_iter().chain(sets).collect();
        limited(&place, &format!("ulimit -v {limit};"), &arguments)
    };
    below("1000000", "run", "16").has_status(0);
    let outcome = below("1000000", "run", "256");
    outcome
        .has_status(4)
        .complains(&["too little memory", "this machine has"]);
    // less than the 313 MiB of the root grid's fields, but enough for the estimate with any number of heaps per thread
    let check = below("320000", "check", "160");
    check.has_status(0);
    for text in [
        "#     0      8000 ",
        "# a run would not start (no level fits): too little memory",
        "# duration with constant hierarchy and time step",
    ] {
        assert!(check.out.contains(text), "no {text:?} in\n{}", check.out);
    }
    let run = below("320000", "run", "160");
    run.has_status(4).complains(&["too little memory"]);
}

/// Without the handler, a refused allocation would abort the program (status 134).
#[test]
fn a_failed_allocation_anywhere_ends_the_program_with_a_message_and_a_status() {
    let place = Place::with(BLAST);
    let mut statuses = Vec::new();
    // the system maps the program and its libraries
    let program = std::fs::metadata(env!("CARGO_BIN_EXE_nestar")).expect("the program");
    let program_megabytes = program.len() / 1_000_000;
    for megabytes in (30..60).chain([60, 70, 80, 90, 120, 150, 200, 300]) {
        for threads in ["1", "4"] {
            let limits = format!("ulimit -v {megabytes}000;");
            let run = ["run", "deck.toml", "--device", "cpu", "--threads", threads];
            let outcome = limited(&place, &limits, &run);
            // the system cannot load the program or its libraries
            let began = !matches!(outcome.status, None | Some(127));
            if !began && megabytes < program_megabytes {
                continue;
            }
            let known = outcome.status.is_some_and(|status| status <= 4);
            let told = outcome.status == Some(0) || outcome.err.contains("error: ");
            assert!(known && told, "{limits} {outcome:?}");
            statuses.push(outcome.status);
        }
    }
    assert!(statuses.contains(&Some(4)), "{statuses:?}");
}

/// The system may have memory for the stack of a new thread, but not for the second one on which the thread handles signals.
#[test]
fn a_thread_that_just_fits_into_the_address_space_ends_the_program_with_a_message_and_a_status() {
    let place = Place::with(BLAST);
    let run = |kibibytes: usize| {
        let run = ["run", "deck.toml", "--device", "cpu", "--threads", "1"];
        limited(&place, &format!("ulimit -v {kibibytes};"), &run)
    };
    let has_no_stack = |kibibytes: &usize| run(*kibibytes).err.contains("cannot start 1 threads");
    let mut limits = (36_000..60_000).step_by(500);
    let mut below = limits
        .find(has_no_stack)
        .expect("a limit below the first thread");
    let mut least = below + 4_000;
    while least - below > 4 {
        let middle = (below + least) / 2;
        match has_no_stack(&middle) {
            true => below = middle,
            false => least = middle,
        }
    }
    let mut messages = String::new();
    for kibibytes in (below..below + 32).step_by(4) {
        let outcome = run(kibibytes);
        assert!(
            matches!(outcome.status, Some(2 | 4)),
            "{kibibytes}: {outcome:?}"
        );
        outcome.complains(&["ulimit"]);
        messages += &outcome.err;
    }
    assert!(!messages.contains("panicked"), "{messages}");
    assert!(
        messages.contains("refused memory for a thread"),
        "{messages}"
    );
}

/// Runs the program as a user who may have `most` threads; returns `None` without the right to change the user.
fn with_threads(place: &Place, most: usize, arguments: &[&str]) -> Option<Outcome> {
    let program = place.0.join("nestar");
    // by another process: a child of another test would inherit the open file, and an open program cannot start
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_nestar"))
        .arg(&program)
        .status();
    assert!(copied.expect("cp is there").success());
    let open = Command::new("chmod")
        .args(["-R", "a+rwX"])
        .arg(&place.0)
        .status();
    assert!(open.expect("chmod is there").success());
    let lower = [
        "--reuid",
        "54321",
        "--regid",
        "54321",
        "--clear-groups",
        "bash",
        "-c",
    ];
    let output = Command::new("setpriv")
        .current_dir(&place.0)
        .args(lower)
        .args([&format!("ulimit -u {most}; exec \"$@\""), "sh"])
        .arg(&program)
        .args(arguments)
        .output();
    let outcome = Outcome::of(output.ok()?);
    (!outcome.err.contains("setpriv:")).then_some(outcome)
}

#[test]
fn no_threads_to_be_had_is_an_error() {
    let place = Place::with(BLAST);
    place.nestar(&["run", "deck.toml"]).has_status(0);
    let commands: [&[&str]; 5] = [
        &["run", "deck.toml", "--output", "other"],
        &["run", "deck.toml", "--output", "other", "--ranks", "2"],
        &["info", "run"],
        &["digest", "run"],
        &["plot", "run"],
    ];
    for command in commands {
        let Some(outcome) = with_threads(&place, 1, command) else {
            eprintln!("skipped: only root can become another user by setpriv");
            return;
        };
        let status = outcome.status;
        assert!(
            matches!(status, Some(1 | 2)),
            "{command:?}: {status:?}\n{}",
            outcome.err
        );
        outcome.tells(&["cannot start", "thread"]);
        assert!(
            !outcome.err.contains("panicked"),
            "{command:?}: {}",
            outcome.err
        );
    }
}

#[test]
fn a_snapshot_needs_no_more_threads_than_the_run_has() {
    let place = Place::with(BLAST);
    let mut statuses = Vec::new();
    for most in 4..10 {
        let output = format!("run-{most}");
        let run = ["run", "deck.toml", "--threads", "2", "--output", &output];
        let Some(outcome) = with_threads(&place, most, &run) else {
            eprintln!("skipped: only root can become another user by setpriv");
            return;
        };
        let told = outcome.err.contains("cannot start") && outcome.err.contains("ulimit -u");
        let is_panic = outcome.err.contains("panicked");
        assert!(
            !is_panic && (outcome.status == Some(0) || told),
            "{most}: {outcome:?}"
        );
        statuses.push(outcome.status);
    }
    assert!(statuses.contains(&Some(0)), "{statuses:?}");
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.expect("kill is there").success());
}

/// Starts a long run in `shell` and sends it a signal after some root steps.
fn signalled(place: &Place, prefix: &str, steps: &str, name: &str) -> Outcome {
    let program = env!("CARGO_BIN_EXE_nestar");
    let steps = format!("time.max_steps={steps}");
    // also where the tests run under nohup
    let child = Command::new("env")
        .current_dir(&place.0)
        .args([
            "--default-signal=HUP",
            "bash",
            "-c",
            &format!("{prefix} exec \"$@\""),
            "sh",
            program,
            "run",
            "deck.toml",
            "--set",
            &steps,
            "--set",
            "time.end=1000",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("env starts");
    let start = Instant::now();
    let rows = || {
        std::fs::read_to_string(place.0.join("run/diagnostics.csv"))
            .map_or(0, |t| t.lines().count())
    };
    while rows() < 5 {
        assert!(start.elapsed() < Duration::from_secs(60), "no root step");
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(&child, name);
    Outcome::of(child.wait_with_output().expect("the program ends"))
}

#[test]
fn a_hangup_ends_a_run_resumably_but_not_under_nohup() {
    let place = Place::with(BLAST);
    let outcome = signalled(&place, "", "4000", "-HUP");
    outcome.has_status(3).tells(&["interrupted at step"]);
    assert!(place.snapshots("run").len() == 2);
    let place = Place::with(BLAST);
    // like nohup
    signalled(&place, "trap '' HUP;", "60", "-HUP")
        .has_status(0)
        .tells(&["done: step 60"]);
}
