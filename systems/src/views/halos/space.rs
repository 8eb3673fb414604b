//! Distances in the box of a run.

/// The box, whose axes are periodic or not.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Lower corner.
    pub left: [f64; 3],
    /// Lengths along the axes.
    pub lengths: [f64; 3],
    /// `true` for each periodic axis.
    pub periodic: [bool; 3],
}

impl Space {
    /// Returns the vector from `a` to the nearest image of `b`. That from `b` to `a` has the same bits with other signs.
    pub fn separation(&self, a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|axis| {
            let (way, length) = (b[axis] - a[axis], self.lengths[axis]);
            match self.periodic[axis] {
                true if way > 0.5 * length => way - length,
                true if way < -0.5 * length => way + length,
                _ => way,
            }
        })
    }

    /// Returns the square of the distance of `a` and the nearest image of `b`.
    pub fn distance_squared(&self, a: [f64; 3], b: [f64; 3]) -> f64 {
        squared(self.separation(a, b))
    }

    /// Returns the image of a point in the box.
    pub fn inside(&self, point: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|axis| {
            let (left, length) = (self.left[axis], self.lengths[axis]);
            match self.periodic[axis] {
                true if point[axis] < left => point[axis] + length,
                true if point[axis] >= left + length => point[axis] - length,
                _ => point[axis],
            }
        })
    }

    /// Returns the cell that contains a point of the box, of `cells` along each axis.
    pub fn cell(&self, point: [f64; 3], cells: [u64; 3]) -> [u64; 3] {
        [0, 1, 2].map(|axis| {
            let share = (point[axis] - self.left[axis]) / self.lengths[axis];
            // the cast saturates at 0
            ((share * cells[axis] as f64) as u64).min(cells[axis] - 1)
        })
    }

    /// Returns ranges of cells, first and last, that cover those from `first` to `last` along an axis, which may be outside the box.
    pub fn ranges(
        &self,
        axis: usize,
        cells: u64,
        [first, last]: [i64; 2],
    ) -> impl Iterator<Item = [u64; 2]> + use<> {
        let (end, inside) = (cells as i64 - 1, [first.max(0), last.min(cells as i64 - 1)]);
        let pieces = match self.periodic[axis] {
            true if last - first >= end => [[0, end], [0, -1]],
            true if first < 0 => [[first + cells as i64, end], [0, last]],
            true if last > end => [[first, end], [0, last - cells as i64]],
            _ => [inside, [0, -1]],
        };
        let pieces = pieces.into_iter().filter(|[first, last]| first <= last);
        pieces.map(|[first, last]| [first as u64, last as u64])
    }
}

/// Returns the square of the length of a vector.
pub fn squared(vector: [f64; 3]) -> f64 {
    vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]
}
