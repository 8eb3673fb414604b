//! Partition of patches among ranks: each rank owns an interval of the Hilbert curve of each level.

use super::hilbert::{bits_for, hilbert_index};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hilbert::hilbert_key;

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
}
