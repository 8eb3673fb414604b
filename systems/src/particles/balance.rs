//! What particles cost: ranks share patches out by it.

use super::Motion;
use super::species::AllSpecies;
use bevy_ecs::prelude::*;
use nestar_engine::field::Items;
use nestar_engine::mesh::{Cost, Topology};
use nestar_engine::ranks::Ranks;
use nestar_engine::step::AlignedLevels;
use nestar_kernels::CELLS;

/// Tells what the patches of the levels that stand at one time cost: a particle as much as so many cells.
pub(super) fn weigh(
    aligned: Res<AlignedLevels>,
    (topology, ranks): (Res<Topology>, Res<Ranks>),
    (motion, all): (Res<Motion>, Res<AllSpecies>),
    mut costs: Query<&mut Cost>,
    mut commands: Commands,
) {
    if ranks.are_alone() || motion.weight == 0.0 {
        return;
    }
    for &row in aligned.levels().flat_map(|level| topology.rows(level)) {
        let particles: usize = all.0.iter().map(|species| species.count(row)).sum();
        let cost = Cost(1.0 + motion.weight * particles as f64 / CELLS as f64);
        match costs.get_mut(topology.entity(row)) {
            Ok(mut known) => *known = cost,
            Err(_) if particles > 0 => {
                commands.entity(topology.entity(row)).insert(cost);
            }
            Err(_) => (),
        }
    }
}
