//! Potentials of pairs of particles: the two particles of a pair attract each other through the potentials of one level.
//!
//! A particle outside the boundary zone of a level is a source of the inner potential of the level and of the outer potential
//! of the coarser level, with the same mass and with clouds of the two widths. It feels the own potential of the coarser
//! level, minus its outer potential, plus the inner potential of its level. A particle in the boundary zone feels the own
//! potential of the coarser level. A pair with a particle in the zone or on the coarser level thus interacts through the own
//! potential, and any other pair through the inner potential. Each of these forces is balanced.

use super::exterior_potential::ExteriorPotential;
use super::level_solver::{DeviceSolver, PoissonEquation, PotentialField};
use super::particle_potentials::ParticlePotentialSolver;
use super::root_level::RootSums;
use super::surroundings::Surroundings;
use super::{exterior_state, matter, potential};
use crate::fields::{InnerMatter, InnerPotential, OuterMatter, OuterPotential};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::FieldSpec;
use nestar_engine::step::Read;
use nestar_engine::{Engine, Error};
use std::ops::Range;

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

/// Registers the fields and the states of their solvers.
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
