//! A cell of a patch row as one value.

use crate::CELLS;

/// A cell's state as functions of physics see it, read from and written to a row `[component][512]`.
pub trait CellState<R>: Copy {
    /// Reads cell `cell` of a row.
    fn read(row: &[R], cell: usize) -> Self;
    /// Writes it back.
    fn write(self, row: &mut [R], cell: usize);
}

/// The components from 0 on as numbers.
impl<R: Copy, const N: usize> CellState<R> for [R; N] {
    fn read(row: &[R], cell: usize) -> Self {
        std::array::from_fn(|c| row[c * CELLS + cell])
    }

    fn write(self, row: &mut [R], cell: usize) {
        for (c, value) in self.into_iter().enumerate() {
            row[c * CELLS + cell] = value;
        }
    }
}
