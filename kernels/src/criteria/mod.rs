//! Refinement criteria: which cells of a patch request refinement, and which patches are affected.
//!
//! A criterion is a `#[device]` function of [`cell`] that returns a `bool`. Skeletons pack the results into [`CellFlags`]. Sums over
//! directions do not depend on their order, so a permuted or mirrored patch gives permuted or mirrored flags, bit for bit. A cell whose
//! estimate is NaN is never flagged.
pub mod cell;
mod flags;
mod list;

pub use flags::{CellFlags, buffer_sectors};
pub(crate) use list::LIST;
pub use list::{LIST_BLOCK, LIST_GHOSTS, LIST_WIDTH, ListText};

/// Finds the patches within the flag buffer of flagged cells, on the device.
pub const SECTORS: &str = include_str!("sectors.cuh");

#[cfg(test)]
mod tests;
