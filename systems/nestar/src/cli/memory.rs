//! Memory of a run.

use nestar::engine::Engine;
use nestar::engine::data::{StoreRef, Stores};
pub use nestar::engine::device::format_bytes;
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{ParticleDemand, particle_demand};

/// Returns the bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Engine) -> u64 {
    let fields = sim.world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| field.of(&sim.world).spec().row_bytes(sim.precision());
    fields.iter().map(bytes).sum::<usize>() as u64
}

/// Describes the initial particles of a run, one line per kind, with their memory in `patches` patches.
pub fn particle_memory(sim: &Engine, patches: usize) -> Vec<String> {
    let line = |kind: ParticleDemand| {
        let (path, count) = (kind.path, kind.count);
        format!(
            "{path}: {} for at most {count} particles",
            format_bytes(kind.bytes)
        )
    };
    particle_demand(&sim.world, patches, 1)
        .into_iter()
        .map(line)
        .collect()
}

/// Returns the number of patches of the root grid.
pub fn root_patches(sim: &Engine) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}
