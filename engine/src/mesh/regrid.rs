//! Changing the hierarchy: entities, tables, pools and registers follow from one list of changes.

use super::nesting::{Changes, RefineRequests};
use super::topology::Topology;
use crate::error::Error;
use crate::field::FieldRegistry;
use crate::field::device::DeviceTopology;
use crate::memory::{self, MemoryGuard, Verdict};
use crate::patch::{Level, Owner, Parent, PatchIndex, PatchRow};
use crate::ranks::{self, Ranks};
use crate::time::{Fault, FaultBox, Levels};
use bevy_ecs::prelude::*;

/// The rows that the latest change of the hierarchy created, in Hilbert order of their level.
#[derive(Resource, Default)]
pub struct NewRows {
    /// Level of the new patches.
    pub level: usize,
    /// Their rows.
    pub rows: Vec<u32>,
}

/// Creates the root grid: tables, entities and pool rows. The new rows stand in [`NewRows`]. What goes wrong stands in [`Fault`].
pub fn create_root(world: &mut World) {
    if !world.resource::<Ranks>().are_alone() {
        let created = ranks::regrid::create_root(world);
        return report(world, created);
    }
    let rows = world.resource_mut::<Topology>().create_root();
    enter(world, 0, rows);
}

/// Applies `changes` to the patches of `level`; the children created stand in [`NewRows`], unfilled. Where several ranks share
/// the hierarchy, all of them call this, each with the changes of its own patches; what goes wrong stands in [`Fault`].
pub fn apply(world: &mut World, level: usize, changes: &Changes) {
    if !world.resource::<Ranks>().are_alone() {
        let applied = ranks::regrid::apply(world, level, changes);
        return report(world, applied);
    }
    for &row in &changes.coarsen {
        let topology = world.resource::<Topology>();
        let first = topology
            .first_child(row)
            .expect("only refined patches are coarsened");
        let entities: [Entity; 8] = std::array::from_fn(|c| topology.entity(first + c as u32));
        world.resource_mut::<Topology>().remove_children(row);
        for entity in entities {
            world.despawn(entity);
        }
    }
    let mut topology = world.resource_mut::<Topology>();
    let mut created = Vec::with_capacity(8 * changes.refine.len());
    for &row in &changes.refine {
        let first = topology.create_children(row);
        created.extend(first..first + 8);
    }
    topology.relink(level + 1);
    created.sort_by_cached_key(|&row| topology.key(row));
    enter(world, level + 1, created);
}

/// Leaves an error where the run finds it.
fn report(world: &mut World, result: Result<(), Error>) {
    if let Err(error) = result {
        world.resource_mut::<Fault>().0.get_or_insert(error);
    }
}

/// Gives the new rows of `level` their entities and lets everything that is indexed by rows follow the tables.
pub(crate) fn enter(world: &mut World, level: usize, new: Vec<u32>) {
    let bare = bare_rows(world.resource::<Topology>(), level, &new);
    spawn(world, bare.as_deref().unwrap_or(&new));
    finish(world, level, new);
}

/// Own rows of `level` without an entity, where not only the new ones may lack one: patches move between ranks.
fn bare_rows(topology: &Topology, level: usize, new: &[u32]) -> Option<Vec<u32>> {
    let bare = |row: &u32| topology.entity(*row) == Entity::PLACEHOLDER;
    let rows = topology.rows(level).iter().copied();
    (topology.is_shared() && new.len() < rows.len()).then(|| rows.filter(bare).collect())
}

/// Names the parents of the own patches of `level` anew: a parent's entity goes when the parent moves to another rank.
pub(crate) fn renew_parents(world: &mut World, level: usize) {
    for row in world.resource::<Topology>().rows(level).to_vec() {
        let topology = world.resource::<Topology>();
        let (entity, parent) = (topology.entity(row), parent_entity(topology, row));
        let mut patch = world.entity_mut(entity);
        match parent {
            Some(parent) if patch.get::<Parent>().is_none_or(|known| known.0 != parent) => {
                patch.insert(Parent(parent));
            }
            None => {
                patch.remove::<Parent>();
            }
            Some(_) => {}
        }
    }
}

/// The entity of the parent of `row`: a copy of another rank's patch has none.
fn parent_entity(topology: &Topology, row: u32) -> Option<Entity> {
    let parent = topology
        .parent(row)
        .filter(|&parent| topology.is_owned(parent));
    parent.map(|parent| topology.entity(parent))
}

fn spawn(world: &mut World, rows: &[u32]) {
    for &row in rows {
        let topology = world.resource::<Topology>();
        let level = topology.level(row).expect("a new row is in use");
        let parent = parent_entity(topology, row);
        let place = (
            Level(level as u8),
            PatchIndex(topology.index(row)),
            PatchRow(row),
            Owner(topology.rank() as u32),
        );
        let entity = match parent {
            Some(parent) => world.spawn((place, Parent(parent))).id(),
            None => world.spawn(place).id(),
        };
        world.resource_mut::<Topology>().set_entity(row, entity);
    }
}

/// Lets everything that is indexed by rows follow the new tables.
fn finish(world: &mut World, level: usize, rows: Vec<u32>) {
    let capacity = world.resource::<Topology>().capacity();
    let mut requests = world.resource_mut::<RefineRequests>();
    requests.resize(capacity);
    for &row in &rows {
        requests.forget(row);
    }
    if level > 0 {
        world.resource_mut::<Levels>().align_with_parent(level);
    }
    if !update_tables(world, level, &rows) {
        return;
    }
    let operations = world.resource::<FieldRegistry>().operations();
    for field in &operations {
        (field.follow)(world, level, &rows);
    }
    let mut new = world.resource_mut::<NewRows>();
    new.level = level;
    new.rows = rows;
}

/// Lets the tables on the device follow, if there are any; whether the run can go on.
fn update_tables(world: &mut World, level: usize, new: &[u32]) -> bool {
    if !world.contains_resource::<DeviceTopology>() {
        return true;
    }
    world.resource_scope(|world, mut tables: Mut<DeviceTopology>| {
        let updated = tables.update(world.resource::<Topology>(), level, new);
        world.resource::<FaultBox>().check(updated)
    })
}

/// Regrids `level` as its requests say, as far as memory goes, and fills the new patches by interpolation: the step
/// `Regrid: Refine`.
pub fn refine(world: &mut World) {
    let level = world.resource::<crate::time::LevelClock>().level;
    let refined = try_refine(world, level);
    report(world, refined);
}

fn try_refine(world: &mut World, level: usize) -> Result<(), Error> {
    let Some(changes) = changes(world, level, |_| ())? else {
        return Ok(());
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(shortage) => {
            world.resource_mut::<MemoryGuard>().shortage = Some(shortage);
            return Ok(());
        }
    };
    apply(world, level, &changes);
    if world.resource::<Fault>().0.is_some() {
        return Ok(());
    }
    // new patches are made from what surrounds their parents
    ranks::exchange::refresh(world, level)?;
    let operations = world.resource::<FieldRegistry>().operations();
    for field in &operations {
        (field.prolong)(world);
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
