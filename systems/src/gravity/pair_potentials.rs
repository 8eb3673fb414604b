//! Potentials of pairs of particles: the two particles of a pair attract each other through the potentials of one level.
//!
//! A particle outside the boundary zone of a level is a source of the inner potential of the level and of the outer potential
//! of the coarser level, with the same mass and with clouds of the two widths. It feels the own potential of the coarser
//! level, minus its outer potential, plus the inner potential of its level. A particle in the boundary zone feels the own
//! potential of the coarser level. A pair with a particle in the zone or on the coarser level thus interacts through the own
//! potential, and any other pair through the inner potential. Each of these forces is balanced.

use super::exterior_potential::ExteriorPotential;
use super::level_solver::{DeviceSolver, LevelSolver, LevelState, PoissonEquation, PotentialField};
use super::own_potential::{
    predict_own_potential, solve_initial_own_potential, solve_own_potential_of_aligned_levels,
};
use super::root_level::RootSums;
use super::surroundings::Surroundings;
use super::systems::{Gravity, has_changed};
use super::{exchanges_own_halos, exterior_state, matter, potential};
use crate::fields::{InnerMatter, InnerPotential, OuterMatter, OuterPotential, Potential};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::FieldSpec;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{AlignedLevels, Read, SystemOptions};
use nestar_engine::{Engine, Error};
use std::ops::{Range, RangeInclusive};

fn potential_of(name: &str, whose: &str) -> FieldSpec {
    let mut spec = potential();
    spec.components[0].name = name.to_owned();
    spec.components[0].long_name = format!("gravitational potential of particles {whose}");
    spec.banks = spec.time_levels;
    spec
}

fn matter_of(name: &str, whose: &str) -> FieldSpec {
    let mut spec = matter();
    spec.components[0].name = name.to_owned();
    spec.components[0].long_name = format!("density of matter, with particles {whose}");
    spec
}

/// Registers the fields and the systems, after those of the own potential.
pub(super) fn register(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    let (inner, outer) = (
        "outside the boundary zone",
        "outside the boundary zone of the next finer level",
    );
    sim.register_field::<InnerPotential>(potential_of("inner_potential", inner))?;
    sim.register_field::<OuterPotential>(potential_of("outer_potential", outer))?;
    sim.register_field::<InnerMatter>(matter_of("inner_matter", inner))?;
    sim.register_field::<OuterMatter>(matter_of("outer_matter", outer))?;
    let state = exterior_state::<OuterPotential>(sim, surroundings);
    sim.register_state("outer_gravity", state)?;
    // the values around the domain are those of the outer potential
    let state = exterior_state::<InnerPotential>(sim, Surroundings::PERIODIC);
    sim.register_state("inner_gravity", state)?;
    exchanges_halos(
        sim.system_in(Ready::Recompute, solve_initial_pair_potentials)
            .after(solve_initial_own_potential),
    );
    exchanges_halos(
        sim.system_in(Advance::Potential, solve_pair_potentials)
            .after(predict_own_potential),
    );
    exchanges_halos(
        sim.system_in(Aligned::Solve, solve_pair_potentials_of_aligned_levels)
            .after(solve_own_potential_of_aligned_levels),
    );
    Ok(())
}

/// Declares that a system exchanges the halos of both potentials itself.
fn exchanges_halos(system: &mut SystemOptions) {
    exchanges_own_halos::<OuterPotential>(system);
    exchanges_own_halos::<InnerPotential>(system);
}

/// Mean density and solvers of both potentials, which are used one after the other.
type Solvers<'w, 's> = ParamSet<
    'w,
    's,
    (
        OuterMean<'static, 'static>,
        PairPotentialSolver<'static, 'static, OuterPotential>,
        PairPotentialSolver<'static, 'static, InnerPotential>,
    ),
>;

/// Solver of one of the potentials.
#[derive(SystemParam)]
pub(super) struct PairPotentialSolver<'w, 's, P: PotentialField> {
    grids: LevelSolver<'w, 's, P>,
    /// Potential of all levels.
    whole: Read<'w, 's, Potential>,
    gravity: Res<'w, Gravity>,
    ranks: Res<'w, Ranks>,
    levels: Res<'w, Levels>,
}

impl<P: PotentialField> PairPotentialSolver<'_, '_, P> {
    /// Solves for the potential of the levels in a range before the first step, unless it was restored.
    fn solve_initially(&mut self, levels: Range<usize>) -> Result<(), Error> {
        let Self {
            grids,
            gravity,
            ranks,
            ..
        } = self;
        if !grids.exterior_potential.solved || levels.start == 0 {
            let mut all = levels.clone();
            all.try_for_each(|level| grids.solve_initially(level, gravity, ranks))?;
        }
        grids.exterior_potential.solved |= !levels.is_empty();
        Ok(())
    }

