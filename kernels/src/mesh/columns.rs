//! Sums of the cells of patches along an axis.
use crate::PATCH;
use nestar_device::device;

/// Columns of cells of a patch along an axis.
pub const COLUMNS: usize = PATCH * PATCH;

/// Returns the cell (0 to 511) at depth `n` (0 to 7) of a column (0 to 63) along an axis. Of the other two axes, the first one is the fast
/// index of the columns.
#[device]
#[must_use]
pub fn column_cell(axis: i32, column: i32, n: i32) -> i32 {
    if axis == 0 {
        n + 8 * column
    } else if axis == 1 {
        column % 8 + 8 * n + 64 * (column / 8)
    } else {
        column + 64 * n
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, column_cell};
    use crate::CELLS;

    #[test]
    fn columns_along_each_axis_have_all_cells() {
        for axis in 0..3 {
            let mut seen = vec![false; CELLS];
            for column in 0..COLUMNS as i32 {
                for n in 0..8 {
                    let cell = column_cell(axis, column, n) as usize;
                    let at = [cell % 8, cell / 8 % 8, cell / 64];
                    assert_eq!(at[axis as usize], n as usize);
                    assert!(!std::mem::replace(&mut seen[cell], true));
                }
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }
}
