//! Adds particles and their work to the patches of an outline.

use super::tree_outline::{PatchLoad, TreeOutline};
use crate::comm::patch_work::work_of_particles;
use crate::mesh::hilbert::{bits_for, hilbert_key};
use crate::mesh::{PATCH, RootCurve};
use std::collections::BTreeMap;
use std::ops::Range;

impl TreeOutline {
    /// Adds particles of a kind; the work of each equals that of `weight` cells.
    ///
    /// `counts` holds the number of particles in each patch, by level in Hilbert order.
    ///
    /// # Errors
    /// The numbers of patches differ.
    pub fn add_counts(&mut self, weight: f64, counts: &[Vec<u32>]) -> Result<(), String> {
        for (level, counts) in counts.iter().enumerate() {
            let keys = self.keys(level);
            if keys.len() != counts.len() {
                return Err(format!("level {level} has {} patches", keys.len()));
            }
            let counts = keys
                .into_iter()
                .zip(counts.iter().map(|&count| u64::from(count)));
            self.add(level, weight, counts.filter(|(_, count)| *count > 0));
        }
        Ok(())
    }

    /// Adds `total` particles of a kind, distributed to leaves as the sample positions `places`.
    ///
    /// Without positions, all patches of the finest level get equal numbers.
    pub fn add_positions(&mut self, weight: f64, total: u64, places: Option<&[[f64; 3]]>) {
        let mut leaves: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        match places {
            Some(places) => places
                .iter()
                .for_each(|place| *leaves.entry(self.leaf(*place)).or_default() += 1),
            None => {
                let finest = self.levels() - 1;
                leaves.extend(self.keys(finest).into_iter().map(|key| ((finest, key), 1)));
            }
        }
        let all = u128::from(leaves.values().sum::<u64>().max(1));
        let mut met = 0;
        // Rounded such that the sum equals the total.
        let share = |met: u64| (u128::from(total) * u128::from(met) / all) as u64;
        let mut by_level = vec![Vec::new(); self.levels()];
        for ((level, key), count) in leaves {
            by_level[level].push((key, share(met + count) - share(met)));
            met += count;
        }
        for (level, counts) in by_level.into_iter().enumerate() {
            self.add(level, weight, counts.into_iter());
        }
    }

    fn add(&mut self, level: usize, weight: f64, counts: impl Iterator<Item = (u64, u64)>) {
        let levels = self.levels();
        self.loads.resize(levels, Vec::new());
        let mut all: BTreeMap<u64, PatchLoad> =
            self.loads[level].iter().map(|l| (l.key, *l)).collect();
        for (key, count) in counts {
            let there = all.entry(key).or_default();
            there.key = key;
            there.count += count;
            there.work += work_of_particles(weight, count);
        }
        self.loads[level] = all.into_values().collect();
    }

    /// Returns the loads of patches of `level` with keys in a range.
    pub(super) fn loads(&self, level: usize, keys: Range<u64>) -> &[PatchLoad] {
        let all = self.loads.get(level).map_or(&[][..], Vec::as_slice);
        let before = |key: u64| all.partition_point(|loads| loads.key < key);
        &all[before(keys.start)..before(keys.end)]
    }

    /// Returns the keys of all patches of `level`, ascending.
    pub(super) fn keys(&self, level: usize) -> Vec<u64> {
        let Some(coarser) = level.checked_sub(1) else {
            let mut keys = Vec::new();
            RootCurve::of(self.domain.root).each(&(0..u64::MAX), &mut |key| keys.push(key));
            return keys;
        };
        let parents = self.parents[coarser].iter();
        parents.flat_map(|key| key << 3..(key + 1) << 3).collect()
    }

    /// Returns the level and key of the leaf that contains a position.
    fn leaf(&self, place: [f64; 3]) -> (usize, u64) {
        let key = |level: usize| {
            let width = self.domain.cell_width(level);
            let index = std::array::from_fn(|axis| {
                let along =
                    (place[axis] - self.domain.left_edge[axis]) / width[axis] / PATCH as f64;
                let last = (self.domain.root[axis] << level) - 1;
                (along.max(0.0) as i64).min(i64::from(last)) as u32
            });
            hilbert_key(index, bits_for(self.domain.root, level))
        };
        let is_leaf = |level: usize| {
            let parents = self.parents.get(level);
            parents.is_none_or(|parents| parents.binary_search(&key(level)).is_err())
        };
        let level = (0..).find(|&level| is_leaf(level)).unwrap_or_default();
        (level, key(level))
    }
}
