//! Own potential of levels, without the fine-grid correction, for matter near coarse-fine faces.
//!
//! Such matter is deposited in cells of two widths. The potential of all levels together contains the difference of
//! both deposits, which exerts a force on the matter itself. Boundary values come from the potential of all levels,
//! because the boundary of a level is far from its finer levels. Boundary values from coarser levels alone would
//! correspond to matter in the middle of a coarse cell.

use super::level_solver::{LevelSolver, LevelState};
use super::surroundings::Surroundings;
use super::systems::{Gravity, solve_aligned_levels, solve_initial_potential, solve_potential};
use super::{exchanges_own_halos, exterior_state, potential};
use crate::fields::OwnPotential;
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::FieldSpec;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::AlignedLevels;
use nestar_engine::{Engine, Error};

/// The field is stored in snapshots: it is the result of iterations that a restart could not reproduce to the last bit.
fn spec() -> FieldSpec {
    let mut spec = potential();
    spec.components[0].name = "own_potential".into();
    spec.components[0].long_name = "gravitational potential without what finer levels add".into();
    spec.banks = spec.time_levels;
    spec
}

/// Registers the field and the systems, after those of the potential.
pub(super) fn register(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    sim.register_field::<OwnPotential>(spec())?;
    sim.register_state(
        "own_gravity",
        exterior_state::<OwnPotential>(sim, surroundings),
    )?;
    exchanges_own_halos::<OwnPotential>(
        sim.system_in(Ready::Recompute, solve_initial_own_potential)
            .after(solve_initial_potential),
    );
    exchanges_own_halos::<OwnPotential>(
        sim.system_in(Advance::Potential, predict_own_potential)
            .after(solve_potential),
    );
    exchanges_own_halos::<OwnPotential>(
        sim.system_in(Aligned::Solve, solve_own_potential_of_aligned_levels)
            .after(solve_aligned_levels),
    );
    Ok(())
}

/// Data of the systems.
#[derive(SystemParam)]
pub(super) struct OwnPotentialSolver<'w, 's> {
    grids: LevelSolver<'w, 's, OwnPotential>,
    gravity: Res<'w, Gravity>,
    ranks: Res<'w, Ranks>,
}

impl OwnPotentialSolver<'_, '_> {
    /// Returns `true` if finer levels contribute to the equation of a level; otherwise the potential itself is used.
    fn differs(&self, level: usize) -> bool {
        self.gravity.two_way() && level < self.grids.rows.finest()
    }

    /// Copies the potential of a level.
    fn copy_from_potential(&mut self, level: usize) -> Result<(), Error> {
        let grids = &mut self.grids;
        let stored = &*grids.coarser;
        grids.copy(&stored.potential.own_on(level), LevelState::Present)?;
        grids.potential.change_on(level);
        match level {
            0 => {
                let kernels = grids.solver.kernels.as_ref();
                grids.exterior_potential.copy_from(
                    &grids.ranks,
                    &stored.exterior_potential,
                    kernels,
                )
            }
            _ => Ok(()),
        }
    }
}

/// Predicts the own potential at the end of the step of a level, until it is solved for on synchronised levels.
pub(super) fn predict_own_potential(
    mut own: OwnPotentialSolver,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    own.grids.commit(clock.level)?;
    if !own.differs(clock.level) {
        // new finer levels have not changed it yet
        return own.copy_from_potential(clock.level);
    }
    // in the step, the equation differs from that of the potential by a constant fine-grid correction
    let grids = &mut own.grids;
    grids.follow(&grids.coarser.potential.own_on(clock.level))?;
    grids.potential.change_on(clock.level);
    match clock.level {
        0 => grids.restore_beyond(),
        _ => Ok(()),
    }
}

/// Solves for the own potential of all aligned levels.
pub(super) fn solve_own_potential_of_aligned_levels(
    mut own: OwnPotentialSolver,
    aligned: Res<AlignedLevels>,
    levels: Res<Levels>,
) -> Result<(), Error> {
    let coarsest = aligned.coarsest;
    for level in coarsest..=aligned.finest.max(coarsest) {
        if !own.differs(level) {
            own.copy_from_potential(level)?;
            continue;
        }
        let OwnPotentialSolver {
            grids,
            gravity,
            ranks,
        } = &mut own;
        grids.solve_aligned(level, &levels, gravity, ranks)?;
    }
    Ok(())
}

/// Solves for the own potential before the first step, unless it was restored.
pub(super) fn solve_initial_own_potential(
    mut own: OwnPotentialSolver,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    let finest = own.grids.rows.finest();
    // boundary values need the potential of all levels, which comes last
    if own.grids.rows.is_estimate() || clock.level < finest {
        return Ok(());
    }
    for level in 0..=finest {
        if own.differs(level) {
            own.grids.solve_initially(level, &own.gravity, &own.ranks)?;
        } else {
            own.copy_from_potential(level)?;
        }
    }
    own.grids.exterior_potential.solved = true;
    Ok(())
}
