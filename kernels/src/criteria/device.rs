//! The device's side of the criteria: launch skeletons. The criteria themselves are text that stands between them.

use crate::mesh::parameters::View;
use nestar_device::{Address, device};

/// What criteria read of a cell; follows [`GATHER`](crate::mesh::device::GATHER).
pub const CELL: &str = include_str!("cell.cuh");
/// Which patches the surroundings of flagged cells reach into.
pub const SECTORS: &str = include_str!("sectors.cuh");
/// The kernel `flag`; follows [`CELL`], [`SECTORS`] and the namespace `criteria` as its head lists it.
pub const FLAGS: &str = include_str!("flags.cu");

/// Threads of a block of the kernel `flag`, at most.
pub const THREADS: u32 = 256;

/// What is the same in all cells of a level.
#[device]
#[derive(Clone, Copy)]
pub struct FlagLevel {
    /// Widths of a cell.
    pub widths: [f64; 3],
    /// The smallest of them.
    pub smallest: f64,
    /// The largest.
    pub widest: f64,
    /// The level.
    pub number: i32,
    /// Cells around a flagged one that are refined with it, 0 to 8.
    pub buffer: i32,
}

/// Of the kernel `flag`.
#[device]
#[derive(Clone, Copy)]
pub struct FlagParameters<R> {
    /// Gathers on the level.
    pub view: View<R>,
    /// The level.
    pub level: FlagLevel,
    /// Its rows, `[count]`.
    pub rows: Address<i32>,
    /// `[count]`: the patch and those of its neighbours that want refinement.
    pub sectors: Address<u32>,
    /// Of a formula, as `view.fault`.
    pub fault: Address<u32>,
    /// A block's values after the other's, where they do not fit into shared memory.
    pub scratch: Address<R>,
    /// Rows.
    pub count: i32,
}
