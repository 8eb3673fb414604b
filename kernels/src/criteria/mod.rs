//! Refinement criteria: which cells of a patch request refinement, and which patches are affected.
//!
//! A criterion is a `#[device]` function of [`cell`] that returns a `bool`. Skeletons pack the results into [`CellFlags`]. Sums over
//! directions do not depend on their order, so a permuted or mirrored patch gives permuted or mirrored flags, bit for bit. A cell whose
//! estimate is NaN is never flagged.

use crate::PATCH;
use nestar_device::Item;

pub mod cell;
mod flags;

pub use flags::{CellFlags, buffer_sectors};

/// Finds the patches within the flag buffer of flagged cells, on the device.
pub const SECTORS: &str = include_str!("sectors.cuh");

/// Ghost layers of the values that functions of a list read around a cell.
pub const LIST_GHOSTS: usize = 2;
/// Cells of a patch with these layers, along an axis.
pub const LIST_WIDTH: usize = PATCH + 2 * LIST_GHOSTS;
/// Cells of a patch with these layers.
pub const LIST_BLOCK: usize = LIST_WIDTH * LIST_WIDTH * LIST_WIDTH;

/// Calls of a list's functions; follows `cells.cuh`.
pub(crate) const LIST: &str = include_str!("list.cuh");

/// Functions of a list in the device's language.
#[derive(Clone, Debug, Default)]
pub struct ListText {
    /// A structure `List` in namespace `cells`, as `list.cuh` describes it, with everything that it calls.
    pub text: String,
    /// The items that the text names.
    pub items: Vec<&'static Item>,
    /// Number of values that are read around cells.
    pub kept: usize,
}

#[cfg(test)]
mod tests;
