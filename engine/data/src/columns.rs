//! Sums of derived inputs over the cells of patches along an axis, with the same bits on the host and on a device.

use super::criteria::DerivedInputs;
use nestar_kernels::mesh::columns::{COLUMNS, column_cell};
use nestar_kernels::{CELLS, PATCH};

/// Sums along an axis in some patches of a level.
pub struct ColumnSums<'a> {
    /// Quantities of a cell.
    pub quantities: &'a DerivedInputs,
    /// `true` if the other quantities are multiplied by the last one.
    pub weighted: bool,
    /// The axis.
    pub axis: usize,
    /// Rows of the patches.
    pub rows: &'a [u32],
    /// Factors of the cells of each patch, by their place along the axis.
    pub factors: &'a [[f64; PATCH]],
}

/// Computes the sums in the columns of a patch, `[quantity][64]`, from its quantities, `[quantity][512]`; see [`ColumnSums`].
pub fn sum_columns(
    values: impl Fn(usize) -> f64,
    axis: usize,
    factors: &[f64; PATCH],
    weighted: bool,
    sums: &mut [f64],
) {
    let quantities = sums.len() / COLUMNS;
    sums.fill(0.0);
    for (n, &factor) in factors.iter().enumerate().filter(|(_, f)| **f != 0.0) {
        for column in 0..COLUMNS {
            let cell = column_cell(axis as i32, column as i32, n as i32) as usize;
            let weight = match weighted {
                true => values(CELLS * (quantities - 1) + cell) * factor,
                false => factor,
            };
            for q in 0..quantities {
                let term = match weighted && q + 1 == quantities {
                    true => weight,
                    false => values(CELLS * q + cell) * weight,
                };
                sums[COLUMNS * q + column] += term;
            }
        }
    }
}
