//! A patch with the ghost layers outside the domain.

use nestar_kernels::PATCH;
use std::ops::Range;

/// Potential of a root patch at the faces of the domain, with ghost layers outside faces, edges and corners.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedPatch {
    /// Index among the given patches.
    pub patch: usize,
    /// Number of layers before the patch along each axis: the margin at a face of the domain, otherwise 0.
    pub below: [usize; 3],
    /// Number of cells along each axis, layers included.
    pub size: [usize; 3],
    /// `[k][j][i]`, layers included.
    pub values: Vec<f64>,
}

impl PaddedPatch {
    /// Returns the potential in a cell, whose index counts from the first cell of the patch (-margin to 7 + margin).
    /// Returns `None` if the cell is neither in the patch nor outside the domain.
    #[must_use]
    pub fn at(&self, cell: [i32; 3]) -> Option<f64> {
        let mut place = 0;
        for axis in [2, 1, 0] {
            let n = usize::try_from(cell[axis] + self.below[axis] as i32).ok()?;
            place = place * self.size[axis] + (n < self.size[axis]).then_some(n)?;
        }
        Some(self.values[place])
    }
}

/// Cells of a patch and of the ghost layers beside it, in a box with a margin.
#[derive(Clone, Debug)]
pub(super) struct PaddedBox {
    /// Range along each axis.
    pub cells: [Range<usize>; 3],
    /// Number of layers before the patch.
    pub below: [usize; 3],
}

impl PaddedBox {
    /// Returns the box of the patch at `index` in a domain of `patches` patches.
    pub fn of(index: [usize; 3], patches: [usize; 3], margin: usize) -> Self {
        let cells = |axis: usize| {
            let first = index[axis] == 0;
            let last = index[axis] + 1 == patches[axis];
            let start = index[axis] * PATCH + if first { 0 } else { margin };
            let end = (index[axis] + 1) * PATCH + if last { 2 * margin } else { margin };
            start..end
        };
        Self {
            cells: std::array::from_fn(cells),
            below: index.map(|index| if index == 0 { margin } else { 0 }),
        }
    }

    /// Returns the number of cells along each axis.
    pub fn size(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.cells[axis].len())
    }

    /// Returns the number of cells of one plane.
    pub fn area(&self) -> usize {
        self.cells[0].len() * self.cells[1].len()
    }

    /// Returns `true` if there are cells outside the domain.
    pub fn has_outside(&self) -> bool {
        self.size() != [PATCH; 3]
    }

    /// Returns its planes within `planes`.
    pub fn planes_in(&self, planes: &Range<usize>) -> Range<usize> {
        let start = self.cells[2].start.max(planes.start);
        start..self.cells[2].end.min(planes.end).max(start)
    }
}
