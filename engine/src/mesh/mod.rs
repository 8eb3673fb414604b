//! The hierarchy of patches: topology tables, proper nesting, regridding and its audit.

pub mod audit;
pub mod cuts;
pub mod hilbert;
pub mod nesting;
pub mod regrid;
pub mod topology;
mod work;

pub use audit::{AuditError, audit};
pub use cuts::Cuts;
pub use nesting::{Changes, RefineRequests};
pub use regrid::NewRows;
pub use topology::{Domain, Topology};
pub use work::LevelWork;
