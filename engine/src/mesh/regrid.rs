//! Changing the hierarchy: entities, tables, pools and registers follow from one list of changes.

use super::nesting::{Changes, RefineRequests};
use super::topology::Topology;
use crate::field::FieldRegistry;
use crate::field::device::DeviceTopology;
use crate::memory::{self, MemoryGuard};
use crate::patch::{Level, Owner, Parent, PatchIndex, PatchRow};
use crate::time::{FaultBox, Levels};
use bevy_ecs::prelude::*;

/// The rows that the latest change of the hierarchy created, in Hilbert order of their level.
#[derive(Resource, Default)]
pub struct NewRows {
    /// Level of the new patches.
    pub level: usize,
    /// Their rows.
    pub rows: Vec<u32>,
}

/// Creates the root grid: tables, entities and pool rows. The new rows stand in [`NewRows`].
pub fn create_root(world: &mut World) {
    let rows = world.resource_mut::<Topology>().create_root();
    spawn(world, &rows);
    finish(world, 0, rows);
}

/// Applies `changes` to the patches of `level`; the children created stand in [`NewRows`], unfilled.
pub fn apply(world: &mut World, level: usize, changes: &Changes) {
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
    spawn(world, &created);
    finish(world, level + 1, created);
}

fn spawn(world: &mut World, rows: &[u32]) {
    for &row in rows {
        let topology = world.resource::<Topology>();
        let level = topology.level(row).expect("a new row is in use");
        let parent = topology.parent(row).map(|p| topology.entity(p));
        let place = (
            Level(level as u8),
            PatchIndex(topology.index(row)),
            PatchRow(row),
            Owner(0),
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
    let mut changes = world.resource_scope(|world, mut requests: Mut<RefineRequests>| {
        requests.decide(world.resource::<Topology>(), level)
    });
    if changes.refine.is_empty() && changes.coarsen.is_empty() {
        return;
    }
    if let Err(shortage) = memory::restrain(world, level, &mut changes) {
        world.resource_mut::<MemoryGuard>().shortage = Some(shortage);
        return;
    }
    apply(world, level, &changes);
    let operations = world.resource::<FieldRegistry>().operations();
    for field in &operations {
        (field.prolong)(world);
    }
}
