//! Records that functions return for some of the cells or particles.

use nestar_device::{CellState, device};

/// Result of a function that returns a record for some cells or particles and nothing for the others. Write the type of the record explicitly:
/// `CellRecord::<[R; 2]> { found: mass > 0.0, record: [mass, age] }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRecord<T> {
    /// `true` if the cell or particle has a record.
    pub found: bool,
    /// The record: a number, an array or a structure of numbers. Ignored unless `found`.
    pub record: T,
}

/// Implemented by every [`CellRecord`].
pub trait RecordResult<R> {
    /// Type of the record.
    type Record: CellState<R>;
    /// Returns the record, if there is one.
    fn into_record(self) -> Option<Self::Record>;
}

impl<R, T: CellState<R>> RecordResult<R> for CellRecord<T> {
    type Record = T;

    #[inline(always)]
    fn into_record(self) -> Option<T> {
        self.found.then_some(self.record)
    }
}
