//! Sums over cells and work per patch, returned by a sub-cycled function besides the states.

use nestar_engine_mesh::parallel;
use nestar_kernels::mesh::exact_sum::ExactSum;

/// Number of patches summed by a task.
const PATCHES: usize = 512;

/// Summed numbers and work of a sub-cycled update of a level on this rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellTotals {
    /// The level.
    pub(super) level: usize,
    /// Volume of a cell.
    pub(super) volume: f64,
    /// Number of sums.
    pub(super) count: usize,
    /// Sum over the cells of each patch, `[patch][number]`; 0 for refined patches.
    pub(super) sums: Vec<f64>,
    /// Work per patch; empty if it is not measured.
    pub(super) work: Vec<u32>,
    /// Number of cells called in each round.
    pub(super) cells_per_round: Vec<u64>,
}

impl CellTotals {
    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// Returns the number of sums.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the sums over the leaf cells of each patch, `[patch][number]`, in row order and without the cell volume.
    #[must_use]
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Returns the work per patch in row order; empty if the function does not measure it.
    #[must_use]
    pub fn work(&self) -> &[u32] {
        &self.work
    }

    /// Returns the number of cells on this rank called in each round: the lengths of the queue.
    #[must_use]
    pub fn cells_per_round(&self) -> &[u64] {
        &self.cells_per_round
    }

    /// Returns the integrals over the leaf cells of this rank. They are exact, so that sums over ranks do not depend on
    /// their order.
    #[must_use]
    pub fn integrals(&self) -> Vec<ExactSum> {
        let nothing = || vec![ExactSum::default(); self.count];
        if self.count == 0 {
            return nothing();
        }
        let patches: Vec<&[f64]> = self.sums.chunks(PATCHES * self.count).collect();
        let of_part = |part: &&[f64]| {
            let mut integrals = nothing();
            for sums in part.chunks_exact(self.count) {
                for (integral, sum) in integrals.iter_mut().zip(sums) {
                    integral.add(self.volume * sum);
                }
            }
            integrals
        };
        let mut all = nothing();
        for part in parallel::map(&patches, of_part) {
            for (all, part) in all.iter_mut().zip(&part) {
                all.merge(part);
            }
        }
        all
    }

    /// Appends the totals of the next patches.
    pub(super) fn append(&mut self, other: Self) {
        self.sums.extend(other.sums);
        self.work.extend(other.work);
        if self.cells_per_round.len() < other.cells_per_round.len() {
            self.cells_per_round.resize(other.cells_per_round.len(), 0);
        }
        for (all, cells) in self.cells_per_round.iter_mut().zip(other.cells_per_round) {
            *all += cells;
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
        let totals = |cells: &[u64]| CellTotals {
            cells_per_round: cells.to_vec(),
            ..CellTotals::default()
        };
        let mut all = totals(&[512, 3]);
        all.append(totals(&[1024, 10, 1]));
        assert_eq!(all.cells_per_round(), [1536, 13, 1]);
    }
}
