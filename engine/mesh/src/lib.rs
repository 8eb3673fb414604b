//! The patch hierarchy: topology tables, proper nesting, audit, partition among ranks, and clocks of the levels.

pub mod audit;
mod clock;
pub mod faces;
pub mod hilbert;
pub mod nesting;
pub mod parallel;
pub mod partition;
pub mod patch;
pub mod patch_component;
pub mod patch_controls;
pub mod topology;

pub use audit::{AuditError, audit};
pub use clock::{Clock, LevelClock, Levels};
pub use nesting::RefineRequests;
pub use partition::RootCurve;
pub use partition::{HilbertPartition, LevelWork};
pub use patch::{CELLS, Level, Owner, PATCH, Parent, PatchIndex, PatchRow};
pub use patch_component::PatchComponent;
pub use patch_controls::{Cost, Observed, Pinned, RefinementFlags};
pub use topology::{Changes, Domain, NewRows, Topology, offset};
