//! Centring of the values of a row: in cells, on faces or on edges.

use crate::{CELLS, PATCH};

/// Selects where the values of a field lie. A row is `[component][k][j][i]` with `i` (x) fastest.
///
/// The components of a staggered field form vectors of three (x, y, z). Values on the sides of a patch are stored in the rows of all
/// patches that share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Centring {
    /// In the cells: 8^3 values per component.
    #[default]
    Cell,
    /// On the faces normal to the component's axis: 9 values along that axis, 8 along the others.
    Face,
    /// On the edges along the component's axis: 8 values along that axis, 9 along the others.
    Edge,
}

impl Centring {
    /// Returns 1 if the values of a component lie on the lower and upper sides of cells along an axis, 0 if they lie between.
    #[must_use]
    pub const fn staggered(self, component: usize, axis: usize) -> usize {
        match self {
            Self::Cell => 0,
            Self::Face => (component % 3 == axis) as usize,
            Self::Edge => (component % 3 != axis) as usize,
        }
    }

    /// Returns the number of groups of components with equal positions: component `c` is in group `c % groups`.
    #[must_use]
    pub const fn groups(self) -> usize {
        match self {
            Self::Cell => 1,
            Self::Face | Self::Edge => 3,
        }
    }

    /// Returns the number of values of a component along each axis, in a box of `cells` cells.
    #[must_use]
    pub fn lengths(self, component: usize, cells: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| cells[axis] + self.staggered(component, axis))
    }

    /// Returns the number of values of a component in a row: 512, 576 or 648.
    #[must_use]
    pub const fn values(self) -> usize {
        match self {
            Self::Cell => CELLS,
            Self::Face => PATCH * PATCH * (PATCH + 1),
            Self::Edge => PATCH * (PATCH + 1) * (PATCH + 1),
        }
    }

    /// Returns the index of a value among those of its component in a row.
    #[must_use]
    pub fn index(self, component: usize, [i, j, k]: [usize; 3]) -> usize {
        let [x, y, _] = self.lengths(component, [PATCH; 3]);
        i + x * (j + y * k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_a_value_more_along_its_staggered_axes() {
        let lengths = |centring: Centring, c| centring.lengths(c, [PATCH; 3]);
        assert_eq!(lengths(Centring::Cell, 4), [8, 8, 8]);
        assert_eq!(lengths(Centring::Face, 0), [9, 8, 8]);
        assert_eq!(lengths(Centring::Face, 5), [8, 8, 9]);
        assert_eq!(lengths(Centring::Edge, 1), [9, 8, 9]);
        for centring in [Centring::Cell, Centring::Face, Centring::Edge] {
            for component in 0..6 {
                let lengths = lengths(centring, component);
                assert_eq!(lengths.iter().product::<usize>(), centring.values());
                let last = lengths.map(|n| n - 1);
                assert_eq!(centring.index(component, last), centring.values() - 1);
                let more = lengths.iter().sum::<usize>() - 3 * PATCH;
                assert_eq!(more, centring as usize);
            }
        }
    }
}
