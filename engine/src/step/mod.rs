//! The order of a run: schedules, limits, the recursion over levels, regrids, the guard of memory, and what puts them together.

pub mod access;
pub(crate) mod agreement;
mod capture;
pub mod config;
mod counters;
pub mod driver;
mod engine;
mod error;
mod faults;
mod initial;
pub mod limits;
pub mod memory;
mod order;
mod phases;
pub mod regrid;
mod schedule;
mod settings;
pub(crate) mod state;
pub mod synchronise;
mod view;

pub use access::{Read, Write};
pub use capture::Capture;
pub use counters::RunCounters;
pub use driver::{Driver, StepReport, StepVerdict, step_stands};
pub use engine::{Engine, Foresight, Plugin};
pub use error::{AccessError, Error};
pub use faults::check_faults;
pub use initial::{Magnitude, require_range};
pub use limits::StepLimits;
pub use order::{Outcome, Registered, Schedules};
pub use schedule::{AlignedLevels, Phase, StepSet, Synchronise};
pub use settings::{KeptKeys, RunFacts, Settings, tables};
pub use state::PluginState;
pub use view::View;
