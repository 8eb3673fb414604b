//! The order of a run: schedules, limits, the recursion over levels, regrids, the guard of memory, and what puts them together.

pub(crate) mod agreement;
pub mod config;
pub mod driver;
mod engine;
mod error;
mod faults;
pub mod limits;
pub mod memory;
pub mod regrid;
mod schedule;
mod settings;

pub use driver::{Driver, RunCounters, StepReport, StepVerdict, step_stands};
pub use engine::{Plugin, Simulation};
pub use error::Error;
pub use faults::{Fault, check_faults};
pub use limits::StepLimits;
pub use schedule::{Phase, Schedules, StepSet, Synchronise};
pub use settings::{RunFacts, Settings, tables};
