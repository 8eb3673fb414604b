//! How much memory a run takes.

use nestar::engine::Engine;
pub use nestar::engine::device::shown;
use nestar::engine::field::{StoreRef, Stores};
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{ItemsDemand, of_items};

/// Bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Engine) -> u64 {
    let fields = sim.world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| field.of(&sim.world).spec().row_bytes(sim.precision());
    fields.iter().map(bytes).sum::<usize>() as u64
}

/// The items that a run begins with, a line for each kind, with their memory in so many patches.
pub fn items(sim: &Engine, patches: usize) -> Vec<String> {
    let line = |kind: ItemsDemand| {
        let (path, count) = (kind.path, kind.count);
        format!("{path}: {} for {count} of them at most", shown(kind.bytes))
    };
    of_items(&sim.world, patches, 1)
        .into_iter()
        .map(line)
        .collect()
}

/// Patches of the root grid.
pub fn root_patches(sim: &Engine) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}
