//! A cell of a patch row as one value.

/// A cell's state as functions of physics see it, read from and written to a row `[component][512]`.
pub trait CellState<R>: Copy {
    /// Reads cell `cell` of a row.
    fn read(row: &[R], cell: usize) -> Self;
    /// Writes it back.
    fn write(self, row: &mut [R], cell: usize);
}
