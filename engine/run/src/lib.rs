//! Runs: root steps from an initial or restored state to the end, with snapshots and diagnostics.
//!
//! Functions that are called *collective* must be called by all ranks in the same order.

mod blobs;
mod cadence;
mod column_units;
mod deck_differences;
pub mod diagnostics;
pub mod directory;
pub mod files;
mod main_loop;
pub mod output;
pub mod restart;
mod restart_state;
mod snapshot;
pub mod views;

pub use files::BuildInfo;
pub use main_loop::{STALLED, run};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of a run.
pub struct RunOptions {
    /// Directory of the run; replaces that of the deck.
    pub output: Option<PathBuf>,
    /// Continue from the latest snapshot in the run's directory.
    pub resume: bool,
    /// Stop request (a signal); one rank is enough.
    pub stop: Arc<AtomicBool>,
    /// Request for a snapshot after the current root step (a signal); one rank is enough. The run clears it.
    pub snapshot: Arc<AtomicBool>,
    /// Receives notes and progress.
    pub observer: Box<dyn Observer>,
    /// Description of the program for `provenance.json`.
    pub build: BuildInfo,
}

/// Receives messages from a run.
pub trait Observer: Send {
    /// Called once the run owns its directory.
    fn started(&mut self) {}
    /// Receives a message for the user.
    fn note(&mut self, message: &str);
    /// Called after each root step.
    fn step(&mut self, progress: &Progress);
}

/// Observer that ignores all messages.
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: &Progress) {}
}

/// Describes the progress of a run after a root step.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Root steps since the start.
    pub step: u64,
    /// Simulation time.
    pub time: f64,
    /// Simulation time at which the run ends.
    pub end: f64,
    /// Simulation time at which this process started.
    pub begin: f64,
    /// Length of the root step.
    pub dt: f64,
    /// Limit that set the length.
    pub limiter: &'static str,
    /// Patches per level.
    pub patches: Vec<usize>,
    /// Patches not refined for lack of memory so far, over all regrids.
    pub capped: u64,
    /// Cell updates per wall-clock second in this root step.
    pub rate: f64,
    /// Wall-clock seconds since the first step of this process.
    pub wall: f64,
}

/// Summarises a finished run.
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
    /// Wall-clock seconds of this process, from its first root step to the last written byte.
    pub wall: f64,
    /// `true` if the run was asked to stop before its end.
    pub interrupted: bool,
}
