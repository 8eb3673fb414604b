//! Centring of the values of a row (in cells, on faces or on edges), and packed pieces of rows and of registers.

pub use super::parameters::Piece;
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

/// Describes the layout of a store's rows for packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowShape {
    /// Cells along each axis: 8, or 4, 2, 1 if values are coarser than cells.
    pub side: usize,
    /// Centring of the values.
    pub centring: Centring,
}

impl RowShape {
    /// Returns the shape of rows with one value per cell.
    #[must_use]
    pub const fn of_patches(centring: Centring) -> Self {
        Self {
            side: PATCH,
            centring,
        }
    }

    /// Returns the number of values of a component in a row.
    #[must_use]
    pub fn values(self) -> usize {
        self.lengths(0).iter().product()
    }

    /// Returns the number of values in a row as counted by pieces.
    #[must_use]
    pub fn row(self) -> usize {
        self.centring.groups() * self.values()
    }

    /// Returns the number of patch cells along an axis per cell of a row.
    #[must_use]
    pub fn width(self) -> usize {
        PATCH / self.side
    }

    /// Returns the row cells that contain patch cells `first` to `end`.
    #[must_use]
    pub fn holding(self, [first, end]: [u32; 2]) -> [u32; 2] {
        let width = self.width() as u32;
        [first / width, end.div_ceil(width)]
    }

    fn lengths(self, c: usize) -> [usize; 3] {
        self.centring.lengths(c, [self.side; 3])
    }
}

impl Piece {
    /// Creates a piece for a whole row, after `before` values of other pieces.
    #[must_use]
    pub fn whole(row: u32, before: u64, shape: RowShape) -> Self {
        Self::part(row, before, [0; 3], [shape.side as u32; 3])
    }

    /// Creates pieces for whole rows, one after another.
    pub fn whole_rows(rows: &[u32], shape: RowShape) -> impl Iterator<Item = Self> {
        let before = move |n| (n * shape.row()) as u64;
        let rows = rows.iter().enumerate();
        rows.map(move |(n, &row)| Self::whole(row, before(n), shape))
    }

    /// Creates a piece for a box of at least one cell, from `first` on with `length` cells along each axis.
    #[must_use]
    pub fn part(row: u32, before: u64, first: [u32; 3], length: [u32; 3]) -> Self {
        let bits = |values: [u32; 3]| values[0] | values[1] << 4 | values[2] << 8;
        Self {
            before,
            row,
            bounds: bits(first) | bits(length) << 12,
        }
    }

    /// Creates a piece for the fine flux register of face `face` (x-, x+, y-, y+, z-, z+) of a row, after `before` values of others. It
    /// holds the reference fluxes and their change, 4 x 4 each.
    #[must_use]
    pub fn register(row: u32, face: u8, before: u64) -> Self {
        Self::part(row, before, [face.into(), 0, 0], [4, 4, 2])
    }

    /// Creates a piece for the fine circulation registers of a row, after `before` values of others. It holds the reference circulations
    /// of a vector and their change, [`FINE_SURFACE`](super::circulations::FINE_SURFACE) for each of three components.
    #[must_use]
    pub fn circulations(row: u32, before: u64) -> Self {
        Self::part(row, before, [0; 3], [8, 8, 6])
    }

    /// Returns the face of a flux register.
    #[must_use]
    pub fn face(&self) -> usize {
        self.first()[0]
    }

    /// Returns the first cell along each axis.
    #[must_use]
    pub fn first(&self) -> [usize; 3] {
        [0, 4, 8].map(|shift| (self.bounds >> shift & 15) as usize)
    }

    /// Returns the number of cells along each axis.
    #[must_use]
    pub fn length(&self) -> [usize; 3] {
        [12, 16, 20].map(|shift| (self.bounds >> shift & 15) as usize)
    }

    /// Returns the number of values of one component in each group: one component of a cell field, one vector of a staggered field.
    #[must_use]
    pub fn values(&self, shape: RowShape) -> usize {
        let lengths = |c| shape.centring.lengths(c, self.length());
        let values = |c| lengths(c).iter().product::<usize>();
        (0..shape.centring.groups()).map(values).sum()
    }

    /// Iterates over the contiguous ranges of component `c` in packing order, as first value and length.
    pub fn stretches(
        &self,
        shape: RowShape,
        c: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [along, rows, layers] = shape.centring.lengths(c, self.length());
        let whole = self.length() == [shape.side; 3];
        let (along, rows, layers) = if whole {
            (shape.values(), 1, 1)
        } else {
            (along, rows, layers)
        };
        let ([x, y, z], [width, height, _]) = (self.first(), shape.lengths(c));
        let start = move |k, j| x + width * (y + j + height * (z + k));
        (0..layers).flat_map(move |k| (0..rows).map(move |j| (start(k, j), along)))
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
