//! Particles on a device: one page array per level and list, ordered by patch.
//!
//! Each step redistributes particles in three passes: count per patch, exclusive scan on the host, scatter.
//! The scatter is done in place, in batches of patches that overwrite only memory already read, so that
//! little spare memory is needed. The host knows the number and the rows of the particles of each patch.
//! Particles that arrive from elsewhere wait in host pages until a kernel needs them;
//! [`Species::fetch`](super::Species::fetch) downloads all particles.

mod deal;
mod identities;
mod incoming;
mod kernels;
mod land;
mod leaving;
mod lists;
mod marks;
mod passed;
mod pull;
mod records;
mod room;
mod shift;
mod step;
mod terms;
mod trace;
mod turns;

pub use incoming::Arrivals;
pub(super) use kernels::{BLOCK, LEAST, ListLaunch};
pub use kernels::{ParticleKernels, mover};
pub use lists::DeviceParticles;
pub use pull::KickContext;
pub use step::DeviceStep;
pub use trace::TracerStep;

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
