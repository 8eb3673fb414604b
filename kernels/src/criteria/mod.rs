//! Refinement criteria: which cells of a patch ask for a finer mesh, and which patches that concerns.
//!
//! A criterion is a `#[device]` function of [`cell`] that holds in a cell or not; skeletons pack its answers into [`CellFlags`].
//! Sums over directions do not depend on their order, so a permuted or mirrored patch gives permuted or mirrored flags, bit for
//! bit. A cell whose estimate is NaN is never flagged.
pub mod cell;
mod flags;
mod list;

pub use flags::{CellFlags, buffer_sectors};
pub(crate) use list::LIST;
pub use list::{LIST_BLOCK, LIST_GHOSTS, LIST_WIDTH, ListText};

/// Which patches the surroundings of flagged cells reach into, on the device.
pub const SECTORS: &str = include_str!("sectors.cuh");

#[cfg(test)]
mod tests;
