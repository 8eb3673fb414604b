//! Time stepping: schedules, step limits, the recursion over levels, regrids, memory limits and the engine
//! itself.

pub mod access;
mod activity;
pub mod agreement;
mod budgets;
mod capture;
mod catalogue;
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
mod plugin_order;
pub mod regrid;
mod replays;
mod resources;
mod schedule;
mod settings;
pub mod state;
pub mod synchronise;
mod system_name;
mod view;

pub use access::{Around, FunctionFields, OtherFields, OtherHandles, Read, UpdateInputs, Write};
pub use activity::Activity;
pub use budgets::{BudgetId, Budgets};
pub use capture::Capture;
pub use catalogue::{Catalogue, CatalogueEntry};
pub use counters::RunCounters;
pub use driver::{Driver, StepReport, StepVerdict, step_accepted};
pub use engine::{Engine, HierarchyPreview, Plugin};
pub use error::{AccessError, Error};
pub use faults::check_faults;
pub use initial::{Magnitude, require_range};
pub use limits::StepLimits;
pub use order::{
    FieldUse, IntoSystemReference, Schedules, StatelessSystem, SystemChain, SystemNamed,
    SystemOptions, SystemOutcome, SystemReference, SystemSummary,
};
pub use plugin_order::{PluginPlace, plugin_order};
pub use replays::Replays;
pub use schedule::{AlignedLevels, Phase, StepSet, Synchronise};
pub use settings::{KeptKeys, Remarks, RunFacts, Settings, tables};
pub use state::PluginState;
pub use system_name::short_name;
pub use view::FieldView;
