//! A patch with the layers of cells outside the domain.

use nestar_kernels::PATCH;
use std::ops::Range;

/// The potential of a root patch that touches the domain's faces, with the layers outside: beyond faces, edges and corners of
/// the domain alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// Which of the patches that were given.
    pub patch: usize,
    /// Layers below the patch along each axis: the margin where the domain ends there, otherwise 0.
    pub below: [usize; 3],
    /// Cells along each axis, those of the patch included.
    pub size: [usize; 3],
    /// `[k][j][i]` from the first layer on.
    pub values: Vec<f64>,
}

impl Grown {
    /// The potential in a cell, counted from the patch's first one: from -margin to 7 + margin. Nothing where the place is neither in
    /// the patch nor outside the domain.
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

/// Places of a patch's cells in a box with a margin, those outside the domain beside it included.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Along each axis.
    pub cells: [Range<usize>; 3],
    /// Layers below the patch.
    pub below: [usize; 3],
}

impl Place {
    /// Of the patch at `index` in a domain of `patches` patches.
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

    /// Cells along each axis.
    pub fn size(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.cells[axis].len())
    }

    /// Cells of one plane.
    pub fn area(&self) -> usize {
        self.cells[0].len() * self.cells[1].len()
    }

    /// Whether there are cells outside the domain.
    pub fn has_outside(&self) -> bool {
        self.size() != [PATCH; 3]
    }

    /// Its planes within others.
    pub fn planes_in(&self, planes: &Range<usize>) -> Range<usize> {
        let start = self.cells[2].start.max(planes.start);
        start..self.cells[2].end.min(planes.end).max(start)
    }
}
