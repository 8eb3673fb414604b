//! The Hilbert curve through the patches of a level, and their partition among ranks: each rank owns an interval of it.

use std::ops::Range;

/// Partition of each level along its Hilbert curve, given by the first key of each rank.
/// On levels above 0 these are multiples of 8, so that the children of a patch stay together.
///
/// Equal on all ranks; 8 bytes per rank and level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HilbertPartition {
    ranks: usize,
    levels: Vec<Vec<u64>>,
}

impl HilbertPartition {
    /// Creates a partition for `ranks` ranks and `levels` levels. The root grid of `root` patches is split equally.
    /// Rank 0 owns all finer patches until [`HilbertPartition::set`].
    #[must_use]
    pub fn new(root: [i32; 3], ranks: usize, levels: usize) -> Self {
        let curve = RootCurve::of(root);
        let patches: u64 = root.iter().map(|&n| n as u64).product();
        let rest = |first: u64| move |rank: usize| if rank == 0 { first } else { u64::MAX };
        let start = |rank: usize| match rank {
            0 => 0,
            _ => curve.key_at(patches * rank as u64 / ranks as u64),
        };
        let mut cuts: Vec<Vec<u64>> = vec![(0..ranks).map(start).collect()];
        cuts.extend((1..levels).map(|_| (0..ranks).map(rest(0)).collect()));
        Self {
            ranks,
            levels: cuts,
        }
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the rank that owns the patch at `key` of `level`.
    #[must_use]
    #[inline]
    pub fn owner(&self, level: usize, key: u64) -> usize {
        self.levels[level].partition_point(|&start| start <= key) - 1
    }

    /// Returns the keys of `level` that `rank` owns.
    #[must_use]
    #[inline]
    pub fn keys(&self, level: usize, rank: usize) -> Range<u64> {
        let starts = &self.levels[level];
        starts[rank]..starts.get(rank + 1).copied().unwrap_or(u64::MAX)
    }

    /// Sets the partition of `level`; `starts` are the first keys of the ranks, ascending from 0.
    ///
    /// # Panics
    /// If there is not one start for every rank, or the first is not 0.
    pub fn set(&mut self, level: usize, starts: Vec<u64>) {
        assert_eq!(starts.len(), self.ranks, "one start for every rank");
        assert_eq!(starts[0], 0, "the first rank starts at the first key");
        debug_assert!(starts.is_sorted());
        self.levels[level] = starts;
    }

    /// Returns the first keys of all ranks on `level`.
    #[must_use]
    pub fn starts(&self, level: usize) -> &[u64] {
        &self.levels[level]
    }
}

/// The Hilbert curve through a root grid, which need not be a cube.
#[derive(Clone, Copy)]
pub struct RootCurve {
    /// Root patches along each axis.
    pub root: [i32; 3],
    /// Bits of a coordinate in the keys of the curve.
    pub bits: u32,
}

impl RootCurve {
    /// Returns the number of root patches whose keys start with the `3 * depth` bits of `prefix`.
    fn patches(&self, prefix: u64, depth: u32) -> u64 {
        let corner = hilbert_index(prefix, depth);
        let width = 1i64 << (self.bits - depth);
        let along = |a: usize| {
            let from = i64::from(corner[a]) * width;
            (i64::from(self.root[a]).min(from + width) - from).max(0) as u64
        };
        (0..3).map(along).product()
    }

    /// Returns the key of the root patch at `position` along the curve, counting existing patches only.
    fn key_at(&self, position: u64) -> u64 {
        let (mut prefix, mut left) = (0, position);
        for depth in 1..=self.bits {
            prefix <<= 3;
            for _ in 0..7 {
                let patches = self.patches(prefix, depth);
                if left < patches {
                    break;
                }
                left -= patches;
                prefix += 1;
            }
        }
        prefix
    }

    /// Creates the curve through the root grid `root`.
    pub fn of(root: [i32; 3]) -> Self {
        let bits = bits_for(root, 0);
        Self { root, bits }
    }

    /// Calls `visit` with the keys of all root patches in `keys`, ascending.
    pub fn each(&self, keys: &Range<u64>, visit: &mut impl FnMut(u64)) {
        self.descend(0, 0, keys, visit);
    }

    fn descend(&self, prefix: u64, depth: u32, keys: &Range<u64>, visit: &mut impl FnMut(u64)) {
        let shift = 3 * (self.bits - depth);
        let (first, last) = (prefix << shift, ((prefix + 1) << shift) - 1);
        if last < keys.start || first >= keys.end || self.patches(prefix, depth) == 0 {
            return;
        }
        if depth == self.bits {
            visit(prefix);
            return;
        }
        for child in 0..8 {
            self.descend(prefix << 3 | child, depth + 1, keys, visit);
        }
    }
}

/// Work of one or more steps, in units common to all levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Work of all ranks.
    pub all: u64,
    /// Work of the busiest rank, summed over steps.
    pub busiest: u64,
}

impl LevelWork {
    /// Adds the work of another step.
    pub fn add(&mut self, step: Self) {
        self.all += step.all;
        self.busiest += step.busiest;
    }

    /// Returns the work since it was `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            busiest: self.busiest - before.busiest,
        }
    }

    /// Returns the excess of the busiest rank over the mean of `ranks` ranks, relative to the mean; 0 without work.
    #[must_use]
    pub fn imbalance(self, ranks: usize) -> f64 {
        match self.all {
            0 => 0.0,
            all => (u128::from(self.busiest) * ranks as u128) as f64 / all as f64 - 1.0,
        }
    }
}

