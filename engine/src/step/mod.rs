//! The order of a run: schedules, limits, the recursion over levels, regrids, the guard of memory, and what puts them together.

pub(crate) mod agreement;
pub mod config;
mod counters;
pub mod driver;
mod engine;
mod error;
mod faults;
pub mod limits;
pub mod memory;
mod phases;
pub mod regrid;
mod schedule;
mod settings;
pub(crate) mod state;

pub use counters::RunCounters;
pub use driver::{Driver, StepReport, StepVerdict, step_stands};
pub use engine::{Plugin, Simulation};
pub use error::Error;
pub use faults::{Fault, check_faults};
pub use limits::StepLimits;
pub use phases::AlignedLevels;
pub use schedule::{Phase, Schedules, StepSet, Synchronise};
pub use settings::{RunFacts, Settings, tables};
pub use state::PluginState;
