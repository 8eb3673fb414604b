//! Snapshots of a run on a device: copied beside the next steps, or piece by piece where the copy does not fit.

use crate::device_runs::emulation;
use nestar::engine::Error;
use nestar::engine::device::ComputeDevice;
use nestar::engine::run::{Observer, Progress, RunOptions, RunSummary};
use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, build};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A snapshot at the start and at every root step, with the least buffer memory possible.
const OUTPUT: [&str; 5] = [
    HALF,
    "output.initial=true",
    "output.steps=1",
    "output.buffer=1",
    "time.max_steps=4",
];

/// Events during the run.
struct Events {
    /// Step after which a stop is requested.
    stop_after: u64,
    stop: Arc<AtomicBool>,
    /// Step after which snapshots cannot be written any more, and the directory.
    spoil_after: u64,
    directory: PathBuf,
}

impl Observer for Events {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, progress: &Progress) {
        if progress.step >= self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        let snapshots = self.directory.join("snapshots");
        if progress.step == self.spoil_after {
            std::fs::rename(&snapshots, self.directory.join("kept")).expect("a folder moves");
            std::fs::write(&snapshots, "no folder").expect("a file in its place");
        }
    }
}

/// Runs on the emulated device; returns the result, and how often rows were packed.
fn run(
    directory: &Path,
    settings: &[&str],
    [stop_after, spoil_after]: [u64; 2],
) -> (Result<RunSummary, Error>, u64) {
    let settings = [&OUTPUT[..], &["run.device=emulated"], settings].concat();
    let mut sim = build(BLAST, &settings);
    let stop = Arc::new(AtomicBool::new(false));
    let result = sim.run_with(RunOptions {
        output: Some(directory.to_path_buf()),
        resume: false,
        stop: stop.clone(),
        snapshot: Arc::default(),
        observer: Box::new(Events {
            stop_after,
            stop,
            spoil_after,
            directory: directory.to_path_buf(),
        }),
        build: nestar::App::default().build_info(),
    });
    let world = &sim.engine().world;
    let device = world.resource::<ComputeDevice>().device.clone();
    let kernels = device.expect("a device").counters().kernels;
    let packs = kernels.iter().find(|kernel| kernel.name == "mesh_pack");
    (result, packs.map_or(0, |kernel| kernel.launches))
}

const NEVER: [u64; 2] = [u64::MAX; 2];

#[test]
fn device_snapshots_are_identical_to_the_cpu_in_both_modes() {
    if !emulation() {
        return;
    }
    // the fields take all of it: there is no room for a copy
    let full = ["run.memory_limit=13", "run.out_of_memory=cap"];
    for precision in ["run.precision=double", "run.precision=single"] {
        // a piece is one component in double precision
        let cases = &[&[][..], &full][..if precision.ends_with("double") { 2 } else { 1 }];
        let packs = cases.iter().map(|&limits| {
            let whole = "domain.cells=[16,16,16]";
            let common = [whole, "mesh.flag_buffer=8", "time.max_steps=2", precision];
            let settings = [limits, &common].concat();
            let (cpu, device) = (Scratch::new(), Scratch::new());
            let on_cpu = [&OUTPUT[..], &["run.device=cpu"], &settings].concat();
            run_into(&cpu.run(), false, BLAST, &on_cpu).unwrap_or_else(|e| panic!("{e}"));
            let (result, packs) = run(&device.run(), &settings, NEVER);
            result.unwrap_or_else(|e| panic!("{e}"));
            let wanted = digests(&cpu.run());
            assert_eq!(wanted.len(), 3);
            assert_eq!(digests(&device.run()), wanted, "{settings:?}");
            packs
        });
        let packs: Vec<u64> = packs.collect();
        let copies = 3 * 3;
        // a copy packs every level once, and by pieces once for each component
        assert_eq!(packs, [copies, 6 * copies][..cases.len()], "{precision}");
    }
}

#[test]
fn a_stopped_run_completes_the_snapshot_in_flight() {
    if !emulation() {
        return;
    }
    let (whole, stopped) = (Scratch::new(), Scratch::new());
    run(&whole.run(), &[], NEVER)
        .0
        .unwrap_or_else(|e| panic!("{e}"));
    let (result, _) = run(&stopped.run(), &[], [2, u64::MAX]);
    let summary = result.unwrap_or_else(|e| panic!("{e}"));
    assert!(summary.interrupted && summary.step == 2, "{summary:?}");
    assert_eq!(digests(&stopped.run()), digests(&whole.run())[..3]);
    let settings = [&OUTPUT[..], &["run.device=emulated"]].concat();
    run_into(&stopped.run(), true, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(&stopped.run()), digests(&whole.run()));
}

#[test]
fn a_full_disk_ends_the_run() {
    if !emulation() {
        return;
    }
    let scratch = Scratch::new();
    let (result, _) = run(&scratch.run(), &[], [u64::MAX, 2]);
    let error = result
        .expect_err("there is no place for snapshots")
        .to_string();
    assert!(error.contains("snapshots"), "{error}");
    let kept = scratch.run().join("kept");
    let whole = |path: &PathBuf| path.extension().is_some_and(|e| e == "zarr");
    let entries = std::fs::read_dir(kept).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("readable").path());
    assert!(entries.filter(whole).count() >= 1);
}
