//! The patch hierarchy: topology tables, proper nesting, audit, partition among ranks, and clocks of the levels.

pub mod audit;
mod clock;
pub mod nesting;
pub mod parallel;
pub mod partition;
pub mod patch;
pub mod topology;

pub use audit::{AuditError, audit};
pub use clock::{Clock, LevelClock, Levels};
pub use nesting::RefineRequests;
pub use partition::{HilbertPartition, LevelWork, RootCurve};
pub use patch::{
    CELLS, Cost, Level, Observed, Owner, PATCH, Parent, PatchComponent, PatchIndex, PatchRow,
    Pinned, RefinementFlags,
};
pub use topology::{Changes, Domain, NewRows, Topology, offset};
