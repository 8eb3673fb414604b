//! Own potential of levels, without the fine-grid correction, for matter near coarse-fine faces.
//!
//! Such matter is deposited in cells of two widths. The potential of all levels together contains the difference of
//! both deposits, which exerts a force on the matter itself. Boundary values come from the potential of all levels,
//! because the boundary of a level is far from its finer levels. Boundary values from coarser levels alone would
//! correspond to matter in the middle of a coarse cell.

use super::particle_potentials::ParticlePotentialSolver;
use super::surroundings::Surroundings;
use super::{exterior_state, potential};
use crate::fields::OwnPotential;
use nestar_engine::data::FieldSpec;
use nestar_engine::{Engine, Error};

/// The field is stored in snapshots: it is the result of iterations that a restart could not reproduce to the last bit.
fn spec() -> FieldSpec {
    let mut spec = potential();
    spec.components[0].name = "own_potential".into();
    spec.components[0].long_name = "gravitational potential without what finer levels add".into();
    spec.banks = spec.time_levels;
    spec
}

/// Registers the field and the state of its solver.
pub(super) fn register(sim: &mut Engine, surroundings: Surroundings) -> Result<(), Error> {
    sim.register_field::<OwnPotential>(spec())?;
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
