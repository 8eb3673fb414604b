//! Shape of the box that is transformed.

use super::roots::smooth_length;

/// Describes a box of numbers, the lengths of its transforms, and the margin around the box in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Numbers along x, y and z; along x an even number.
    pub cells: [usize; 3],
    /// Lengths of the transforms. Where they exceed `cells`, rows are padded with zeros.
    pub lengths: [usize; 3],
    /// Layers around the box that the result includes.
    pub margin: usize,
}

impl Shape {
    /// Returns the shape of a periodic box.
    #[must_use]
    pub fn periodic(cells: [usize; 3]) -> Self {
        Self {
            cells,
            lengths: cells,
            margin: 0,
        }
    }

    /// Returns the shape of an isolated box, padded with zeros for a convolution without periodic images.
    ///
    /// The kernel of the convolution must be even along each axis. The lengths are large enough that the distance of a cell of
    /// the box to a cell of the box with its margin occurs only once (R. W. Hockney & J. W. Eastwood, Computer Simulation
    /// Using Particles, 1988, section 6-5-4).
    #[must_use]
    pub fn padded(cells: [usize; 3], margin: usize) -> Self {
        let least = |axis: usize| 2 * cells[axis] + (2 * margin).saturating_sub(2);
        Self {
            cells,
            lengths: std::array::from_fn(|axis| smooth_length(least(axis), axis == 0)),
            margin,
        }
    }

    /// Returns the number of cells along x, y and z, including the margin.
    #[must_use]
    pub fn grown(&self) -> [usize; 3] {
        self.cells.map(|cells| cells + 2 * self.margin)
    }

    /// Returns the number of modes along x. Rows of real numbers have modes from 0 to half the length.
    #[must_use]
    pub fn waves(&self) -> usize {
        self.lengths[0] / 2 + 1
    }

    /// Returns a message if the shape is invalid.
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
