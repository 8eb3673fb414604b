//! Changing the hierarchy: entities, tables, pools and registers follow from one list of changes.

use super::memory::{self, MemoryGuard, Verdict};
use super::{Error, Settings};
use crate::field::patches::enter;
use crate::field::{FaultBox, FieldSpec, Stores};
use crate::mesh::carried::{CarriedComponents, CarriedValues};
use crate::mesh::{Changes, LevelClock, NewRows, Topology};
use crate::ranks::{self, Ranks};
use bevy_ecs::prelude::*;

/// Creates the root grid: tables, entities and pool rows. The new rows stand in [`NewRows`]. What goes wrong stands in [`FaultBox`].
pub fn create_root(world: &mut World) {
    if !world.resource::<Ranks>().are_alone() {
        let created = ranks::regrid::create_root(world);
        return report(world, created);
    }
    let rows = world.resource_mut::<Topology>().create_root();
    enter(world, 0, rows);
}

/// Applies `changes` to the patches of `level`; the children created stand in [`NewRows`], unfilled. Where several ranks share
/// the hierarchy, all of them call this, each with the changes of its own patches; what goes wrong stands in [`FaultBox`].
pub fn apply(world: &mut World, level: usize, changes: &Changes) {
    if !world.resource::<Ranks>().are_alone() {
        let imbalance = world.resource::<Settings>().run.imbalance;
        let applied = ranks::regrid::apply(world, level, changes, imbalance);
        return report(world, applied);
    }
    let inherited = inherited(world, &changes.refine);
    let topology = world.resource::<Topology>();
    let coarsened = changes.coarsen.iter();
    let children = coarsened.filter_map(|&row| topology.first_child(row));
    let rows: Vec<u32> = children.flat_map(|first| first..first + 8).collect();
    let gone: Vec<Entity> = rows.iter().map(|&row| topology.entity(row)).collect();
    let mut items = ranks::Lifted::default();
    items.take(world, level + 1, changes, |topology| {
        let patch = |&row: &u32| (row, topology.index(row));
        rows.iter().map(patch).collect()
    });
    let mut topology = world.resource_mut::<Topology>();
    let created = topology.change(level, &changes.refine, &changes.coarsen);
    for entity in gone {
        world.despawn(entity);
    }
    enter(world, level + 1, created);
    if world.resource::<FaultBox>().is_full() {
        return;
    }
    let settled = items.settle(world);
    report(world, settled);
    let child = |world: &World, place: u64| {
        let topology = world.resource::<Topology>();
        let first = topology.first_child((place >> 3) as u32)?;
        Some(topology.entity(first + (place & 7) as u32))
    };
    let attached = inherited.attach(world, child).map_err(Error::Setup);
    report(world, attached);
}

/// What the children of `parents` get of their components, by eight times the parent's row and the child's number.
fn inherited(world: &World, parents: &[u32]) -> CarriedValues {
    if world.resource::<CarriedComponents>().kinds().is_empty() {
        return CarriedValues::default();
    }
    let topology = world.resource::<Topology>();
    let children = |&row: &u32| {
        let parent = topology.entity(row);
        (0..8).map(move |child| (u64::from(row) << 3 | child, parent))
    };
    let children: Vec<_> = parents.iter().flat_map(children).collect();
    CarriedValues::of(world, &children, true)
}

/// Leaves an error where the run finds it.
fn report(world: &mut World, result: Result<(), impl Into<Error>>) {
    if let Err(error) = result {
        world.resource::<FaultBox>().fail(error.into());
    }
}

/// Regrids `level` as its requests say, as far as memory goes, and fills the new patches by interpolation: the step
/// `Regrid: Refine`. The new patches stand in [`NewRows`].
pub fn refine(world: &mut World) {
    *world.resource_mut::<NewRows>() = NewRows::default();
    let level = world.resource::<LevelClock>().level;
    let refined = try_refine(world, level);
    report(world, refined);
}

fn try_refine(world: &mut World, level: usize) -> Result<(), Error> {
    let Some(changes) = changes(world, level, |_| ())? else {
        let imbalance = world.resource::<Settings>().run.imbalance;
        return Ok(ranks::regrid::rebalance(world, level, imbalance)?);
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(shortage) => {
            world.resource_mut::<MemoryGuard>().shortage = Some(shortage);
            return Ok(());
        }
    };
    apply(world, level, &changes);
    if world.resource::<FaultBox>().is_full() {
        return Ok(());
    }
    let operations = world.resource::<Stores>().all();
    // new patches are made from what surrounds their parents
    let copied = Stores::of(world, FieldSpec::reads_surroundings);
    ranks::exchange::refresh(world, level, &copied)?;
    ranks::exchange::mark_new(world)?;
    for field in &operations {
        field.fill(world);
    }
    Ok(())
}

/// What the requests of `level` and memory make of it, once `edit` has seen it; `None` if no rank changes anything.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(crate) fn changes(
    world: &mut World,
    level: usize,
    edit: impl FnOnce(&mut Changes),
) -> Result<Verdict, Error> {
    let mut changes = ranks::nesting::decide(world, level)?;
    edit(&mut changes);
    Ok(memory::restrain(world, level, changes)?)
}
