//! What attracts: the density of all matter, filled by an open list of sources.

use super::grids::{Equation, Solver};
use super::sums::Summed;
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

/// Everything that attracts tells here the mean of what it has added.
#[derive(Resource)]
pub(super) struct Mean(MatterSource);

/// Enters what attracts: the gas first.
pub(super) fn register(sim: &mut Engine) {
    sim.world.insert_resource(MatterSources::default());
    let mean = matter_source(&mut sim.world, mean);
    sim.world.insert_resource(Mean(mean));
    sim.gravity_source(of_gas);
}

/// The density of gas.
#[device]
fn density<R: Real>(gas: Conserved<R>) -> R {
    gas.density
}

/// The gas sets the density; other sources add to it.
fn of_gas(
    In(level): In<usize>,
    mut rows: LevelRows,
    gas: Read<Gas>,
    mut matter: Write<Matter>,
) -> Result<(), Error> {
    rows.visit(level);
    matter.map_of::<density, _, 0>(&rows, &gas, &[], &[]);
    Ok(())
}

/// The density on the level at hand.
pub(super) fn on_level(world: &mut World) -> Result<(), Error> {
    let level = world.resource::<LevelClock>().level;
    fill(world, level..=level)
}

/// The density on all levels that stand at one time.
pub(super) fn on_aligned(world: &mut World) -> Result<(), Error> {
    let aligned = world.resource::<AlignedLevels>();
    let levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    fill(world, levels)
}

fn fill(world: &mut World, levels: RangeInclusive<usize>) -> Result<(), Error> {
    let root = *levels.start() == 0;
    world.resource_scope(
        |world, mut sources: Mut<MatterSources>| -> Result<(), Error> {
            for level in levels {
                for source in &mut sources.0 {
                    fill_by(source, level, world)?;
                }
            }
            Ok(())
        },
    )?;
    let periodic = world.resource::<Gravity>().periodic;
    if root && periodic && !world.resource::<FaultBox>().has_fault() {
        world.resource_scope(|world, mut mean: Mut<Mean>| fill_by(&mut mean.0, 0, world))?;
    }
    Ok(())
}

fn fill_by(source: &mut MatterSource, level: usize, world: &mut World) -> Result<(), Error> {
    let ran = source.run(level, world);
    ran.map_err(|why| Error::Setup(why.to_string()))?
}

/// The mean over the root level.
fn mean(
    In(level): In<usize>,
    matter: Read<Matter>,
    (solver, ranks): (Res<Solver>, Res<Ranks>),
    mut equation: ResMut<Equation>,
) -> Result<(), Error> {
    let summed = Summed::plain(matter.own_on(level));
    equation.mean = summed.mean(&ranks, solver.kernels.as_ref())?;
    Ok(())
}
