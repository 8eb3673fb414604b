//! Particles on a device: pages of all particles of a level's patches that one level moves, patch by patch.
//!
//! Who moves them deals them to new places, in no order that means anything: up and down in one memory in turns, so that it holds little more than
//! they need. The host knows how many each patch has, and where they stand.
//! What comes from elsewhere waits in the host's pages until a kernel asks for particles, and the host gets them back by
//! [`Species::fetch`](super::Species::fetch).

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

/// The hierarchy, for kernels.
pub fn tables(tables: &DeviceTopology) -> HierarchyTables {
    HierarchyTables {
        neighbours: tables.neighbours().into(),
        parent: tables.parent().into(),
        first_child: tables.first_child().into(),
        index: tables.index().into(),
    }
}
