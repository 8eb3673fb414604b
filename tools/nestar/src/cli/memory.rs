//! How much memory a run takes.

use nestar::engine::Simulation;
pub use nestar::engine::device::shown;
use nestar::engine::field::{FieldRegistry, Precision};
use nestar::engine::mesh::{CELLS, Topology};

/// Banks of every row: before and after the level's step.
pub const BANKS: usize = 2;

/// Bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Simulation) -> u64 {
    let fields = sim.world.resource::<FieldRegistry>().operations();
    let components: usize = fields
        .iter()
        .map(|field| (field.components)(&sim.world).len())
        .sum();
    let size = match sim.precision() {
        Precision::Single => size_of::<f32>(),
        Precision::Double => size_of::<f64>(),
    };
    (components * CELLS * BANKS * size) as u64
}

/// Patches of the root grid.
pub fn root_patches(sim: &Simulation) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}
