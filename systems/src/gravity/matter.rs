//! Density of all matter: the gas sets it, an open list of sources adds to it.

use super::level_solver::{DeviceSolver, PoissonEquation};
use super::root_sums::RootSums;
use super::systems::{solve_aligned_levels, solve_initial_potential, solve_potential};
use crate::fields::{Gas, Matter};
use crate::order::{Advance, Aligned, Ready};
use crate::register::{GravitySources, MatterSources};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Real, device};
use nestar_engine::comm::Ranks;
use nestar_engine::data::LevelRows;
use nestar_engine::mesh::LevelClock;
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::Conserved;

/// Registers the gas as the first source, and the mean density of a periodic domain.
pub(super) fn register(sim: &mut Engine, periodic: bool) {
    sim.world.insert_resource(MatterSources::default());
    sim.gravity_source("gas", gas_density);
    if periodic {
        sim.system_in(Ready::Recompute, compute_initial_mean_density)
            .before(solve_initial_potential);
        sim.system_in(Advance::Potential, compute_mean_density)
            .before(solve_potential);
        sim.system_in(Aligned::Solve, compute_mean_density_of_aligned_levels)
            .before(solve_aligned_levels);
    }
}

/// Density of the gas.
#[device]
fn density<R: Real>(u: (R, Conserved<R>)) -> R {
    let (_, gas) = u;
    gas.density
}

/// Sets the density to that of the gas; other sources add to it.
fn gas_density(
    In(level): In<usize>,
    mut rows: LevelRows,
    gas: Read<Gas>,
    mut matter: Write<Matter>,
) -> Result<(), Error> {
    rows.visit(level);
    matter.update::<density>(&rows, &gas, &[]);
    Ok(())
}

/// Data of the mean density.
#[derive(SystemParam)]
struct MeanDensity<'w, 's> {
    matter: Read<'w, 's, Matter>,
    solver: Res<'w, DeviceSolver>,
    ranks: Res<'w, Ranks>,
    equation: ResMut<'w, PoissonEquation>,
}

impl MeanDensity<'_, '_> {
    /// Computes the mean density of the root level if that is `level`.
    fn compute(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 {
            let summed = RootSums::plain(self.matter.own_on(level));
            self.equation.mean = summed.mean(&self.ranks, self.solver.kernels.as_ref())?;
        }
        Ok(())
    }
}

/// Computes the mean density before the first step.
fn compute_initial_mean_density(
    mut mean: MeanDensity,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    mean.compute(clock.level)
}

/// Computes the mean density at the end of a root step.
fn compute_mean_density(mut mean: MeanDensity, clock: Res<LevelClock>) -> Result<(), Error> {
    mean.compute(clock.level)
}

/// Computes the mean density if the root level is aligned.
fn compute_mean_density_of_aligned_levels(
    mut mean: MeanDensity,
    aligned: Res<AlignedLevels>,
) -> Result<(), Error> {
    mean.compute(aligned.coarsest)
}
