//! How to run, who watches, and what is told.

use super::BuildInfo;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to run.
pub struct RunOptions {
    /// Directory of the run, in place of the deck's.
    pub output: Option<PathBuf>,
    /// Whether to continue from the latest snapshot in the run's directory.
    pub resume: bool,
    /// Becomes true when the run is asked to stop (a signal); of several ranks one is enough.
    pub stop: Arc<AtomicBool>,
    /// Told of what happens.
    pub observer: Box<dyn Observer>,
    /// The program that runs.
    pub build: BuildInfo,
}

/// Someone who watches a run.
pub trait Observer: Send {
    /// The run's directory is this run's from here on, if it starts.
    fn started(&mut self) {}
    /// A message for people.
    fn note(&mut self, message: &str);
    /// A root step is done.
    fn step(&mut self, progress: &Progress);
}

/// Nobody watches.
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: &Progress) {}
}

/// Where a run stands after a root step.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Root steps since the start.
    pub step: u64,
    /// Simulation time.
    pub time: f64,
    /// Simulation time at which the run ends.
    pub end: f64,
    /// Simulation time at which this process began.
    pub begin: f64,
    /// Length of the root step.
    pub dt: f64,
    /// What set it.
    pub limiter: &'static str,
    /// Patches per level.
    pub patches: Vec<usize>,
    /// Patches that memory kept from being refined so far, every regrid counted.
    pub capped: u64,
    /// Cell updates per wall second, over this root step.
    pub rate: f64,
    /// Wall seconds since this process began to step.
    pub wall: f64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Directory of the run.
    pub directory: PathBuf,
    /// Simulation time reached.
    pub time: f64,
    /// Root steps since the start.
    pub step: u64,
    /// Cell updates by this process.
    pub cell_updates: u64,
    /// Wall seconds of this process, from its first root step to the last byte.
    pub wall: f64,
    /// Whether the run was asked to stop before its end.
    pub interrupted: bool,
}
