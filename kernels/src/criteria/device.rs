//! The device's side of the criteria: launch skeletons. The criteria themselves are text that stands between them.

/// What criteria read of a cell; follows [`GATHER`](crate::mesh::device::GATHER).
pub const CELL: &str = include_str!("cell.cuh");
/// The kernel `flag`; follows [`CELL`] and the namespace `criteria` as its head lists it.
pub const FLAGS: &str = include_str!("flags.cu");

/// Threads of a block of the kernel `flag`, at most.
pub const THREADS: u32 = 256;
