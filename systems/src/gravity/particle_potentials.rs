//! Systems that solve for the potentials that only particles feel: the own potential of each level, and those of pairs.

use super::exchanges_own_halos;
use super::level_solver::{LevelSolver, LevelState, PotentialField};
use super::own_potential;
use super::pair_potentials::{self, OuterMean};
use super::surroundings::Surroundings;
use super::systems::{
    Gravity, has_changed, solve_aligned_levels, solve_initial_potential, solve_potential,
};
use crate::fields::{
    InnerMatter, InnerPotential, OuterMatter, OuterPotential, OwnPotential,
    PairAccelerationRequested, Potential,
};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{AlignedLevels, Read, SystemOptions};
use nestar_engine::{Engine, Error};
use std::ops::RangeInclusive;

/// Registers the fields and the systems, after those of the potential.
pub(super) fn register(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    own_potential::register(sim, surroundings)?;
    if sim.world.contains_resource::<PairAccelerationRequested>() {
        pair_potentials::register(sim, surroundings)?;
    }
    declare_fields(
        sim.system_in(Ready::Recompute, solve_initial_particle_potentials)
            .after(solve_initial_potential),
    );
    declare_fields(
        sim.system_in(Advance::Potential, solve_particle_potentials)
            .after(solve_potential),
    );
    declare_fields(
        sim.system_in(Aligned::Solve, solve_particle_potentials_of_aligned_levels)
            .after(solve_aligned_levels),
    );
    Ok(())
}

/// Declares that a system exchanges the halos of all potentials itself, and that those of pairs may be missing.
fn declare_fields(system: &mut SystemOptions) {
    exchanges_own_halos::<OwnPotential>(system);
    exchanges_own_halos::<OuterPotential>(system);
    exchanges_own_halos::<InnerPotential>(system);
    system
        .optional::<OuterPotential>()
        .optional::<InnerPotential>()
        .optional::<OuterMatter>()
        .optional::<InnerMatter>();
}

/// Solver of one of the potentials.
#[derive(SystemParam)]
pub(super) struct ParticlePotentialSolver<'w, 's, P: PotentialField> {
    pub grids: LevelSolver<'w, 's, P>,
    /// Potential of all levels.
    whole: Read<'w, 's, Potential>,
    pub gravity: Res<'w, Gravity>,
    pub ranks: Res<'w, Ranks>,
    pub levels: Res<'w, Levels>,
}

impl<P: PotentialField> ParticlePotentialSolver<'_, '_, P> {
    /// Solves for the potential of an aligned level.
    pub fn solve_aligned(&mut self, level: usize) -> Result<(), Error> {
        (self.grids).solve_aligned(level, &self.levels, &self.gravity, &self.ranks)
    }

    /// Updates the halos of some levels.
    pub fn refresh(&mut self, mut levels: RangeInclusive<usize>) -> Result<(), Error> {
        let LevelSolver {
            potential, ranks, ..
        } = &mut self.grids;
        levels.try_for_each(|level| potential.refresh_on(ranks, level))
    }

    /// Copies the potential of all levels to a level without this potential, as the first guess for patches that it will have.
    pub fn copy_potential(&mut self, level: usize) -> Result<(), Error> {
        let grids = &mut self.grids;
        grids.copy(&self.whole.own_on(level), LevelState::Present)?;
        grids.potential.change_on(level);
        Ok(())
    }

    /// Changes the potential of a level as that of all levels has changed in the step.
    pub fn follow_potential(&mut self, level: usize) -> Result<(), Error> {
        self.grids.follow(&self.whole.own_on(level))?;
        self.grids.potential.change_on(level);
        Ok(())
    }
}

/// Solvers of the potentials, which are used one after the other.
type Solvers<'w, 's> = ParamSet<
    'w,
    's,
    (
        ParticlePotentialSolver<'static, 'static, OwnPotential>,
        Option<OuterMean<'static, 'static>>,
        Option<ParticlePotentialSolver<'static, 'static, OuterPotential>>,
        Option<ParticlePotentialSolver<'static, 'static, InnerPotential>>,
    ),
>;

/// Solves for the potentials at the end of the step of a level.
fn solve_particle_potentials(mut solvers: Solvers, clock: Res<LevelClock>) -> Result<(), Error> {
    let level = clock.level;
    solvers.p0().predict(level)?;
    if let Some(mut mean) = solvers.p1() {
        mean.compute(level)?;
    }
    if let Some(mut outer) = solvers.p2() {
        let cycles = outer.gravity.cycle_settings.for_outer_potential();
        let exists = level < outer.grids.rows.finest();
        outer.solve_in_step(level, if exists { cycles } else { 0 })?;
        outer.refresh(level.saturating_sub(1)..=level)?;
    }
    if let Some(mut inner) = solvers.p3() {
        let cycles = inner.gravity.cycle_settings.for_inner_potential();
        inner.solve_in_step(level, if level > 0 { cycles } else { 0 })?;
    }
    Ok(())
}

/// Solves for the potentials of aligned levels; for the inner one only if patches have changed.
pub(super) fn solve_particle_potentials_of_aligned_levels(
    mut solvers: Solvers,
    aligned: Res<AlignedLevels>,
) -> Result<(), Error> {
    let levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    let mut own = solvers.p0();
    levels
        .clone()
        .try_for_each(|level| own.solve_own_aligned(level))?;
    if let Some(mut mean) = solvers.p1() {
        mean.compute(aligned.coarsest)?;
    }
    if let Some(mut outer) = solvers.p2() {
        for level in levels.clone() {
            match level < outer.grids.rows.finest() {
                true => outer.solve_aligned(level)?,
                false => outer.copy_potential(level)?,
            }
        }
        outer.refresh(levels.start().saturating_sub(1)..=*levels.end())?;
    }
    if let Some(mut inner) = solvers.p3() {
        // otherwise the solution at the end of the step holds
        for level in levels.filter(|&level| level > 0) {
            if has_changed(level, &inner.levels) {
                inner.solve_aligned(level)?;
            }
        }
    }
    Ok(())
}

/// Solves for the potentials of all levels when the finest level is current, unless they were restored.
pub(super) fn solve_initial_particle_potentials(
    mut solvers: Solvers,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    if let Some(mut mean) = solvers.p1() {
        mean.compute(clock.level)?;
    }
    let mut own = solvers.p0();
    let finest = own.grids.rows.finest();
    // boundary values need the potential of all levels, which comes last
    if own.grids.rows.is_estimate() || clock.level < finest {
        return Ok(());
    }
    own.solve_own_initially()?;
    if let Some(mut outer) = solvers.p2() {
        outer.solve_initially(0..finest)?;
        outer.copy_potential(finest)?;
        outer.refresh(0..=finest)?;
    }
    if let Some(mut inner) = solvers.p3() {
        inner.solve_initially(1..finest + 1)?;
        inner.copy_potential(0)?;
    }
    Ok(())
}
