//! Tests of the run directory: existing files are neither lost nor overwritten.

use crate::{BLAST, Place};

#[test]
fn a_moved_run_resumes_in_its_new_directory() {
    let place = Place::with(BLAST);
    let short = ["run", "deck.toml", "--set", "time.max_steps=3"];
    place.nestar(&short).has_status(0);
    std::fs::rename(place.0.join("run"), place.0.join("moved")).expect("a run can be moved");
    let more = [
        "run",
        "moved/run.toml",
        "--resume",
        "--set",
        "time.max_steps=5",
    ];
    let outcome = place.nestar(&more);
    outcome
        .has_status(0)
        .tells(&["continues from moved/snapshots/000001.zarr", "done: step 5"]);
    assert!(!place.0.join("run").exists());
}

#[test]
fn a_file_instead_of_the_directory_is_reported() {
    let place = Place::with(BLAST);
    place.write("taken", "");
    for ranks in ["1", "3"] {
        place
            .nestar(&[
                "run",
                "deck.toml",
                "--output",
                "taken/run",
                "--ranks",
                ranks,
            ])
            .has_status(2)
            .complains(&[
                "run's directory taken/run: ",
                "choose another one with --output",
            ]);
    }
    assert_eq!(place.read("taken"), "");
}

#[test]
fn resuming_with_changed_physics_needs_an_override() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=3"])
        .has_status(0);
    place.write(
        "other.toml",
        &format!("{BLAST}[hydro]\ngamma = 1.4\n[run]\nprecision = \"single\"\n"),
    );
    let resume = ["run", "other.toml", "--resume", "--set", "time.max_steps=4"];
    place.nestar(&resume).has_status(2).complains(&[
        "hydro.gamma = 1.4 (was 1.66",
        "run.precision = \"single\" (was \"double\")",
        "--set hydro.gamma=",
    ]);
    let meant = ["--set", "hydro.gamma=1.4", "--set", "run.precision=single"];
    place
        .nestar(&[&resume[..], &meant].concat())
        .has_status(0)
        .tells(&["note: this setting differs from the snapshot: hydro.gamma = 1.4"]);
}

#[test]
fn a_run_branches_off_any_snapshot() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--output", "whole"])
        .has_status(0);
    let short = ["run", "deck.toml", "--set", "time.max_steps=6"];
    place.nestar(&short).has_status(0);
    for (from, branch) in [("run/snapshots/000001.zarr", "one"), ("run", "two")] {
        place
            .nestar(&["run", "deck.toml", "--output", branch, "--from", from])
            .has_status(0)
            .tells(&["starts from ", "run/snapshots/000001.zarr", "done: step 12"]);
        assert_eq!(place.snapshots(branch), ["000000.zarr", "000001.zarr"]);
        assert_eq!(place.digest(branch), place.digest("whole"));
        assert_eq!(
            place
                .read(&format!("{branch}/diagnostics.csv"))
                .lines()
                .count(),
            8
        );
    }
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
    place
        .nestar(&["run", "deck.toml", "--output", "three", "--from", "nowhere"])
        .has_status(1)
        .complains(&["nowhere", "there is nothing with this name"]);
}

#[test]
fn files_of_other_runs_are_not_modified() {
    let place = Place::with(BLAST);
    // a file of the user
    place.write("run.toml", BLAST);
    let here = ["run", "run.toml", "--output", "."];
    place
        .nestar(&here)
        .has_status(2)
        .complains(&["run.toml was not written by a run", "--output"]);
    assert_eq!(place.read("run.toml"), BLAST);
    // a run in progress
    std::fs::create_dir(place.0.join("run")).expect("a new directory");
    place.write("run/run.log", "the log of a run at work\n");
    let lock = std::fs::File::create(place.0.join("run/.lock")).expect("a new file");
    lock.try_lock().expect("nobody else has it");
    place
        .nestar(&["run", "deck.toml"])
        .has_status(2)
        .complains(&["another run is at work in run"]);
    assert_eq!(place.read("run/run.log"), "the log of a run at work\n");
    drop(lock);
    // a log at a path of the user is appended to
    place.write("mine.log", "before\n");
    let logged = [
        "run",
        "deck.toml",
        "--log",
        "mine.log",
        "--set",
        "time.max_steps=1",
    ];
    place.nestar(&logged).has_status(0);
    let log = place.read("mine.log");
    assert!(
        log.starts_with("before\n") && log.contains("done: step 1"),
        "{log}"
    );
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_links_out_of_the_directory() {
    let place = Place::with(BLAST);
    place.write("precious", "untouched");
    std::fs::create_dir(place.0.join("elsewhere")).expect("a new directory");
    let names = [
        "run.toml",
        "run.log",
        "diagnostics.csv",
        "provenance.json",
        ".lock",
    ];
    for name in names.iter().chain(&["snapshots"]) {
        let run = place.0.join("run");
        std::fs::create_dir_all(&run).expect("a new directory");
        let target = if *name == "snapshots" {
            "elsewhere"
        } else {
            "precious"
        };
        std::os::unix::fs::symlink(place.0.join(target), run.join(name)).expect("a link");
        place
            .nestar(&["run", "deck.toml"])
            .has_status(2)
            .complains(&[&format!("run/{name} is a symbolic link"), "remove the link"]);
        assert_eq!(place.read("precious"), "untouched", "{name}");
        std::fs::remove_dir_all(run).expect("the directory can go");
    }
    let left = std::fs::read_dir(place.0.join("elsewhere")).expect("readable");
    assert_eq!(left.count(), 0);
}

#[test]
fn damaged_rows_are_kept_and_complete_rows_continued() {
    let place = Place::with(BLAST);
    let run = |more: &[&str]| place.nestar(&[&["run", "deck.toml"], more].concat());
    run(&["--set", "time.max_steps=6"]).has_status(0);
    let text = place.read("run/diagnostics.csv");
    let mut bytes = text.clone().into_bytes();
    let third = text.match_indices('\n').nth(3).expect("seven rows").0;
    bytes[third + 3] = 0xff;
    let file = place.0.join("run/diagnostics.csv");
    std::fs::write(&file, &bytes).expect("the file can be written");
    run(&["--resume", "--set", "time.max_steps=8"])
        .has_status(0)
        .tells(&["diagnostics.1.csv"]);
    let kept = std::fs::read(place.0.join("run/diagnostics.1.csv")).expect("the file is kept");
    assert_eq!(kept, bytes);
    let rows = place.read("run/diagnostics.csv");
    let steps: Vec<&str> = rows
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').next())
        .collect();
    assert_eq!(steps, ["0", "1", "2", "4", "5", "6", "7", "8"]);
    // unreadable files are not replaced
    std::fs::remove_file(&file).expect("the file can go");
    std::fs::create_dir(&file).expect("a directory in its place");
    run(&["--resume", "--set", "time.max_steps=9"])
        .has_status(1)
        .complains(&["cannot read", "diagnostics.csv"]);
    assert!(file.is_dir());
}

#[test]
fn a_second_run_moves_the_first_one_aside() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=1"])
        .has_status(0);
    let second = place.nestar(&["run", "deck.toml", "--set", "time.max_steps=2"]);
    second
        .has_status(0)
        .tells(&["an earlier run was moved to run/earlier.1"]);
    assert!(
        place
            .read("run/earlier.1/run.toml")
            .contains("max_steps = 1")
    );
    assert!(place.read("run/run.toml").contains("max_steps = 2"));
    assert!(!place.read("run/run.log").contains("done: step 1,"));
}
