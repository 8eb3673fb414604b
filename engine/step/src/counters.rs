//! Counters of a run.

use bevy_ecs::prelude::*;
use nestar_engine_data::CellTotals;
use nestar_engine_mesh::LevelWork;

/// Counts the work of a run.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunCounters {
    /// Cell updates of all ranks and levels.
    pub cell_updates: u64,
    /// Work of all steps and its distribution over the ranks.
    pub work: LevelWork,
    /// Steps of all levels.
    pub level_steps: u64,
    /// Regrids of all levels.
    pub regrids: u64,
    /// Steps that were retried with a smaller length.
    pub retried_steps: u64,
    /// Cells of all ranks that fell back to first-order fluxes.
    pub fallback_cells: u64,
    /// Cells of this rank with sub-cycled functions, and the sum of their work (such as sub-steps of
    /// reactions).
    pub subcycled: [u64; 2],
}

impl RunCounters {
    /// Adds the cells and the work of one round of calls.
    pub fn count_subcycles(&mut self, tally: &CellTotals) {
        if let ([_, ..], Some(cells)) = (tally.work(), tally.cells_per_round().first()) {
            let work: u64 = tally.work().iter().map(|work| u64::from(*work)).sum();
            self.subcycled[0] += cells;
            self.subcycled[1] += work;
        }
    }

    /// Returns the mean work per cell; `None` without sub-cycled functions.
    #[must_use]
    pub fn mean_subcycles(&self) -> Option<f64> {
        let [cells, work] = self.subcycled;
        (cells > 0).then(|| work as f64 / cells as f64)
    }
}
