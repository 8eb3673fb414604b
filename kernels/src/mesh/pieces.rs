//! Packed pieces of rows and of flux registers: which values they contain, and in which order.

use super::Centring;
pub use super::parameters::Piece;
use crate::PATCH;

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
    pub fn register((row, face): (u32, u8), before: u64) -> Self {
        Self::part(row, before, [face.into(), 0, 0], [4, 4, 2])
    }

    /// Returns the face of a register.
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
