//! A resumed run continues bitwise, from any snapshot and in every mode.

use nestar::engine::Error;
use nestar::engine::run::{Observer, Progress, RunOptions};
use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::runs::{digests, run_into};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Copies the run in `from`, its snapshots up to number `last` only.
fn copy_up_to(from: &Path, to: &Path, last: usize) {
    std::fs::create_dir_all(to.join("snapshots")).expect("the copy can be made");
    for file in ["diagnostics.csv", "run.toml"] {
        std::fs::copy(from.join(file), to.join(file)).expect("the run has this file");
    }
    for number in 0..=last {
        let name = format!("snapshots/{number:06}.zarr");
        copy_tree(&from.join(&name), &to.join(&name));
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the copy can be made");
    for entry in std::fs::read_dir(from).expect("the tree is readable") {
        let path = entry.expect("the tree is readable").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

/// `diagnostics.csv` without the columns that tell of the machine.
fn diagnostics(directory: &Path) -> Vec<Vec<String>> {
    let text =
        std::fs::read_to_string(directory.join("diagnostics.csv")).expect("there are diagnostics");
    let mut rows: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split(',').map(String::from).collect())
        .collect();
    let keep: Vec<bool> = rows[0]
        .iter()
        .map(|name| {
            !name.starts_with("seconds") && !name.contains("per_second") && !name.contains("memory")
        })
        .collect();
    for row in &mut rows {
        let mut kept = keep.iter();
        row.retain(|_| kept.next().copied().unwrap_or(false));
    }
    rows
}

/// Runs `steps` root steps with a snapshot at each, and resumes from all of those named.
fn resumes_from(snapshots: &[usize], steps: usize, settings: &[&str]) {
    let scratch = Scratch::new();
    let most = format!("time.max_steps={steps}");
    let mut all = vec![
        HALF,
        most.as_str(),
        "output.steps=1",
        "output.initial=true",
        "output.final=true",
    ];
    all.extend_from_slice(settings);
    run_into(&scratch.run(), false, BLAST, &all).unwrap_or_else(|e| panic!("{e}"));
    let whole = digests(&scratch.run());
    assert_eq!(
        whole.len(),
        steps + 1,
        "a snapshot at the start and for each step"
    );
    for &k in snapshots {
        let copy = scratch.path().join(format!("from-{k}"));
        copy_up_to(&scratch.run(), &copy, k);
        let mut settings = all.clone();
        if k % 2 == 1 {
            settings.push("run.threads=3");
        }
        run_into(&copy, true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
        let resumed = digests(&copy);
        let first = whole.iter().zip(&resumed).position(|(a, b)| a != b);
        assert_eq!(
            first, None,
            "resumed from {k} under {settings:?}: first differing snapshot"
        );
        assert_eq!(whole.len(), resumed.len());
        assert_eq!(
            diagnostics(&scratch.run()),
            diagnostics(&copy),
            "resumed from {k}"
        );
    }
}

#[test]
fn the_first_row_of_the_diagnostics_has_the_initial_state() {
    let scratch = Scratch::new();
    let settings = [
        HALF,
        "time.max_steps=3",
        "domain.boundary=outflow",
        "time.end=1",
    ];
    run_into(&scratch.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let rows = diagnostics(&scratch.run());
    assert_eq!(rows.len(), 5, "names, the initial state, three steps");
    assert_eq!(rows[1][..4], ["0", "0e0", "0e0", "initial"]);
    let column = |name: &str| {
        let n = rows[0].iter().position(|own| own == name).expect(name);
        let numbers = rows[1..].iter().map(|row| row[n].parse::<f64>());
        numbers.map(|x| x.expect("a number")).collect::<Vec<_>>()
    };
    // what drifts are measured against
    let (total, drift) = (column("total_energy"), column("drift_energy"));
    assert!(total[0] > 0.0 && drift[0] == 0.0, "{total:?} {drift:?}");
    for (total_now, drift) in total.iter().zip(drift) {
        assert_eq!(drift, (total_now - total[0]) / total[0]);
    }
    assert!(column("patches_1")[0] > 0.0);
}

#[test]
fn adaptive_steps_resume_from_every_snapshot() {
    resumes_from(&[0, 1, 2, 3], 4, &[]);
}

#[test]
fn halved_steps_resume() {
    resumes_from(
        &[1, 2, 3],
        5,
        &["time.levels=halved", "mesh.regrid_interval=[3,2]"],
    );
}

#[test]
fn shared_steps_resume() {
    resumes_from(
        &[1, 2, 3],
        5,
        &["time.levels=shared", "mesh.regrid_interval=[2,3]"],
    );
}

#[test]
fn single_precision_resumes() {
    let settings = [
        "run.precision=single",
        "mesh.regrid_interval=[4,1]",
        "mesh.flag_buffer=8",
    ];
    resumes_from(&[1, 2, 3], 5, &settings);
}

#[test]
fn the_other_scheme_resumes() {
    let settings = [
        "hydro.scheme=vl",
        "hydro.reconstruction=ppm",
        "hydro.riemann=hlle",
        "mesh.max_level=3",
    ];
    resumes_from(&[1, 2], 3, &settings);
}

#[test]
fn snapshots_by_time_are_hit_and_resume() {
    let scratch = Scratch::new();
    let settings = [
        HALF,
        "time.end=0.03",
        "output.interval=0.004",
        "output.initial=true",
        "output.final=true",
    ];
    let summary =
        run_into(&scratch.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(summary.time, 0.03);
    let whole = digests(&scratch.run());
    assert_eq!(whole.len(), 9, "0, 7 multiples of 0.004, and the end");
    for k in [1, 4] {
        let copy = scratch.path().join(format!("from-{k}"));
        copy_up_to(&scratch.run(), &copy, k);
        run_into(&copy, true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(digests(&copy), whole, "resumed from {k}");
    }
}

/// Asks the run to stop after some root steps.
struct StopAfter(u64, Arc<AtomicBool>);

impl Observer for StopAfter {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, progress: &Progress) {
        if progress.step >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stopped_run_leaves_a_snapshot_and_resumes() {
    let scratch = Scratch::new();
    let settings = [HALF, "time.max_steps=5", "output.final=true"];
    let whole = scratch.path().join("whole");
    run_into(&whole, false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let stop = Arc::new(AtomicBool::new(false));
    let options = RunOptions {
        output: Some(scratch.run()),
        resume: false,
        stop: stop.clone(),
        snapshot: Arc::default(),
        observer: Box::new(StopAfter(3, stop)),
        build: nestar::App::default().build_info(),
    };
    let summary = nestar_tests::build(BLAST, &settings)
        .run_with(options)
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(summary.interrupted && summary.step == 3, "{summary:?}");
    assert_eq!(digests(&scratch.run()).len(), 1);
    run_into(&scratch.run(), true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let (resumed, whole) = (digests(&scratch.run()), digests(&whole));
    assert_eq!(resumed.last().map(|d| &d.1), whole.last().map(|d| &d.1));
}

#[test]
fn a_half_written_snapshot_disturbs_nothing() {
    let scratch = Scratch::new();
    let settings = [HALF, "time.max_steps=4", "output.steps=1"];
    run_into(&scratch.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let whole = digests(&scratch.run());
    let copy = scratch.path().join("killed");
    copy_up_to(&scratch.run(), &copy, 1);
    // as a killed run leaves it: the next snapshot under its temporary name, without its last files
    let half = copy.join("snapshots/.000002.zarr.partial");
    copy_tree(&scratch.run().join("snapshots/000002.zarr"), &half);
    std::fs::remove_file(half.join("zarr.json")).expect("the group has its file");
    run_into(&copy, true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert!(!half.exists(), "what was half written is gone");
    assert_eq!(digests(&copy), whole);
}

/// Part of [`a_killed_run_resumes`]: runs in a process of its own until it is killed.
#[test]
#[ignore = "started by `a_killed_run_resumes` in a process of its own"]
fn runs_until_killed() {
    let Some(directory) = std::env::var_os("NESTAR_TEST_RUN") else {
        return;
    };
    let settings = [HALF, "output.steps=1", "time.max_steps=100000"];
    let _ = run_into(Path::new(&directory), false, BLAST, &settings);
}

#[test]
fn a_killed_run_resumes() {
    let scratch = Scratch::new();
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = std::process::Command::new(program)
        .args(["--exact", "restart::runs_until_killed", "--ignored"])
        .env("NESTAR_TEST_RUN", scratch.run())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("this program can be started");
    let third = scratch.run().join("snapshots/000002.zarr");
    let begin = std::time::Instant::now();
    while !third.exists() && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    let written = digests(&scratch.run()).len();
    assert!(written >= 3, "{written} snapshots before the kill");
    let most = format!("time.max_steps={}", written + 2);
    let settings = [HALF, most.as_str(), "output.steps=1"];
    run_into(&scratch.run(), true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let whole = scratch.path().join("whole");
    run_into(&whole, false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(&scratch.run()), digests(&whole));
}

#[test]
fn a_snapshot_of_another_domain_is_refused() {
    let scratch = Scratch::new();
    run_into(
        &scratch.run(),
        false,
        BLAST,
        &["time.max_steps=1", "output.final=true"],
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let error =
        run_into(&scratch.run(), true, BLAST, &["domain.cells=[16,16,24]"]).expect_err("refused");
    assert!(matches!(error, Error::Setup(_)), "{error}");
    assert!(error.to_string().contains("[16, 16, 24]"), "{error}");
    let error = run_into(&scratch.run(), true, BLAST, &["mesh.max_level=1"]).expect_err("refused");
    assert!(
        error.to_string().contains("mesh.max_level to at least 2"),
        "{error}"
    );
}

#[test]
fn an_existing_run_directory_is_renamed() {
    let scratch = Scratch::new();
    let settings = ["time.max_steps=1", "output.final=true"];
    run_into(&scratch.run(), false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    let first = digests(&scratch.run());
    run_into(
        &scratch.run(),
        false,
        BLAST,
        &["time.max_steps=2", "output.final=true"],
    )
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        digests(&scratch.run().join("earlier.1")),
        first,
        "nothing is lost"
    );
}
