//! How much memory a run takes.

use nestar::engine::Engine;
use nestar::engine::data::{StoreRef, Stores};
pub use nestar::engine::device::format_bytes;
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{ParticleDemand, particle_demand};

/// Bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Engine) -> u64 {
    let fields = sim.world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| field.of(&sim.world).spec().row_bytes(sim.precision());
    fields.iter().map(bytes).sum::<usize>() as u64
}

/// The items that a run begins with, a line for each kind, with their memory in so many patches.
pub fn items(sim: &Engine, patches: usize) -> Vec<String> {
    let line = |kind: ParticleDemand| {
        let (path, count) = (kind.path, kind.count);
        format!(
            "{path}: {} for {count} of them at most",
            format_bytes(kind.bytes)
        )
    };
    particle_demand(&sim.world, patches, 1)
        .into_iter()
        .map(line)
        .collect()
}

/// Patches of the root grid.
pub fn root_patches(sim: &Engine) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}
