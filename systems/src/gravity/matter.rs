//! What attracts: the density of all matter, filled by an open list of sources.

use super::grids::{Equation, Matter};
use super::systems::Gravity;
use crate::fields::Gas;
use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;
use nestar_device::{Real, device};
use nestar_engine::field::{FaultBox, LevelRows, Pool};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::ranks::Ranks;
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::hydro::Conserved;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// A system that adds the density of some matter on a level to [`Matter`].
type Source = BoxedSystem<In<usize>, Result<(), Error>>;

/// Everything that attracts.
#[derive(Resource, Default)]
pub(super) struct Sources(Vec<Source>);

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
        let mut system: Source = Box::new(IntoSystem::into_system(system));
        system.initialize(&mut self.world);
        self.world.resource_mut::<Sources>().0.push(system);
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
            for source in &mut sources.0 {
                let ran = source.run(level, world);
                ran.map_err(|why| Error::Setup(why.to_string()))??;
            }
        }
        Ok(())
    })?;
    if root && world.resource::<Gravity>().periodic && !world.resource::<FaultBox>().is_full() {
        world.resource_mut::<Equation>().mean = mean(world)?;
    }
    Ok(())
}

/// The mean over the root level, the same on any number of ranks: the sums of patches are added by place.
fn mean(world: &World) -> Result<f64, Error> {
    let (matter, topology) = (Pool::<Matter>::of(world), world.resource::<Topology>());
    let rows = topology.rows(0);
    let sums: Vec<f64> = in_precision!(matter.precision(), R => {
        let values = matter.host::<R>(0, rows)?;
        let sum = |patch: &[R]| patch.iter().map(|v| v.to_f64()).sum();
        values.par_chunks_exact(CELLS).map(sum).collect()
    });
    let mut own = Vec::with_capacity(rows.len() * PATCH_BYTES);
    for (&row, sum) in rows.iter().zip(sums) {
        let [x, y, z] = topology.index(row);
        [z, y, x].iter().for_each(|i| own.extend(i.to_le_bytes()));
        own.extend(sum.to_le_bytes());
    }
    let all = world.resource::<Ranks>().communicator().all_gather(&own)?;
    let mut all: Vec<([i32; 3], f64)> = all.iter().flat_map(|bytes| patches(bytes)).collect();
    all.sort_by_key(|(place, _)| *place);
    let sum: f64 = all.iter().map(|(_, sum)| sum).sum();
    Ok(sum / (all.len() * CELLS) as f64)
}

/// Bytes of a patch in a message: its place, z first, and its sum.
const PATCH_BYTES: usize = 20;

fn patches(bytes: &[u8]) -> impl Iterator<Item = ([i32; 3], f64)> {
    let patches = bytes.as_chunks::<PATCH_BYTES>().0.iter();
    patches.map(|patch| {
        let (place, sum) = patch.split_at(12);
        let word = |n: usize| i32::from_le_bytes(place.as_chunks().0[n]);
        let sum = sum.as_chunks().0.first().copied().unwrap_or_default();
        ([word(0), word(1), word(2)], f64::from_le_bytes(sum))
    })
}
