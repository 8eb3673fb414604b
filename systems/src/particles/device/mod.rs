//! Particles on a device: one page array per level and list, ordered by patch.
//!
//! Each step redistributes particles in three passes: count per patch, exclusive scan on the host, scatter.
//! The scatter is done in place, in batches of patches that overwrite only memory already read, so that
//! little spare memory is needed. The host knows the number and the rows of the particles of each patch.
//! Particles that arrive from elsewhere wait in host pages until a kernel needs them;
//! [`Species::fetch`](super::Species::fetch) downloads all particles.
//!
//! [`DeviceParticles`] is defined in `lists.rs`. A drift step calls `predict.rs` (kick, drift, count), `migrate.rs`
//! (outgoing particles and `arrivals.rs`), `capacity.rs` (new rows, by `compaction_plan.rs`) and `compaction.rs`
//! (scatter). `kick.rs` and `tracers.rs` move particles, `regrid.rs` follows refinement, `records.rs` downloads, and
//! `reductions.rs` reduces.

mod arrivals;
mod capacity;
mod compaction;
mod compaction_plan;
mod kernels;
mod kick;
mod lists;
mod migrate;
mod predict;
mod records;
mod reductions;
mod regrid;
mod tracers;

pub use arrivals::Arrivals;
pub(super) use kernels::{BLOCK, LEAST, ListLaunch};
pub use kernels::{ParticleKernels, mover};
pub use kick::KickContext;
pub use lists::DeviceParticles;
pub(super) use lists::ListId;
pub use predict::DeviceStep;
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
