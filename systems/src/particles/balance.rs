//! What particles cost: ranks share patches out by it.

use super::Motion;
use super::species::AllSpecies;
use crate::order::Aligned;
use bevy_ecs::prelude::*;
use nestar_engine::Engine;
use nestar_engine::field::Items;
use nestar_engine::mesh::{Costs, Topology};
use nestar_engine::ranks::Ranks;
use nestar_engine::step::AlignedLevels;
use nestar_kernels::CELLS;
use rayon::prelude::*;

/// Enters what tells the particles' part of the costs of the patches of the levels that stand at one time: a particle is as much as so
/// many cells.
pub(super) fn register(sim: &mut Engine) {
    let part = sim.cost_part();
    let weigh = move |aligned: Res<AlignedLevels>,
                      (topology, ranks): (Res<Topology>, Res<Ranks>),
                      (motion, all): (Res<Motion>, Res<AllSpecies>),
                      mut costs: Costs| {
        if ranks.are_alone() || motion.weight == 0.0 {
            return;
        }
        let weight = |&row: &u32| {
            let particles: usize = all.0.iter().map(|species| species.count(row)).sum();
            motion.weight * particles as f64 / CELLS as f64
        };
        for level in aligned.levels() {
            let rows = topology.rows(level);
            let weights: Vec<f64> = rows.par_iter().with_min_len(1024).map(weight).collect();
            for (&row, weight) in rows.iter().zip(weights) {
                costs.set(row, part, weight);
            }
        }
    };
    let weigh = IntoSystem::into_system(weigh).with_name("what particles cost");
    sim.system_in(Aligned::Solve, weigh);
}