/// Returns the position of the point `index` on the three-dimensional Hilbert curve with `2^bits` points per axis.
///
/// The curve with one more bit visits the eight children of each point consecutively, so that patches of a level are
/// ordered by their parents. J. Skilling, AIP Conf. Proc. 707, 381 (2004).
#[must_use]
#[inline]
pub fn hilbert_key(index: [u32; 3], bits: u32) -> u64 {
    let mut x = index;
    // undo the excess rotations, from the highest bit down
    for b in (1..bits).rev() {
        (0..3).for_each(|i| rotate(&mut x, i, b));
    }
    // Gray encode
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut t = 0;
    for b in (1..bits).rev() {
        if x[2] >> b & 1 == 1 {
            t ^= (1 << b) - 1;
        }
    }
    let x = x.map(|v| v ^ t);
    (0..bits).rev().fold(0u64, |key, b| {
        key << 3
            | u64::from(x[0] >> b & 1) << 2
            | u64::from(x[1] >> b & 1) << 1
            | u64::from(x[2] >> b & 1)
    })
}

/// Returns the point at position `key` of the curve with `2^bits` points per axis: the inverse of [`hilbert_key`].
#[must_use]
#[inline]
pub fn hilbert_index(key: u64, bits: u32) -> [u32; 3] {
    let mut x = [0u32; 3];
    for b in 0..bits {
        for (a, coordinate) in x.iter_mut().enumerate() {
            *coordinate |= ((key >> (3 * b + 2 - a as u32) & 1) as u32) << b;
        }
    }
    // Gray decode
    let t = x[2] >> 1;
    x[2] ^= x[1];
    x[1] ^= x[0];
    x[0] ^= t;
    // redo the excess rotations, from the lowest bit up
    for b in 1..bits {
        (0..3).rev().for_each(|i| rotate(&mut x, i, b));
    }
    x
}

/// Undoes (or redoes) the excess rotation of axis `i` at bit `b`.
#[inline]
fn rotate(x: &mut [u32; 3], i: usize, b: u32) {
    let low = (1u32 << b) - 1;
    if x[i] >> b & 1 == 1 {
        x[0] ^= low;
    } else {
        let t = (x[0] ^ x[i]) & low;
        x[0] ^= t;
        x[i] ^= t;
    }
}

/// Returns the number of bits per axis of the keys of level `level`, for a root grid of `root` patches.
#[must_use]
#[inline]
pub fn bits_for(root: [i32; 3], level: usize) -> u32 {
    let widest = root.iter().copied().max().unwrap_or(1).max(1) as u32;
    // at least one bit, so that a single root patch has a curve
    (u32::BITS - (widest - 1).leading_zeros()).max(1) + level as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_grid_is_cut_into_equal_parts() {
        for root in [[4, 4, 4], [1, 1, 1], [5, 2, 3], [16, 1, 1]] {
            let bits = bits_for(root, 0);
            let patches: i32 = root.iter().product();
            for ranks in [1, 2, 3, 7, 8] {
                let cuts = HilbertPartition::new(root, ranks, 1);
                let mut counts = vec![0; ranks];
                for n in 0..patches {
                    let index = [n % root[0], n / root[0] % root[1], n / (root[0] * root[1])];
                    let key = hilbert_key(index.map(|i| i as u32), bits);
                    counts[cuts.owner(0, key)] += 1;
                }
                for (rank, &count) in counts.iter().enumerate() {
                    let mut listed = Vec::new();
                    RootCurve { root, bits }.each(&cuts.keys(0, rank), &mut |key| listed.push(key));
                    assert_eq!(listed.len(), count);
                    assert!(listed.is_sorted());
                }
                let (least, most) = (counts.iter().min(), counts.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{root:?} {counts:?}");
            }
        }
    }

    #[test]
    fn ranks_without_a_stretch_own_nothing() {
        let mut cuts = HilbertPartition::new([1, 1, 1], 4, 2);
        cuts.set(1, vec![0, 8, 8, 16]);
        assert_eq!(
            [0, 7, 8, 15, 16, 99].map(|key| cuts.owner(1, key)),
            [0, 0, 2, 2, 3, 3]
        );
        assert_eq!(cuts.keys(1, 1), 8..8);
    }

    #[test]
    fn consecutive_points_are_neighbours_and_all_points_are_met() {
        for bits in 1..=4 {
            let n = 1u32 << bits;
            let mut at = vec![None; (n * n * n) as usize];
            for z in 0..n {
                for y in 0..n {
                    for x in 0..n {
                        let key = hilbert_key([x, y, z], bits) as usize;
                        assert!(
                            at[key].replace([x, y, z]).is_none(),
                            "two points share key {key}"
                        );
                    }
                }
            }
            for pair in at.windows(2) {
                let (a, b) = (pair[0].unwrap(), pair[1].unwrap());
                let distance: u32 = (0..3).map(|d| a[d].abs_diff(b[d])).sum();
                assert_eq!(distance, 1, "{a:?} and {b:?} are consecutive");
            }
        }
    }

    #[test]
    fn points_are_found_from_their_keys() {
        for bits in 0..=4u32 {
            for key in 0..1u64 << (3 * bits) {
                assert_eq!(hilbert_key(hilbert_index(key, bits), bits), key);
            }
        }
        let point = [1_234_567, 7, 2_000_001];
        assert_eq!(hilbert_index(hilbert_key(point, 21), 21), point);
    }

    #[test]
    fn children_follow_their_parents() {
        for z in 0..8u32 {
            for y in 0..8 {
                for x in 0..8 {
                    let child = hilbert_key([x, y, z], 5);
                    assert_eq!(child >> 3, hilbert_key([x / 2, y / 2, z / 2], 4));
                }
            }
        }
    }
}
