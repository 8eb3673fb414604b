//! Runs: step by step in memory, and complete ones in a scratch directory.

use crate::state::State;
use nestar::Simulation;
use nestar::engine::Error;
use nestar::engine::comm::DiagnosticColumns;
use nestar::engine::mesh::Levels;
use nestar::engine::run::{RunOptions, RunSummary, Silent};
use nestar::engine::step::{RunCounters, StepReport};
use nestar::snapshot::Snapshot;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A simulation that is advanced step by step, without files.
pub struct Stepper(pub Simulation);

impl Stepper {
    /// Builds the initial state.
    ///
    /// # Panics
    /// If the deck is wrong.
    #[must_use]
    pub fn new(text: &str, settings: &[&str]) -> Self {
        Self::of(crate::build(text, settings))
    }

    /// Builds the initial state of `sim`.
    ///
    /// # Panics
    /// If the deck is wrong.
    #[must_use]
    pub fn of(sim: Simulation) -> Self {
        Self::begin(sim).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`Stepper::of`], for a simulation that may be refused.
    ///
    /// # Errors
    /// As the engine's.
    pub fn begin(mut sim: Simulation) -> Result<Self, Error> {
        sim.with(|s| s.finish_setup().and_then(|()| s.initialise()))?;
        Ok(Self(sim))
    }

    /// Current values of columns of the diagnostics.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn columns<const N: usize>(&mut self, names: [&str; N]) -> [f64; N] {
        self.0.with(|sim| {
            let all = sim.world.resource::<DiagnosticColumns>().names();
            let all: Vec<String> = all.map(String::from).collect();
            let values =
                DiagnosticColumns::values(&mut sim.world).unwrap_or_else(|e| panic!("{e}"));
            names.map(|name| {
                let found = all.iter().position(|own| own == name);
                values[found.unwrap_or_else(|| panic!("no column {name} in {all:?}"))]
            })
        })
    }

    /// Takes one root step, which ends at the deck's end time at the latest.
    ///
    /// # Errors
    /// As the engine's step.
    pub fn try_step(&mut self) -> Result<StepReport, Error> {
        self.0.with(|s| s.root_step(s.settings.time.end))
    }

    /// Takes `steps` root steps.
    ///
    /// # Panics
    /// If a step fails.
    pub fn steps(&mut self, steps: usize) -> &mut Self {
        for _ in 0..steps {
            self.try_step().unwrap_or_else(|e| panic!("{e}"));
        }
        self
    }

    /// Takes root steps until the deck's end time.
    ///
    /// # Panics
    /// If a step fails.
    pub fn finish(&mut self) -> &mut Self {
        let end = self.0.engine().settings.time.end;
        while self.time() < end {
            self.steps(1);
        }
        self
    }

    /// Returns the simulation time of the root level.
    #[must_use]
    pub fn time(&mut self) -> f64 {
        self.0.engine().world.resource::<Levels>().time(0)
    }

    /// Returns the counters of the run.
    #[must_use]
    pub fn counters(&mut self) -> RunCounters {
        self.0.engine().world.resource::<RunCounters>().clone()
    }

    /// Returns the state of all patches.
    #[must_use]
    pub fn state(&mut self) -> State {
        self.0.with(|s| State::of(s))
    }
}

/// A directory that is removed when the value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new directory.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nestar-tests-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        Self(path)
    }

    /// Returns the run directory inside.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // what cannot be removed is left to the system's own cleaning
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a deck into `directory`, from the start or from the latest snapshot there.
///
/// # Errors
/// As the engine's run.
pub fn run_into(
    directory: &Path,
    resume: bool,
    text: &str,
    settings: &[&str],
) -> Result<RunSummary, Error> {
    crate::build(text, settings).run_with(quietly_into(directory, resume))
}

/// Options of a run into `directory` without progress output or stop requests.
#[must_use]
pub fn quietly_into(directory: &Path, resume: bool) -> RunOptions {
    RunOptions {
        output: Some(directory.to_path_buf()),
        resume,
        stop: Arc::new(AtomicBool::new(false)),
        snapshot: Arc::default(),
        observer: Box::new(Silent),
        build: nestar::App::default().build_info(),
    }
}

/// Returns the digests of all snapshots of a run, by number.
///
/// # Panics
/// If a snapshot cannot be read.
#[must_use]
pub fn digests(directory: &Path) -> Vec<(String, String)> {
    let snapshots = std::fs::read_dir(directory.join("snapshots")).expect("the run has snapshots");
    let mut found: Vec<PathBuf> = snapshots
        .map(|entry| entry.expect("the directory is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "zarr"))
        .filter(|path| {
            !path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with('.'))
        })
        .collect();
    found.sort();
    let digest = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let snapshot = Snapshot::open(path).unwrap_or_else(|e| panic!("{e}"));
        let digest = nestar::snapshot::digest(&snapshot).unwrap_or_else(|e| panic!("{e}"));
        (name.into_owned(), digest)
    };
    found.iter().map(digest).collect()
}
