//! What a run counts.

use super::Phase;
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
    pub mended_cells: u64,
    /// Wall seconds per phase, in the order of [`Phase::ALL`].
    pub seconds: [f64; Phase::COUNT],
}
