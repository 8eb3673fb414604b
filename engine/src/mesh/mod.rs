//! The hierarchy of patches: topology tables, proper nesting and its audit, the clocks of the levels.

pub mod audit;
mod changes;
mod clock;
mod costs;
pub mod cuts;
pub mod faces;
pub mod hilbert;
pub mod nesting;
pub mod obeyed;
pub mod patch;
pub(crate) mod patch_component;
pub mod topology;
mod work;

pub use audit::{AuditError, audit};
pub use changes::{Changes, NewRows};
pub use clock::{Clock, LevelClock, Levels};
pub(crate) use costs::CostParts;
pub use costs::{CostPart, Costs};
pub use cuts::HilbertPartition;
pub(crate) use cuts::RootCurve;
pub use nesting::RefineRequests;
pub use obeyed::{Cost, Observed, Pinned};
pub use patch::{CELLS, Level, Owner, PATCH, Parent, PatchIndex, PatchRow};
pub use patch_component::PatchComponent;
pub use topology::{Domain, Topology, offset};
pub use work::LevelWork;
