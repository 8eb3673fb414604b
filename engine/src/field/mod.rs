//! Fields: what a plugin declares, where the values live, and what the engine derives from the declaration.

pub mod device;
pub mod faults;
pub mod map;
pub mod operations;
pub mod patches;
pub mod pieces;
pub mod pool;
pub mod registers;
pub mod slab;
pub mod totals;
pub mod transfer;
pub(crate) mod travel;

pub use faults::{FaultBox, Reported};
pub use map::LevelRows;
pub use operations::{FieldOperations, FieldRegistry};
pub use pool::{Element, Field, Pool, Storage, TypedPool};
pub use registers::Registers;
pub use slab::Slabs;

use nestar_device::Item;
use nestar_kernels::mesh::prolong::SlopeLimiter;

/// What one component of a field is.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Name of its array in snapshots, for example `momentum_x`.
    pub name: String,
    /// Unit in code units, for example `mass/length**3`.
    pub units: String,
    /// Powers of (length, mass, time) in the unit.
    pub dimension: [i32; 3],
    /// A sentence for people.
    pub long_name: String,
    /// The axis whose mirror image changes the component's sign: 0, 1, 2 for a vector's own, `None` for a scalar.
    pub normal_to: Option<usize>,
}

/// Declaration of a field: everything the engine needs to move it about.
#[derive(Clone, Debug)]
pub struct FieldSpec {
    /// Components, in the order of their storage.
    pub components: Vec<Component>,
    /// Limiter of the interpolation between levels.
    pub prolongation: SlopeLimiter,
    /// Whether an `f32` state is physical.
    pub physical_f32: fn(&[f32]) -> bool,
    /// Whether an `f64` state is physical.
    pub physical_f64: fn(&[f64]) -> bool,
    /// The same on a device.
    pub physical_device: PhysicalItem,
}

/// The test of physical states as a device function.
#[derive(Clone, Copy, Debug)]
pub struct PhysicalItem {
    /// A `#[device] fn(&[R; leading]) -> bool` on the leading components.
    pub item: &'static Item,
    /// Number of components that it looks at; the others must be finite.
    pub leading: usize,
}

impl FieldSpec {
    /// Per axis, the components that change sign under its mirror image, as a bit mask.
    #[must_use]
    pub fn normal_masks(&self) -> [u64; 3] {
        let mut masks = [0; 3];
        for (c, component) in self.components.iter().enumerate() {
            if let Some(axis) = component.normal_to {
                masks[axis] |= 1 << c;
            }
        }
        masks
    }
}

/// Floating-point precision of the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}
