//! Pieces of rows that go to another rank: which cells of a row, and where they stand in packed memory.

use bytemuck::{Pod, Zeroable};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::fluxes::QUARTER;

/// Values of a component in the fine flux register of a face: reference and change.
pub(crate) const REGISTER: usize = 2 * QUARTER;

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
    pub fn whole(row: u32, before: u64) -> Self {
        Self::part(row, before, [0; 3], [PATCH as u32; 3])
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
    pub fn values(&self, centring: Centring) -> usize {
        let values = |c| centring.lengths(c, self.length()).iter().product::<usize>();
        (0..centring.groups()).map(values).sum()
    }

    /// The stretches of neighbouring values of component `c` that the piece consists of: first and length, in the order in which
    /// they are packed.
    pub(super) fn stretches(
        &self,
        centring: Centring,
        c: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [along, rows, layers] = centring.lengths(c, self.length());
        let whole = self.length() == [PATCH; 3];
        let (along, rows, layers) = if whole {
            (centring.values(), 1, 1)
        } else {
            (along, rows, layers)
        };
        let [x, y, z] = self.first();
        let start = move |k, j| centring.index(c, [x, y + j, z + k]);
        (0..layers).flat_map(move |k| (0..rows).map(move |j| (start(k, j), along)))
    }
}

/// A list of pieces, or of faces, and the values packed by it, both in memory of a device.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice {
    /// Address of the list of [`Piece`]s, or of faces' numbers.
    pub list: u64,
    /// How many there are.
    pub count: usize,
    /// Address of the packed memory.
    pub memory: u64,
}
