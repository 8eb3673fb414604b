//! Runs: root steps from an initial or restored state to the end, with snapshots and diagnostics.
//!
//! Functions that are called *collective* must be called by all ranks in the same order.

mod blobs;
mod captures;
mod deck_differences;
pub mod diagnostics;
pub mod directory;
pub mod files;
mod main_loop;
mod observed;
mod options;
pub mod output;
pub mod provenance;
pub mod restart;
mod restart_state;
mod series;
mod snapshot;

pub use directory as lock;
pub use main_loop::run;
pub use options::{Observer, Progress, RunOptions, RunSummary, Silent};
pub use provenance::BuildInfo;
