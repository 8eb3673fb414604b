//! Pieces of rows on their way between ranks: which cells of a row travel, and where they stand in packed memory.

use bytemuck::{Pod, Zeroable};
use nestar_kernels::{CELLS, PATCH};

/// A box of a row's cells: 16 bytes; the twin of `mesh::Piece`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct Piece {
    /// Cells of the pieces before it in the packed memory.
    pub before: u64,
    /// The row.
    pub row: u32,
    /// First cell, then length, along x, y, z: four bits each.
    bounds: u32,
}

impl Piece {
    /// A whole row behind `before` cells of other pieces.
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

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.length().iter().product()
    }

    /// The stretches of neighbouring cells that the piece consists of: first cell and length, in the order in which they are
    /// packed.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let ([x, y, z], [along, rows, layers]) = (self.first(), self.length());
        let whole = self.cells() == CELLS;
        let (along, rows, layers) = if whole {
            (CELLS, 1, 1)
        } else {
            (along, rows, layers)
        };
        let start = move |k, j| x + PATCH * (y + j + PATCH * (z + k));
        (0..layers).flat_map(move |k| (0..rows).map(move |j| (start(k, j), along)))
    }
}

/// Where a field stands in packed memory: piece by piece, within each the fields one behind the other,
/// `[piece][field][component][cell]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of a cell in all fields that travel.
    pub width: usize,
    /// Bytes of a cell in the fields before this one.
    pub first: usize,
}

/// Pieces, or faces, packed in memory of the device.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice {
    /// Address of the list of [`Piece`]s, or of faces' numbers.
    pub list: u64,
    /// How many there are.
    pub count: usize,
    /// Address of the packed memory.
    pub memory: u64,
    /// Where the field stands in it.
    pub packed: Packed,
}

/// What has come of the pieces of a level, for one field.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'a> {
    /// In memory of the host.
    Here {
        /// The pieces; the memory begins with the first.
        pieces: &'a [Piece],
        /// Where the field stands in the memory.
        packed: Packed,
        /// The memory.
        bytes: &'a [u8],
    },
    /// In memory of the device.
    There {
        /// The pieces.
        pieces: OnDevice,
        /// Whether this rank owns the rows: the level changes.
        owned: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_the_cells_of_a_piece_in_order() {
        for first in [[0, 0, 0], [6, 0, 3], [2, 7, 1]] {
            for length in [[8, 8, 8], [2, 8, 5], [1, 1, 7], [6, 1, 1]] {
                let length: [u32; 3] = std::array::from_fn(|a| length[a].min(8 - first[a]));
                let piece = Piece::part(3, 5, first, length);
                assert_eq!(piece.first().map(|i| i as u32), first);
                let range = |a: usize| first[a] as usize..(first[a] + length[a]) as usize;
                let mut expected = Vec::new();
                for z in range(2) {
                    for y in range(1) {
                        expected.extend(range(0).map(|x| x + 8 * (y + 8 * z)));
                    }
                }
                let found = piece
                    .stretches()
                    .flat_map(|(start, length)| start..start + length);
                assert_eq!(found.collect::<Vec<_>>(), expected);
                assert_eq!(piece.cells(), expected.len());
            }
        }
    }
}
