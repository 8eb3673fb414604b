//! What a run counts.

use super::Phase;
use crate::data::CellTotals;
use crate::mesh::LevelWork;
use bevy_ecs::prelude::*;

/// Counters of a run.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunCounters {
    /// Cells advanced on all ranks, every level's steps counted.
    pub cell_updates: u64,
    /// Work of all steps, as the ranks share it.
    pub work: LevelWork,
    /// Steps of all levels.
    pub level_steps: u64,
    /// Regrids of all levels.
    pub regrids: u64,
    /// Steps taken again with a smaller length.
    pub retried_steps: u64,
    /// Cells mended with first-order fluxes, on all ranks.
    pub fallback_cells: u64,
    /// Cells of this rank in which functions were called that tell their work, and that work, such as sub-steps of reactions.
    pub subcycled: [u64; 2],
    /// Wall seconds per phase, in the order of [`Phase::ALL`].
    pub seconds: [f64; Phase::COUNT],
}

impl RunCounters {
    /// Counts the cells and the work of a round of calls.
    pub fn count_subcycles(&mut self, tally: &CellTotals) {
        if let ([_, ..], Some(cells)) = (tally.work(), tally.cells_per_round().first()) {
            let work: u64 = tally.work().iter().map(|work| u64::from(*work)).sum();
            self.subcycled[0] += cells;
            self.subcycled[1] += work;
        }
    }

    /// Mean work in a cell; none where no function tells any.
    #[must_use]
    pub fn mean_subcycles(&self) -> Option<f64> {
        let [cells, work] = self.subcycled;
        (cells > 0).then(|| work as f64 / cells as f64)
    }
}
