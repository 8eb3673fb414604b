//! Systems that solve for the potentials that only particles feel: the own potential of each level, and those of pairs.
//!
//! # Own potential
//!
//! Own potential of levels, without the fine-grid correction, for matter near coarse-fine faces.
//!
//! Such matter is deposited in cells of two widths. The potential of all levels together contains the difference of
//! both deposits, which exerts a force on the matter itself. Boundary values come from the potential of all levels,
//! because the boundary of a level is far from its finer levels. Boundary values from coarser levels alone would
//! correspond to matter in the middle of a coarse cell.
//!
//! # Pairs
//!
//! Potentials of pairs of particles: the two particles of a pair attract each other through the potentials of one level.
//!
//! A particle outside the boundary zone of a level is a source of the inner potential of the level and of the outer potential
//! of the coarser level, with the same mass and with clouds of the two widths. It feels the own potential of the coarser
//! level, minus its outer potential, plus the inner potential of its level. A particle in the boundary zone feels the own
//! potential of the coarser level. A pair with a particle in the zone or on the coarser level thus interacts through the own
//! potential, and any other pair through the inner potential. Each of these forces is balanced.

use super::exterior_potential::ExteriorPotential;
use super::level_solver::{DeviceSolver, LevelSolver, LevelState, PoissonEquation, PotentialField};
use super::root_level::RootSums;
use super::surroundings::Surroundings;
use super::systems::{
    Gravity, has_changed, solve_aligned_levels, solve_initial_potential, solve_potential,
};
use super::{exchanges_own_halos, exterior_state, matter, potential};
use crate::fields::{
    InnerMatter, InnerPotential, OuterMatter, OuterPotential, OwnPotential,
    PairAccelerationRequested, Potential,
};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::FieldSpec;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{AlignedLevels, Read, SystemOptions};
use nestar_engine::{Engine, Error};
use std::ops::{Range, RangeInclusive};

/// Registers the fields and the systems, after those of the potential.
pub(super) fn register(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    register_own(sim, surroundings)?;
    if sim.world.contains_resource::<PairAccelerationRequested>() {
        register_pairs(sim, surroundings)?;
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

/// The field is stored in snapshots: it is the result of iterations that a restart could not reproduce to the last bit.
fn own_potential(sim: &Engine) -> FieldSpec {
    let mut spec = potential(sim);
    spec.components[0].name = "own_potential".into();
    spec.components[0].long_name = "gravitational potential without what finer levels add".into();
    spec.banks = spec.time_levels;
    spec
}

/// Registers the field and the state of its solver.
fn register_own(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    sim.register_field::<OwnPotential>(own_potential(sim))?;
    let state = exterior_state::<OwnPotential>(sim, surroundings);
    sim.register_state("own_gravity", state)
}

impl ParticlePotentialSolver<'_, '_, OwnPotential> {
    /// Returns `true` if finer levels contribute to the equation of a level; otherwise the potential itself is used.
    fn differs(&self, level: usize) -> bool {
        self.gravity.two_way() && level < self.grids.rows.finest()
    }

    /// Copies the potential of a level, with its values around the domain.
    fn copy_with_exterior(&mut self, level: usize) -> Result<(), Error> {
        self.copy_potential(level)?;
        let grids = &mut self.grids;
        let (kernels, from) = (
            grids.solver.kernels.as_ref(),
            &grids.coarser.exterior_potential,
        );
        match level {
            0 => (grids.exterior_potential).copy_from(&grids.ranks, from, kernels),
            _ => Ok(()),
        }
    }

    /// Predicts the potential at the end of the step of a level, until it is solved for on synchronised levels.
    pub fn predict(&mut self, level: usize) -> Result<(), Error> {
        self.grids.commit(level)?;
        if !self.differs(level) {
            // new finer levels have not changed it yet
            return self.copy_with_exterior(level);
        }
        // in the step, the equation differs from that of the potential by a constant fine-grid correction
        self.follow_potential(level)?;
        match level {
            0 => self.grids.restore_beyond(),
            _ => Ok(()),
        }
    }

    /// Solves for the potential of an aligned level.
    pub fn solve_own_aligned(&mut self, level: usize) -> Result<(), Error> {
        match self.differs(level) {
            true => self.solve_aligned(level),
            false => self.copy_with_exterior(level),
        }
    }

    /// Solves for the potential of all levels before the first step, unless it was restored.
    pub fn solve_own_initially(&mut self) -> Result<(), Error> {
        for level in 0..=self.grids.rows.finest() {
            match self.differs(level) {
                true => (self.grids).solve_initially(level, &self.gravity, &self.ranks)?,
                false => self.copy_with_exterior(level)?,
            }
        }
        self.grids.exterior_potential.solved = true;
        Ok(())
    }
}

fn potential_of(sim: &Engine, name: &str, whose: &str) -> FieldSpec {
    let mut spec = potential(sim);
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

/// Registers the fields and the states of their solvers.
fn register_pairs(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    let (inner, outer) = (
        "outside the boundary zone",
        "outside the boundary zone of the next finer level",
    );
    sim.register_field::<InnerPotential>(potential_of(sim, "inner_potential", inner))?;
    sim.register_field::<OuterPotential>(potential_of(sim, "outer_potential", outer))?;
    sim.register_field::<InnerMatter>(matter_of("inner_matter", inner))?;
    sim.register_field::<OuterMatter>(matter_of("outer_matter", outer))?;
    let state = exterior_state::<OuterPotential>(sim, surroundings);
    sim.register_state("outer_gravity", state)?;
    // the values around the domain are those of the outer potential
    let state = exterior_state::<InnerPotential>(sim, Surroundings::PERIODIC);
    sim.register_state("inner_gravity", state)
}

impl<P: PotentialField> ParticlePotentialSolver<'_, '_, P> {
    /// Solves for the potential of the levels in a range before the first step, unless it was restored.
    pub fn solve_initially(&mut self, levels: Range<usize>) -> Result<(), Error> {
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
    pub fn solve_in_step(&mut self, level: usize, cycles: usize) -> Result<(), Error> {
        self.grids.commit(level)?;
        if cycles == 0 {
            return self.copy_potential(level);
        }
        // the change that both potentials share is large, that of the rest is smooth
        self.follow_potential(level)?;
        (self.grids).solve_again(level, cycles, &self.gravity, &self.ranks)
    }
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
    pub fn compute(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 && self.exterior.is_closed() {
            let summed = RootSums::plain(self.matter.own_on(level));
            self.equation.outer_mean = summed.mean(&self.ranks, self.solver.kernels.as_ref())?;
        }
        Ok(())
    }
}
