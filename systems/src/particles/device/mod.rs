//! Particles on a device: one page array per level and list, ordered by patch.
//!
//! Each step redistributes particles in three passes: count per patch, exclusive scan on the host, scatter.
//! The scatter is done in place, in batches of patches that overwrite only memory already read, so that
//! little spare memory is needed. The host knows the number and the rows of the particles of each patch.
//! Particles that arrive from elsewhere wait in host pages until a kernel needs them;
//! [`Species::fetch`](super::Species::fetch) downloads all particles.
//!
//! [`DeviceParticles`] is defined in `lists.rs`. A drift step calls `predict.rs` (kick, drift, count), `migrate.rs`
//! (outgoing and arriving particles), `capacity.rs` (new rows) and `compaction.rs` (plan of an in-place compaction, scatter). `kick.rs` and `tracers.rs` move particles, `regrid.rs` follows refinement, `records.rs` downloads, and
//! `reductions.rs` reduces.

mod capacity;
mod compaction;
mod functions;
mod kernels;
mod kick;
mod lists;
mod migrate;
mod predict;
mod records;
mod reductions;
mod regrid;
mod tracers;

pub(super) use functions::{COLLECTIONS, FunctionKernel, REDUCTIONS, UPDATES};
pub use kernels::ParticleKernels;
pub(super) use kernels::{BLOCK, LEAST, ListLaunch};
pub use kick::KickContext;
pub(super) use lists::ListId;
pub use lists::{Arrivals, DeviceParticles};
pub(super) use predict::CountedStep;
pub use predict::DeviceStep;
pub(super) use reductions::{ReductionContext, TermSums};
pub use tracers::TracerStep;

use nestar_engine::data::device::DeviceTopology;
use nestar_kernels::particles::device::HierarchyTables;

/// Returns the topology tables for kernels.
pub fn tables(tables: &DeviceTopology) -> HierarchyTables {
    HierarchyTables {
        neighbours: tables.neighbours().into(),
        parent: tables.parent().into(),
        first_child: tables.first_child().into(),
        index: tables.index().into(),
    }
}
