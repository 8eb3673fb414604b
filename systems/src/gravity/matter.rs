//! What attracts: the density of all matter, filled by an open list of sources.

use super::grids::{Equation, Matter, Solver};
use super::sums::Summed;
use super::systems::Gravity;
use crate::fields::Gas;
use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;
use nestar_device::{Real, device};
use nestar_engine::field::{FaultBox, LevelRows};
use nestar_engine::mesh::LevelClock;
use nestar_engine::ranks::Ranks;
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::Conserved;
use std::ops::RangeInclusive;

/// A system that adds the density of some matter on a level to [`Matter`].
type Source = BoxedSystem<In<usize>, Result<(), Error>>;

/// Everything that attracts.
#[derive(Resource)]
pub(super) struct Sources {
    all: Vec<Source>,
    /// Tells [`Equation`] the mean of what they have added.
    mean: Source,
}

impl Sources {
    /// None yet.
    pub fn new(world: &mut World) -> Self {
        Self {
            all: Vec::new(),
            mean: ready(world, mean),
        }
    }

    /// Whether gas is all that attracts.
    pub fn are_gas(&self) -> bool {
        self.all.len() == 1
    }
}

fn ready<M>(world: &mut World, system: impl IntoSystem<In<usize>, Result<(), Error>, M>) -> Source {
    let mut system: Source = Box::new(IntoSystem::into_system(system));
    system.initialize(world);
    system
}

fn run(source: &mut Source, level: usize, world: &mut World) -> Result<(), Error> {
    let ran = source.run(level, world);
    ran.map_err(|why| Error::Setup(why.to_string()))?
}

/// For plugins with matter of their own.
pub trait Gravitates {
    /// Lets the matter attract that `system` adds to [`Matter`] on the level it is given, after the gas has set it: it calls
    /// [`LevelRows::visit`] with the level and works on its own rows. Without a table `[gravity]` in the deck nothing attracts. Call it
    /// in `Plugin::build`.
    ///
    /// ```text
    /// sim.gravity_source(|In(level): In<usize>, mut rows: LevelRows, dust: Read<Dust>, mut matter: Write<Matter>| {
    ///     rows.visit(level);
    ///     matter.map_of::<add, _, 0>(&rows, &dust, &[], &[]);       // fn add<R: Real>(u: (R, R)) -> R { u.0 + u.1 }
    ///     Ok(())
    /// });
    /// ```
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>);
}

impl Gravitates for Engine {
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>) {
        if !self.world.contains_resource::<Sources>() {
            return;
        }
        let system = ready(&mut self.world, system);
        self.world.resource_mut::<Sources>().all.push(system);
    }
}

/// The density of gas.
#[device]
fn density<R: Real>(gas: Conserved<R>) -> R {
    gas.density
}

/// The gas sets the density; other sources add to it.
pub(super) fn of_gas(
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
    world.resource_scope(|world, mut sources: Mut<Sources>| -> Result<(), Error> {
        for level in levels {
            for source in &mut sources.all {
                run(source, level, world)?;
            }
        }
        let periodic = world.resource::<Gravity>().periodic;
        match root && periodic && !world.resource::<FaultBox>().is_full() {
            true => run(&mut sources.mean, 0, world),
            false => Ok(()),
        }
    })
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
