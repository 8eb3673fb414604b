//! The run directory of several ranks: the files equal those of one rank, and any number of ranks resumes.

use nestar::engine::Error;
use nestar::engine::run::{Observer, Progress, RunOptions, RunSummary};
use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{run_decks_on_ranks, run_on_ranks};
use nestar_tests::runs::{digests, quietly_into, run_into};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A snapshot at the start and at every root step, with what follows from the state.
const EVERY_STEP: [&str; 4] = [
    "output.initial=true",
    "output.final=true",
    "output.steps=1",
    "output.derived=['mach','fraction_dye']",
];

/// Runs on `size` ranks; the error of all of them is the same.
fn run(
    size: usize,
    directory: &Path,
    resume: bool,
    settings: &[&str],
) -> Result<RunSummary, Error> {
    let options = (0..size).map(|_| quietly_into(directory, resume)).collect();
    one(run_on_ranks(BLAST, settings, options))
}

/// What all ranks got.
fn one(results: Vec<Result<RunSummary, Error>>) -> Result<RunSummary, Error> {
    let text = |result: &Result<RunSummary, Error>| match result {
        Ok(summary) => format!("{} {}", summary.step, summary.interrupted),
        Err(error) => error.to_string(),
    };
    let texts: Vec<String> = results.iter().map(text).collect();
    assert!(texts.iter().all(|one| *one == texts[0]), "{texts:#?}");
    results.into_iter().next().expect("there is a rank")
}

/// All files of a run's snapshots: the path below the directory, and the content but for what names the directory.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.join("snapshots")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the run has snapshots") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("readable");
            let below = path.strip_prefix(directory).expect("it is below");
            found.push((below.to_path_buf(), bytes));
        }
    }
    found.sort();
    found
}

/// `diagnostics.csv` without the columns that tell of the machine and its ranks.
fn diagnostics(directory: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("a file");
    let split = |line: &str| line.split(',').map(String::from).collect();
    let rows: Vec<Vec<String>> = text.lines().map(split).collect();
    let names = rows[0].clone();
    let of_machine = ["seconds", "cell_updates_per_second", "memory", "imbalance"];
    let keeps = |n: usize| !of_machine.iter().any(|word| names[n].starts_with(word));
    let kept = |row: Vec<String>| {
        let values = row.into_iter().enumerate();
        values.filter(|(n, _)| keeps(*n)).map(|(_, v)| v).collect()
    };
    rows.into_iter().map(kept).collect()
}

