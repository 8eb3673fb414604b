//! Pieces of rows that go to another rank: which cells of a row, and where they stand in packed memory.

use crate::device::{Device, DeviceSlice};
use bytemuck::{Pod, Zeroable};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::fluxes::QUARTER;

/// Values of a component in the fine flux register of a face: reference and change.
pub(crate) const REGISTER: usize = 2 * QUARTER;

/// How the rows of a store are cut: what a list of copies must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowShape {
    /// Cells along each axis: 8, or 4, 2, 1 where the values of a patch are coarser.
    pub side: usize,
    /// Where values lie.
    pub centring: Centring,
}

impl RowShape {
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

/// A box of a row's cells, with the values on its sides where a field is staggered: 16 bytes; the twin of `mesh::Piece`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct Piece {
    /// Values of the pieces before it in the packed memory, as [`Piece::values`] counts them.
    pub before: u64,
    /// The row.
    pub row: u32,
    /// First cell, then length, along x, y, z: four bits each.
    bounds: u32,
}

impl Piece {
    /// A whole row after `before` values of other pieces.
    #[must_use]
    pub fn whole(row: u32, before: u64, shape: RowShape) -> Self {
        Self::part(row, before, [0; 3], [shape.side as u32; 3])
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

/// A list of pieces, or of faces, and the values packed by it, both in memory of a device.
#[derive(Clone, Copy)]
pub struct OnDevice<'a, T> {
    /// The list on the host.
    pub entries: &'a [T],
    /// The device.
    pub device: &'a Device,
    /// Address of the list of [`Piece`]s, or of faces' numbers.
    pub list: u64,
    /// Address of the packed memory.
    pub memory: u64,
}

impl<T> OnDevice<'_, T> {
    /// So many bytes of the packed memory.
    pub(super) fn bytes(&self, bytes: usize) -> Stretch {
        Stretch(self.memory, bytes)
    }
}

/// Bytes of a device's memory: address and length.
pub(super) struct Stretch(pub u64, pub usize);

impl DeviceSlice<u8> for Stretch {
    fn address(&self) -> u64 {
        self.0
    }

    fn len(&self) -> usize {
        self.1
    }
}
