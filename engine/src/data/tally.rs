//! What functions give beside states: numbers that are summed over cells, and the work of patches.

use nestar_kernels::mesh::exact_sum::ExactSum;
use rayon::prelude::*;

/// Patches whose sums a task adds up.
const PATCHES: usize = 512;

/// What a round of calls on a level gives beside the states, on this rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellTotals {
    /// The level.
    pub(super) level: usize,
    /// Volume of a cell.
    pub(super) volume: f64,
    /// Numbers that are summed.
    pub(super) count: usize,
    /// `[patch][number]`: the sum over its cells, 0 where it is refined.
    pub(super) sums: Vec<f64>,
    /// `[patch]`; empty where work is not counted.
    pub(super) work: Vec<u32>,
    /// Cells that were called once, twice …
    pub(super) called: Vec<u64>,
}

impl CellTotals {
    /// The level whose cells were called.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// How many numbers are summed.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The sums over the leaf cells of one patch after the other, in the order of the level's rows, `[patch][number]`; without the
    /// cells' volume.
    #[must_use]
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// The work of the calls in one patch after the other; empty where the function does not tell it.
    #[must_use]
    pub fn work(&self) -> &[u32] {
        &self.work
    }

    /// How many cells of this rank were called in the first round, in the second and so on: the lengths of the queue.
    #[must_use]
    pub fn cells_per_round(&self) -> &[u64] {
        &self.called
    }

    /// The integrals over the leaf cells of this rank: what all ranks have is their sum, the same in any order.
    #[must_use]
    pub fn integrals(&self) -> Vec<ExactSum> {
        let nothing = || vec![ExactSum::default(); self.count];
        if self.count == 0 {
            return nothing();
        }
        let patches = self.sums.par_chunks(PATCHES * self.count);
        let of_part = |part: &[f64]| {
            let mut integrals = nothing();
            for sums in part.chunks_exact(self.count) {
                for (integral, sum) in integrals.iter_mut().zip(sums) {
                    integral.add(self.volume * sum);
                }
            }
            integrals
        };
        patches.map(of_part).reduce(nothing, |mut all, part| {
            for (all, part) in all.iter_mut().zip(&part) {
                all.merge(part);
            }
            all
        })
    }

    /// Adds the patches that follow.
    pub(super) fn append(&mut self, other: Self) {
        self.sums.extend(other.sums);
        self.work.extend(other.work);
        if self.called.len() < other.called.len() {
            self.called.resize(other.called.len(), 0);
        }
        for (all, called) in self.called.iter_mut().zip(other.called) {
            *all += called;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CellTotals;

    #[test]
    fn integrals_are_those_of_any_parts() {
        let tally = |patches: std::ops::Range<usize>| CellTotals {
            volume: 0.125,
            count: 2,
            sums: patches
                .flat_map(|n| [1.0 / (n as f64 + 0.3), -1e-20 * n as f64])
                .collect(),
            ..CellTotals::default()
        };
        let all = tally(0..10_000).integrals();
        let mut parts = tally(0..17).integrals();
        for (sum, part) in parts.iter_mut().zip(tally(17..10_000).integrals()) {
            sum.merge(&part);
        }
        assert_eq!(all, parts);
        assert!((all[1].value() / (-0.125e-20 * 49_995_000.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn queues_add_up() {
        let called = |called: &[u64]| CellTotals {
            called: called.to_vec(),
            ..CellTotals::default()
        };
        let mut all = called(&[512, 3]);
        all.append(called(&[1024, 10, 1]));
        assert_eq!(all.cells_per_round(), [1536, 13, 1]);
    }
}