/// The files of `steps` root steps on each number of ranks are those of one rank.
fn same_files(sizes: &[usize], steps: u32, settings: &[&str]) {
    let most = format!("time.max_steps={steps}");
    let settings = [&EVERY_STEP[..], &[&most], settings].concat();
    let alone = Scratch::new();
    run_into(&alone.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let expected = files(&alone.run());
    assert!(!expected.is_empty());
    for &size in sizes {
        let scratch = Scratch::new();
        run(size, &scratch.run(), false, &settings).unwrap_or_else(|e| panic!("{e}"));
        let got = files(&scratch.run());
        let names = |files: &[(PathBuf, Vec<u8>)]| {
            let names = files.iter().map(|(path, _)| path.clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&got), names(&expected), "{size} ranks, {settings:?}");
        for ((path, one), (_, other)) in got.iter().zip(&expected) {
            assert!(
                one == other,
                "{}: {size} ranks, {settings:?}",
                path.display()
            );
        }
        assert_eq!(diagnostics(&scratch.run()), diagnostics(&alone.run()));
    }
}

#[test]
fn adaptive_ranks_write_the_files_of_one_rank() {
    same_files(&[2, 7], 3, &[HALF]);
    let deep = [HALF, "run.precision=single", "mesh.max_level=3"];
    same_files(&[5], 2, &deep);
}

#[test]
fn uniform_ranks_write_the_files_of_one_rank() {
    let uniform = ["mesh.max_level=0", "domain.cells=[32,32,32]"];
    same_files(&[2, 7, 8], 2, &uniform);
    // fewer patches than ranks
    let few = [
        "mesh.max_level=0",
        "domain.cells=[16,8,8]",
        "run.precision=single",
    ];
    same_files(&[3, 8], 2, &few);
}

/// A level of two shards: of three ranks the middle one stores the second, of seven some store none.
const LARGE: [&str; 2] = ["mesh.max_level=0", "domain.cells=[104,80,80]"];

#[test]
fn shards_that_several_ranks_have_parts_of_are_stored_whole() {
    same_files(&[3, 7], 1, &LARGE);
}

#[test]
fn ranks_on_devices_write_the_files_of_one_rank() {
    if !crate::device_runs::emulation() {
        return;
    }
    let device = ["run.device=emulated", "run.precision=single"];
    let adaptive = ["mesh.max_level=1", "output.buffer=1"];
    same_files(&[3], 2, &[&device[..1], &adaptive].concat());
    same_files(&[3], 1, &[&device[..], &LARGE].concat());
    // the fields take all memory: the state leaves piece by piece
    let full = [
        "mesh.max_level=0",
        "domain.cells=[48,48,40]",
        "run.memory_limit=7",
    ];
    same_files(&[2], 1, &[&device[..], &full].concat());
}

/// Copies a run with its snapshots up to number `last`.
fn copy_up_to(from: &Path, to: &Path, last: usize) {
    for (path, bytes) in files(from) {
        let number = path.iter().nth(1).and_then(|name| name.to_str());
        let number = number.and_then(|name| name[..6].parse::<usize>().ok());
        if number.expect("a numbered snapshot") <= last {
            let target = to.join(path);
            std::fs::create_dir_all(target.parent().expect("a folder")).expect("can be made");
            std::fs::write(target, bytes).expect("can be written");
        }
    }
    let table = "diagnostics.csv";
    std::fs::copy(from.join(table), to.join(table)).expect("the run has this file");
}

/// Runs a step further than the snapshot `at` on `first` ranks, and from that on `then`: all is as in the unbroken run on one rank.
fn resumes(first: usize, at: usize, then: usize, settings: &[&str]) {
    let settings = [&EVERY_STEP[..], &[HALF, "time.max_steps=3"], settings].concat();
    let further = format!("time.max_steps={}", at + 1);
    let (whole, broken) = (Scratch::new(), Scratch::new());
    run_into(&whole.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let begun = [&settings[..], &[&further]].concat();
    run(first, &broken.run(), false, &begun).unwrap_or_else(|e| panic!("{e}"));
    let copy = broken.path().join("copy");
    copy_up_to(&broken.run(), &copy, at);
    assert_eq!(digests(&copy).len(), at + 1);
    run(then, &copy, true, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(&copy), digests(&whole.run()), "{first} to {then}");
    assert_eq!(diagnostics(&copy), diagnostics(&whole.run()));
}

#[test]
fn a_run_is_continued_on_another_number_of_ranks() {
    let deep = ["mesh.max_level=3", "mesh.regrid_interval=1"];
    resumes(3, 1, 1, &[]);
    resumes(1, 2, 4, &["run.precision=single"]);
    resumes(4, 1, 2, &["time.levels=halved"]);
    resumes(7, 1, 5, &deep);
    resumes(2, 0, 3, &["mesh.max_level=0"]);
}

#[test]
fn ranks_on_devices_continue_what_others_wrote() {
    if crate::device_runs::emulation() {
        resumes(2, 1, 3, &["run.device=emulated", "mesh.max_level=1"]);
    }
}

/// Does something after a root step.
struct After<F: FnMut() + Send>(u64, F);

impl<F: FnMut() + Send> Observer for After<F> {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, progress: &Progress) {
        if progress.step == self.0 {
            self.1();
        }
    }
}

#[test]
fn a_signal_at_any_rank_stops_all_ranks_and_the_run_resumes() {
    let settings = ["time.max_steps=6", "output.final=true"];
    let (whole, scratch) = (Scratch::new(), Scratch::new());
    run_into(&whole.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let options = |rank: usize| {
        let stop = Arc::new(AtomicBool::new(false));
        let raised = stop.clone();
        let raise = After(3, move || raised.store(rank == 2, Ordering::Relaxed));
        RunOptions {
            stop,
            snapshot: Arc::default(),
            observer: Box::new(raise),
            ..quietly_into(&scratch.run(), false)
        }
    };
    let options = (0..3).map(options).collect();
    let summary = one(run_on_ranks(BLAST, &settings, options)).unwrap_or_else(|e| panic!("{e}"));
    assert!(summary.interrupted && summary.step == 3, "{summary:?}");
    assert_eq!(digests(&scratch.run()).len(), 1);
    run(2, &scratch.run(), true, &settings).unwrap_or_else(|e| panic!("{e}"));
    let last = |directory: &Path| digests(directory).pop().map(|(_, digest)| digest);
    assert_eq!(last(&scratch.run()), last(&whole.run()));
}

/// Names of what lies in a run's folder of snapshots.
fn snapshots(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join("snapshots")).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("readable").file_name();
        name.to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// One rank comes to the run's directory by a link; after a step the link leads to an empty folder, as if the rank's disk
/// took nothing any more.
fn spoiled(device: &str, failing: usize) {
    let scratch = Scratch::new();
    let (link, empty) = (scratch.path().join("link"), scratch.path().join("empty"));
    std::fs::create_dir_all(scratch.run()).expect("can be made");
    std::fs::create_dir_all(&empty).expect("can be made");
    std::os::unix::fs::symlink(scratch.run(), &link).expect("can be linked");
    let options = |rank: usize| {
        if rank != failing {
            return quietly_into(&scratch.run(), false);
        }
        let (link, empty) = (link.clone(), empty.clone());
        let spoil = After(2, move || {
            std::fs::remove_file(&link).expect("it is a link");
            std::os::unix::fs::symlink(&empty, &link).expect("can be linked");
        });
        RunOptions {
            observer: Box::new(spoil),
            ..quietly_into(&scratch.path().join("link"), false)
        }
    };
    let device = format!("run.device={device}");
    let settings = [&EVERY_STEP[..], &LARGE, &["time.max_steps=4", &device]].concat();
    let results = run_on_ranks(BLAST, &settings, (0..3).map(options).collect());
    let error = one(results).expect_err("a rank cannot write").to_string();
    assert!(
        error.contains(&format!("rank {failing} failed: "))
            && error.contains("missing")
            && error.contains("zarr.partial"),
        "{error}"
    );
    // the states before are whole, and nothing else is left; the one that threads still write when the rank fails is given up
    let (left, before) = (snapshots(&scratch.run()), ["000000.zarr", "000001.zarr"]);
    assert!(left == before || left == before[..1], "{left:?}");
    let most = ["time.max_steps=2", &*device];
    let settings = [&EVERY_STEP[..], &LARGE, &most].concat();
    run(2, &scratch.run(), true, &settings).unwrap_or_else(|e| panic!("{e}"));
    let whole = Scratch::new();
    run_into(&whole.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(&scratch.run()), digests(&whole.run()));
}

#[test]
fn a_rank_that_cannot_write_stops_all_ranks_without_a_snapshot() {
    spoiled("cpu", 1);
}

#[test]
fn a_rank_that_cannot_read_its_device_stops_all_ranks_without_a_snapshot() {
    if crate::device_runs::emulation() {
        spoiled("emulated", 1);
    }
}

#[test]
fn a_directory_not_visible_to_a_rank_is_refused() {
    let scratch = Scratch::new();
    let elsewhere = scratch.path().join("elsewhere");
    let options = |rank| match rank {
        2 => quietly_into(&elsewhere, false),
        _ => quietly_into(&scratch.run(), false),
    };
    let options = (0..3).map(options).collect();
    let error = one(run_on_ranks(BLAST, &["time.max_steps=1"], options)).expect_err("refused");
    assert!(matches!(error, Error::Setup(_)), "{error}");
    let error = error.to_string();
    for text in ["rank 2 on ", "elsewhere", "all hosts share", "--output"] {
        assert!(error.contains(text), "no {text:?} in {error}");
    }
    assert!(!elsewhere.exists(), "only the first rank makes it");
    let left = std::fs::read_dir(scratch.run()).expect("the first rank has made it");
    let left: Vec<_> = left
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    assert_eq!(left, [".lock"], "no sign is left");
}

#[test]
fn ranks_with_other_decks_are_refused_before_they_touch_the_directory() {
    let scratch = Scratch::new();
    let run = |more: [&'static str; 3]| {
        let options = (0..3).map(|_| quietly_into(&scratch.run(), false));
        let deck_of = |rank: usize| deck(BLAST, &["time.max_steps=1", more[rank]]);
        one(run_decks_on_ranks(deck_of, options.collect()))
    };
    let error = run(["time.courant=0.4", "time.courant=0.4", "time.courant=0.3"]);
    let error = error.expect_err("refused");
    assert!(matches!(error, Error::Setup(_)), "{error}");
    let error = error.to_string();
    let told = "rank 2 has another deck than rank 0: time.courant = 0.3 (rank 0: 0.4)";
    assert!(error.starts_with(told), "{error}");
    assert!(!scratch.run().exists());
    // what does not change the result is for each rank to choose
    run(["run.threads=1", "run.audit=true", "run.threads=2"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn an_unphysical_initial_state_gives_the_error_of_one_rank() {
    let nowhere = Scratch::new();
    // in one cell, of the last rank
    let settings = ["initial.density=if(x > 0.97 && y < 0.03 && z < 0.03, -1, 1)"];
    let alone = run_into(&nowhere.run(), false, BLAST, &settings).expect_err("refused");
    let error = run(3, &nowhere.run(), false, &settings).expect_err("refused");
    assert!(matches!(error, Error::Setup(_)), "{error}");
    assert_eq!(error.to_string(), alone.to_string());
    assert!(error.to_string().contains("density -1"), "{error}");
}

#[test]
fn a_directory_in_use_is_refused_with_one_error() {
    let scratch = Scratch::new();
    let _lock =
        nestar::engine::run::directory::DirectoryLock::take(&scratch.run()).expect("it is free");
    let error = run(2, &scratch.run(), false, &["time.max_steps=1"]).expect_err("refused");
    assert!(error.to_string().starts_with("another run is at work in"));
}

#[test]
fn a_damaged_snapshot_is_reported_by_the_rank_that_reads_it() {
    let scratch = Scratch::new();
    let settings = [&EVERY_STEP[..], &["time.max_steps=1"]].concat();
    run(2, &scratch.run(), false, &settings).unwrap_or_else(|e| panic!("{e}"));
    let shard = scratch
        .run()
        .join("snapshots/000001.zarr/level_0/energy/c.0.0.0.0");
    let mut bytes = std::fs::read(&shard).expect("there is one shard");
    bytes[1000] ^= 1;
    std::fs::write(&shard, bytes).expect("can be written");
    let error = run(3, &scratch.run(), true, &settings).expect_err("refused");
    let error = error.to_string();
    assert!(
        error.starts_with("rank 0 failed: ")
            && error.contains("move ")
            && error.contains("damaged"),
        "{error}"
    );
}

#[test]
fn provenance_names_all_ranks() {
    let scratch = Scratch::new();
    run(3, &scratch.run(), false, &["time.max_steps=1"]).unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(scratch.run().join("provenance.json")).expect("a file");
    assert!(text.contains("\"ranks\": 3"), "{text}");
    assert_eq!(text.matches("\"cpu\"").count(), 4, "{text}");
}
