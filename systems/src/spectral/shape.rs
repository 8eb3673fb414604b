//! What is transformed.

use super::roots::smooth_length;

/// A box of numbers, the lengths of its transforms, and how far beyond the box the outcome is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Numbers along x, y and z; along x an even number.
    pub cells: [usize; 3],
    /// Lengths of the transforms: where they exceed `cells`, zeros follow.
    pub lengths: [usize; 3],
    /// Layers around the box that come back with it.
    pub margin: usize,
}

impl Shape {
    /// A periodic box.
    #[must_use]
    pub fn periodic(cells: [usize; 3]) -> Self {
        Self {
            cells,
            lengths: cells,
            margin: 0,
        }
    }

    /// A box with zeros behind it, such that any two cells, one of the box and one of the box with its margin, meet just once
    /// (R. W. Hockney & J. W. Eastwood, Computer Simulation Using Particles, 1988, section 6-5-4): what is even in each
    /// direction is convolved with the box without images.
    #[must_use]
    pub fn padded(cells: [usize; 3], margin: usize) -> Self {
        let least = |axis: usize| 2 * cells[axis] + (2 * margin).saturating_sub(2);
        Self {
            cells,
            lengths: std::array::from_fn(|axis| smooth_length(least(axis), axis == 0)),
            margin,
        }
    }

    /// Cells with the margin along x, y and z.
    #[must_use]
    pub fn grown(&self) -> [usize; 3] {
        self.cells.map(|cells| cells + 2 * self.margin)
    }

    /// Modes along x: those of real numbers, from 0 to half the length.
    #[must_use]
    pub fn waves(&self) -> usize {
        self.lengths[0] / 2 + 1
    }

    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        let [cells, lengths] = [self.cells, self.lengths];
        let grown = self.grown();
        let fits = |axis: usize| cells[axis] > 0 && grown[axis] <= lengths[axis];
        let is_even = cells[0].is_multiple_of(2) && lengths[0].is_multiple_of(2);
        let bad = !is_even || !(0..3).all(fits);
        bad.then(|| {
            format!(
                "a box of {cells:?} cells with a margin of {} has no transform of lengths {lengths:?}: there must be cells and \
                 room for the margin, and along x even numbers",
                self.margin
            )
        })
    }
}
