//! Tests for programs with additional physics, and temporary folders.

use crate::app::App;
use crate::report::print_message;
use nestar_deck::Deck;
use nestar_engine::Error;
use nestar_engine::comm::{Ranks, ThreadRank};
use nestar_engine::device::{Device, DeviceKind};
use nestar_engine::run::{RunOptions, Silent};
use nestar_snapshot::{Snapshot, SnapshotError, digest, latest};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Checks that runs of `deck` are bitwise reproducible. Runs it with `settings` (`table.key=value`) for some root steps in three ways: on
/// the CPU with one rank, with four ranks, and with a restart after the first step from two ranks to one. The restart uses emulated
/// devices if there is a C++ compiler. All final snapshots must agree in every bit, in both precisions unless a setting gives
/// `run.precision`.
///
/// # Errors
/// The deck or a run fails, or two runs differ.
pub fn same_bits(app: &App, deck: &str, settings: &[&str], steps: u64) -> Result<(), Error> {
    let mut precisions = vec!["run.precision=single", "run.precision=double"];
    if let Some(own) = settings.iter().find(|s| s.starts_with("run.precision=")) {
        precisions = vec![*own];
    }
    let (device, restart) = match Device::open(DeviceKind::Emulated) {
        Ok(_) => ("emulated", "a restart from two emulated devices on one"),
        Err(_) => ("cpu", "a restart from two ranks on one"),
    };
    let parts = [
        RunSegment::new(device, 2, 1, "run.queue=false"),
        RunSegment::new(device, 1, steps, "run.threads=2"),
    ];
    for precision in precisions {
        let settings = [settings, &[precision]].concat();
        let end = |segments: &[RunSegment]| end(app, deck, &settings, segments);
        let alone = end(&[RunSegment::new("cpu", 1, steps, ONE)])?;
        let others = [
            ("four ranks", end(&[RunSegment::new("cpu", 4, steps, ONE)])?),
            (restart, end(&parts)?),
        ];
        if let Some((place, _)) = others.iter().find(|(_, found)| *found != alone) {
            return Err(Error::Setup(format!(
                "{precision}: one rank on the CPU and {place} give different bits; results must not depend on the order of patches, on \
                 the partition, or on state outside fields and `register_state`"
            )));
        }
    }
    Ok(())
}

/// One segment of a run: it continues from the previous segment.
struct RunSegment<'a> {
    device: &'a str,
    ranks: usize,
    /// Root step at which the segment ends.
    end: u64,
    /// A further setting.
    setting: &'a str,
}

impl<'a> RunSegment<'a> {
    fn new(device: &'a str, ranks: usize, end: u64, setting: &'a str) -> Self {
        Self {
            device,
            ranks,
            end,
            setting,
        }
    }
}

/// One thread per rank, the default of all segments.
const ONE: &str = "run.threads=1";

/// Returns the digest after a run in segments.
fn end(app: &App, deck: &str, settings: &[&str], segments: &[RunSegment]) -> Result<String, Error> {
    let scratch = Scratch::new()?;
    for (n, segment) in segments.iter().enumerate() {
        let mut deck = Deck::parse("deck", deck)?;
        let own = [
            format!("run.device={}", segment.device),
            ONE.into(),
            format!("time.max_steps={}", segment.end),
            "output.final=true".into(),
            segment.setting.to_string(),
        ];
        let settings = settings.iter().copied();
        for setting in settings.chain(own.iter().map(String::as_str)) {
            deck.set(setting)?;
        }
        run(app, &deck, segment.ranks, scratch.path(), n > 0)?;
    }
    let unread = |error: SnapshotError| Error::Snapshot(error.to_string());
    let found = latest(scratch.path()).map_err(unread)?;
    let (_, path) = found.ok_or_else(|| Error::Setup("the run has no final snapshot".into()))?;
    let snapshot = Snapshot::open(&path).map_err(unread)?;
    digest(&snapshot).map_err(unread)
}

/// Runs on `size` ranks; returns the error of the first rank that fails.
fn run(app: &App, deck: &Deck, size: usize, directory: &Path, resume: bool) -> Result<(), Error> {
    let rank = |ranks: Ranks| {
        let options = RunOptions {
            output: Some(directory.to_path_buf()),
            resume,
            stop: Arc::new(AtomicBool::new(false)),
            snapshot: Arc::default(),
            observer: Box::new(Silent),
            build: app.build_info(),
        };
        let sim = app.simulation_on(deck.clone(), ranks.clone());
        let result = sim.and_then(|mut sim| sim.run_with(options));
        if let Err(error) = &result {
            ranks.communicator().abort(&error.to_string());
        }
        result.map(|_| ())
    };
    let connected = ThreadRank::connect(size).into_iter().map(Ranks::new);
    std::thread::scope(|scope| {
        let started: Vec<_> = connected.map(|ranks| scope.spawn(|| rank(ranks))).collect();
        let gone = |_| Err(Error::Setup("a rank has panicked".into()));
        started
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(gone))
    })
}

/// A temporary folder that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new() -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("nestar-{process}-{count}"));
        std::fs::create_dir_all(&path)
            .map_err(|e| Error::Setup(format!("cannot create {}: {e}", path.display())))?;
        Ok(Self(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            print_message(&format!(
                "note: cannot remove {}: {error}",
                self.0.display()
            ));
        }
    }
}