    /// Solves for the potential at the end of the step of a level by a number of cycles; 0 for a level without the potential.
    fn solve_in_step(&mut self, level: usize, cycles: usize) -> Result<(), Error> {
        self.grids.commit(level)?;
        if cycles == 0 {
            return self.copy_potential(level);
        }
        // the change that both potentials share is large, that of the rest is smooth
        self.grids.follow(&self.whole.own_on(level))?;
        self.grids.potential.change_on(level);
        (self.grids).solve_again(level, cycles, &self.gravity, &self.ranks)
    }

    /// Solves for the potential of an aligned level.
    fn solve_aligned(&mut self, level: usize) -> Result<(), Error> {
        (self.grids).solve_aligned(level, &self.levels, &self.gravity, &self.ranks)
    }

    /// Updates the halos of some levels.
    fn refresh(&mut self, mut levels: RangeInclusive<usize>) -> Result<(), Error> {
        let LevelSolver {
            potential, ranks, ..
        } = &mut self.grids;
        levels.try_for_each(|level| potential.refresh_on(ranks, level))
    }

    /// Copies the potential of all levels to a level without this potential, as the first guess for patches that it will have.
    fn copy_potential(&mut self, level: usize) -> Result<(), Error> {
        let grids = &mut self.grids;
        grids.copy(&self.whole.own_on(level), LevelState::Present)?;
        grids.potential.change_on(level);
        Ok(())
    }
}

/// Solves for both potentials at the end of the step of a level.
fn solve_pair_potentials(mut solvers: Solvers, clock: Res<LevelClock>) -> Result<(), Error> {
    let level = clock.level;
    solvers.p0().compute(level)?;
    let mut outer = solvers.p1();
    let exists = level < outer.grids.rows.finest();
    let cycles = outer.gravity.cycle_settings.for_outer_potential();
    outer.solve_in_step(level, if exists { cycles } else { 0 })?;
    outer.refresh(level.saturating_sub(1)..=level)?;
    let mut inner = solvers.p2();
    let cycles = inner.gravity.cycle_settings.for_inner_potential();
    inner.solve_in_step(level, if level > 0 { cycles } else { 0 })
}

/// Solves for both potentials of aligned levels; for the inner one only if patches have changed.
pub(super) fn solve_pair_potentials_of_aligned_levels(
    mut solvers: Solvers,
    aligned: Res<AlignedLevels>,
) -> Result<(), Error> {
    let levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    solvers.p0().compute(aligned.coarsest)?;
    let mut outer = solvers.p1();
    let finest = outer.grids.rows.finest();
    for level in levels.clone() {
        match level < finest {
            true => outer.solve_aligned(level)?,
            false => outer.copy_potential(level)?,
        }
    }
    outer.refresh(levels.start().saturating_sub(1)..=*levels.end())?;
    let mut inner = solvers.p2();
    // otherwise the solution at the end of the step holds
    for level in levels.filter(|&level| level > 0) {
        if has_changed(level, &inner.levels) {
            inner.solve_aligned(level)?;
        }
    }
    Ok(())
}

/// Solves for both potentials of all levels when the finest level is current.
pub(super) fn solve_initial_pair_potentials(
    mut solvers: Solvers,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    solvers.p0().compute(clock.level)?;
    let mut outer = solvers.p1();
    let finest = outer.grids.rows.finest();
    if outer.grids.rows.is_estimate() || clock.level < finest {
        return Ok(());
    }
    outer.solve_initially(0..finest)?;
    outer.copy_potential(finest)?;
    outer.refresh(0..=finest)?;
    let mut inner = solvers.p2();
    inner.solve_initially(1..finest + 1)?;
    inner.copy_potential(0)
}

/// Data of the mean density of [`OuterMatter`].
#[derive(SystemParam)]
pub(super) struct OuterMean<'w, 's> {
    matter: Read<'w, 's, OuterMatter>,
    solver: Res<'w, DeviceSolver>,
    ranks: Res<'w, Ranks>,
    equation: ResMut<'w, PoissonEquation>,
    exterior: Res<'w, ExteriorPotential<OuterPotential>>,
}

impl OuterMean<'_, '_> {
    /// Computes the mean density of a closed domain if `level` is its root level.
    fn compute(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 && self.exterior.is_closed() {
            let summed = RootSums::plain(self.matter.own_on(level));
            self.equation.outer_mean = summed.mean(&self.ranks, self.solver.kernels.as_ref())?;
        }
        Ok(())
    }
}
