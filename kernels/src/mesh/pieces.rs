//! Pieces of rows and of flux registers on their way: which values, and where they stand in packed memory.

use super::Centring;
pub use super::parameters::Piece;
use crate::PATCH;

/// How the rows of a store are cut: what a list of copies must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowShape {
    /// Cells along each axis: 8, or 4, 2, 1 where the values of a patch are coarser.
    pub side: usize,
    /// Where values lie.
    pub centring: Centring,
}

impl RowShape {
    /// Rows of the cells of patches.
    #[must_use]
    pub const fn of_patches(centring: Centring) -> Self {
        Self {
            side: PATCH,
            centring,
        }
    }

    /// Values of a component in a row.
    #[must_use]
    pub fn values(self) -> usize {
        self.lengths(0).iter().product()
    }

    /// Values of a row as pieces count them.
    #[must_use]
    pub fn row(self) -> usize {
        self.centring.groups() * self.values()
    }

    /// Cells of a patch along an axis in one of a row.
    #[must_use]
    pub fn width(self) -> usize {
        PATCH / self.side
    }

    /// The cells of a row that hold those from `first` to `end` of a patch.
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
    /// A whole row after `before` values of other pieces.
    #[must_use]
    pub fn whole(row: u32, before: u64, shape: RowShape) -> Self {
        Self::part(row, before, [0; 3], [shape.side as u32; 3])
    }

    /// Whole rows, one after the other.
    pub fn whole_rows(rows: &[u32], shape: RowShape) -> impl Iterator<Item = Self> {
        let before = move |n| (n * shape.row()) as u64;
        let rows = rows.iter().enumerate();
        rows.map(move |(n, &row)| Self::whole(row, before(n), shape))
    }

    /// The cells from `first` on, `length` of them along each axis, of which there is at least one.
    #[must_use]
    pub fn part(row: u32, before: u64, first: [u32; 3], length: [u32; 3]) -> Self {
        let bits = |values: [u32; 3]| values[0] | values[1] << 4 | values[2] << 8;
        Self {
            before,
            row,
            bounds: bits(first) | bits(length) << 12,
        }
    }

    /// The fine flux register of face `face` (x-, x+, y-, y+, z-, z+) of a row, after `before` values of others: what the first fine
    /// step gave and what later ones differ by, 4 x 4 each.
    #[must_use]
    pub fn register((row, face): (u32, u8), before: u64) -> Self {
        Self::part(row, before, [face.into(), 0, 0], [4, 4, 2])
    }

    /// The face of a register.
    #[must_use]
    pub fn face(&self) -> usize {
        self.first()[0]
    }

    /// First cell along each axis.
    #[must_use]
    pub fn first(&self) -> [usize; 3] {
        [0, 4, 8].map(|shift| (self.bounds >> shift & 15) as usize)
    }

    /// Cells along each axis.
    #[must_use]
    pub fn length(&self) -> [usize; 3] {
        [12, 16, 20].map(|shift| (self.bounds >> shift & 15) as usize)
    }

    /// Values of one component in each group of components: of a cell field the cells, of a field on faces or edges those of a
    /// vector.
    #[must_use]
    pub fn values(&self, shape: RowShape) -> usize {
        let lengths = |c| shape.centring.lengths(c, self.length());
        let values = |c| lengths(c).iter().product::<usize>();
        (0..shape.centring.groups()).map(values).sum()
    }

    /// The stretches of neighbouring values of component `c` that the piece consists of: first and length, in the order in which
    /// they are packed.
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
