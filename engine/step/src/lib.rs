//! Time stepping: schedules, step limits, the recursion over levels, regrids, memory limits and the engine
//! itself.

pub mod access;
mod activity;
mod budgets;
mod capture;
mod catalogue;
pub mod config;
pub mod driver;
mod engine;
pub mod error;
mod initial;
pub mod limits;
pub mod memory;
mod order;
pub mod regrid;
mod schedule;
pub mod state;

pub use access::{
    Around, FieldView, FunctionFields, OtherFields, OtherHandles, Read, UpdateInputs, Write,
};
pub use activity::{Activity, RunCounters, short_name};
pub use budgets::{BudgetId, Budgets};
pub use capture::{Capture, Replays, check_faults};
pub use catalogue::{Catalogue, CatalogueEntry, PluginPlace, plugin_order};
pub use config::{ChangingUnits, KeptKeys, Remarks, RunFacts, Settings, tables};
pub use driver::{Driver, StepReport, StepVerdict, step_accepted};
pub use engine::{Engine, HierarchyPreview, Plugin};
pub use error::{AccessError, Error};
pub use initial::{Magnitude, require_range};
pub use limits::StepLimits;
pub use order::{
    FieldUse, IntoSystemReference, Schedules, StatelessSystem, SystemChain, SystemNamed,
    SystemOptions, SystemOutcome, SystemReference, SystemSummary,
};
pub use schedule::{AlignedLevels, Phase, StepSet, Synchronise};
pub use state::PluginState;
