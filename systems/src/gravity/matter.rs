//! Density of all matter, summed over an open list of sources.

use super::level_solver::{DeviceSolver, PoissonEquation};
use super::root_sums::RootSums;
use super::systems::Gravity;
use crate::fields::{Gas, Matter};
use crate::register::{GravitySources, MatterSource, MatterSources, matter_source};
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::comm::Ranks;
use nestar_engine::data::{FaultBox, LevelRows};
use nestar_engine::mesh::LevelClock;
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::Conserved;
use std::ops::RangeInclusive;

/// Computes the mean density after all sources have been added.
#[derive(Resource)]
pub(super) struct MeanDensity(MatterSource);

/// Registers the sources, first the gas.
pub(super) fn register(sim: &mut Engine) {
    sim.world.insert_resource(MatterSources::default());
    let mean = matter_source(&mut sim.world, mean_density);
    sim.world.insert_resource(MeanDensity(mean));
    sim.gravity_source(gas_density);
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

/// Sums the density on the current level.
pub(super) fn sum_density(world: &mut World) -> Result<(), Error> {
    let level = world.resource::<LevelClock>().level;
    sum_sources(world, level..=level)
}

/// Sums the density on all aligned levels.
pub(super) fn sum_density_of_aligned_levels(world: &mut World) -> Result<(), Error> {
    let aligned = world.resource::<AlignedLevels>();
    let levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    sum_sources(world, levels)
}

fn sum_sources(world: &mut World, levels: RangeInclusive<usize>) -> Result<(), Error> {
    let root = *levels.start() == 0;
    world.resource_scope(
        |world, mut sources: Mut<MatterSources>| -> Result<(), Error> {
            for level in levels {
                for source in &mut sources.0 {
                    run_source(source, level, world)?;
                }
            }
            Ok(())
        },
    )?;
    let periodic = world.resource::<Gravity>().periodic;
    if root && periodic && !world.resource::<FaultBox>().has_fault() {
        world.resource_scope(|world, mut mean: Mut<MeanDensity>| {
            run_source(&mut mean.0, 0, world)
        })?;
    }
    Ok(())
}

fn run_source(source: &mut MatterSource, level: usize, world: &mut World) -> Result<(), Error> {
    let ran = source.run(level, world);
    ran.map_err(|why| Error::Setup(why.to_string()))?
}

/// Computes the mean density of the root level.
fn mean_density(
    In(level): In<usize>,
    matter: Read<Matter>,
    solver: Res<DeviceSolver>,
    ranks: Res<Ranks>,
    mut equation: ResMut<PoissonEquation>,
) -> Result<(), Error> {
    let summed = RootSums::plain(matter.own_on(level));
    equation.mean = summed.mean(&ranks, solver.kernels.as_ref())?;
    Ok(())
}
