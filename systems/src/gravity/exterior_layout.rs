//! Counts the values of the potential around an isolated domain, and splits them among ranks.

use nestar_kernels::multigrid::expansion::{MARGIN, TABLE_LAYERS_WITH_MARGIN};
use std::ops::Range;

/// Returns the extent of a face along the other two axes, with the margin.
pub(super) fn across(cells: [i32; 3], face: usize) -> [i32; 2] {
    [1, 2].map(|n| cells[(face / 2 + n) % 3] + 2 * MARGIN as i32)
}

/// Returns the number of values of a face.
pub(super) fn face_value_count(cells: [i32; 3], face: usize) -> usize {
    let [a, b] = across(cells, face);
    TABLE_LAYERS_WITH_MARGIN * (a * b) as usize
}

/// Returns the number of values around a domain of root cells.
pub(super) fn value_count(cells: [i32; 3]) -> usize {
    (0..6).map(|face| face_value_count(cells, face)).sum()
}

/// Returns the range of values that a rank evaluates.
pub(super) fn rank_range(values: usize, rank: usize, size: usize) -> Range<usize> {
    values * rank / size..values * (rank + 1) / size
}
