//! Flags of a patch's cells, and the patches within their buffer.
use crate::{CELLS, PATCH};
use std::ops::{BitAnd, BitOr, Not};

/// One bit per cell of a patch: bit `8 * j + i` of word `k`. 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellFlags(pub [u64; PATCH]);

impl CellFlags {
    /// No cell flagged.
    pub const NONE: Self = Self([0; PATCH]);
    /// All cells flagged.
    pub const ALL: Self = Self([u64::MAX; PATCH]);

    /// Flags the cells that are `true` in `marked`, `[k][j][i]`.
    #[must_use]
    pub fn from_cells(marked: &[bool; CELLS]) -> Self {
        let plane = |k: usize| marked[64 * k..].iter().take(64).enumerate();
        Self(std::array::from_fn(|k| {
            plane(k).fold(0, |word, (n, &cell)| word | u64::from(cell) << n)
        }))
    }

    /// Returns `true` if any cell is flagged.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.iter().any(|word| *word != 0)
    }

    /// Returns the number of flagged cells.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns `true` if cell (k, j, i) is flagged; each index 0 to 7.
    #[must_use]
    pub fn get(&self, k: usize, j: usize, i: usize) -> bool {
        self.0[k] >> (PATCH * j + i) & 1 == 1
    }

    /// Flags cell (k, j, i); each index 0 to 7.
    pub fn set(&mut self, k: usize, j: usize, i: usize) {
        self.0[k] |= 1 << (PATCH * j + i);
    }
}

impl BitOr for CellFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] | other.0[k]))
    }
}

impl BitAnd for CellFlags {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] & other.0[k]))
    }
}

impl Not for CellFlags {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

/// Returns the patch and those of its 26 neighbours that overlap a box of (1 + 2 `buffer`)^3 cells around any flagged cell.
///
/// `buffer` is 0 to 8 cells. Bit `9 * (dz + 1) + 3 * (dy + 1) + (dx + 1)` is the patch at offset (dx, dy, dz), bit 13 the patch itself.
/// Source: GAMER-2 (Schive et al. 2018, MNRAS 481, 4815, section 2.1).
///
/// # Panics
/// If `buffer` exceeds 8, because the box would extend past the neighbours.
#[must_use]
pub fn buffer_sectors(flags: &CellFlags, buffer: usize) -> u32 {
    assert!(
        buffer <= PATCH,
        "a flag buffer has 0 to {PATCH} cells, not {buffer}"
    );
    if !flags.any() {
        return 0;
    }
    // cells of a row of eight that reach the sector below, their own, and the sector above, as bits
    let reaching = [(1u64 << buffer) - 1, 0xff, 0xff << (PATCH - buffer) & 0xff];
    let mut sectors = 0;
    for (z, planes) in reaching.into_iter().enumerate() {
        let plane = (0..PATCH)
            .filter(|k| planes >> k & 1 == 1)
            .fold(0, |plane, k| plane | flags.0[k]);
        for (y, rows) in reaching.into_iter().enumerate() {
            let rows = plane & spread(rows);
            for (x, columns) in reaching.into_iter().enumerate() {
                // 0xff in every byte of 0x0101… repeats the columns in all eight rows
                let touched = rows & (columns * 0x0101_0101_0101_0101) != 0;
                sectors |= u32::from(touched) << (9 * z + 3 * y + x);
            }
        }
    }
    sectors
}

/// Widens each of eight bits to a byte.
fn spread(bits: u64) -> u64 {
    (0..PATCH)
        .filter(|j| bits >> j & 1 == 1)
        .fold(0, |all, j| all | 0xff << (PATCH * j))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, cell by cell.
    fn brute_force(flags: &CellFlags, buffer: i32) -> u32 {
        let mut sectors = 0;
        let side = |c: usize, d: i32| (c as i32 + d + 8) / 8;
        let cells = (0..512).filter(|c| flags.get(c / 64, c / 8 % 8, c % 8));
        for c in cells {
            for d in 0..(1 + 2 * buffer).pow(3) {
                let n = 1 + 2 * buffer;
                let [x, y, z] = [d % n, d / n % n, d / (n * n)].map(|d| d - buffer);
                let bit = 9 * side(c / 64, z) + 3 * side(c / 8 % 8, y) + side(c % 8, x);
                sectors |= 1 << bit;
            }
        }
        sectors
    }

    #[test]
    fn sectors_of_single_cells_and_random_sets_match_the_definition() {
        let mut seed = 1u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for buffer in 0..=8 {
            for cell in [0, 7, 56, 63, 448, 511, 292, 100, 3, 24]
                .into_iter()
                .chain((0..12).map(|_| random() as usize % 512))
            {
                let mut flags = CellFlags::NONE;
                flags.set(cell / 64, cell / 8 % 8, cell % 8);
                assert_eq!(
                    buffer_sectors(&flags, buffer),
                    brute_force(&flags, buffer as i32),
                    "{cell} {buffer}"
                );
            }
            let sparse = CellFlags(std::array::from_fn(|_| {
                random() & random() & random() & random() & random()
            }));
            let expected = brute_force(&sparse, buffer as i32);
            assert_eq!(
                buffer_sectors(&sparse, buffer),
                expected,
                "{sparse:?} {buffer}"
            );
        }
    }

    #[test]
    fn the_ends_are_right() {
        assert_eq!(buffer_sectors(&CellFlags::NONE, 8), 0);
        assert_eq!(buffer_sectors(&CellFlags::ALL, 0), 1 << 13);
        assert_eq!(buffer_sectors(&CellFlags::ALL, 1), (1 << 27) - 1);
        let mut corner = CellFlags::NONE;
        corner.set(0, 0, 7);
        let expected = [
            (0, 0, 0),
            (1, 0, 0),
            (0, -1, 0),
            (1, -1, 0),
            (0, 0, -1),
            (1, 0, -1),
            (0, -1, -1),
            (1, -1, -1),
        ];
        let bits = expected
            .iter()
            .map(|(x, y, z)| 1u32 << (9 * (z + 1) + 3 * (y + 1) + (x + 1)));
        assert_eq!(buffer_sectors(&corner, 1), bits.sum::<u32>());
    }

    #[test]
    fn sets_combine() {
        let mut a = CellFlags::NONE;
        a.set(2, 3, 4);
        assert!(a.any() && a.get(2, 3, 4) && !a.get(4, 3, 2) && a.count() == 1);
        assert_eq!((!a).count(), 511);
        assert_eq!(a | !a, CellFlags::ALL);
        assert_eq!(a & !a, CellFlags::NONE);
    }
}
