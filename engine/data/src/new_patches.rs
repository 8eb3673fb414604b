//! Creates entities and rows for new patches.

use super::device::DeviceTopology;
use super::failure::FaultBox;
use super::particle_set::ParticleKinds;
use super::stores::Stores;
use bevy_ecs::prelude::*;
use nestar_engine_mesh::{
    Level, Levels, NewRows, Owner, Parent, PatchIndex, PatchRow, RefineRequests, RefinementFlags,
    Topology,
};

/// Spawns entities for the new rows of `level`, and for patches from other ranks if there are `arrivals`. Adapts all
/// data indexed by rows.
pub fn enter(world: &mut World, level: usize, new: Vec<u32>, arrivals: bool) {
    match arrivals {
        true => {
            let topology = world.resource::<Topology>();
            let unspawned = |row: &u32| topology.entity(*row) == Entity::PLACEHOLDER;
            let rows = topology.rows(level).iter().copied().filter(unspawned);
            spawn(world, &rows.collect::<Vec<_>>());
        }
        false => spawn(world, &new),
    }
    adapt_row_data(world, level, new);
}

/// Updates the parent entities of patches of `level` on this rank. A parent's entity is despawned when the parent
/// migrates.
pub fn renew_parents(world: &mut World, level: usize) {
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

/// Returns the entity of the parent of `row`; a halo patch has none.
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
            RefinementFlags::default(),
        );
        let entity = match parent {
            Some(parent) => world.spawn((place, Parent(parent))).id(),
            None => world.spawn(place).id(),
        };
        world.resource_mut::<Topology>().set_entity(row, entity);
    }
}

/// Adapts all data indexed by rows to the new tables.
fn adapt_row_data(world: &mut World, level: usize, rows: Vec<u32>) {
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
    let operations = world.resource::<Stores>().all();
    for field in &operations {
        field.on_regrid(world, level, &rows);
    }
    for items in world.resource::<ParticleKinds>().all() {
        items.resize_rows(world);
    }
    let mut new = world.resource_mut::<NewRows>();
    new.level = level;
    new.rows = rows;
}

/// Updates the tables on the device, if there are any. Returns `true` if the run can continue.
fn update_tables(world: &mut World, level: usize, new: &[u32]) -> bool {
    if !world.contains_resource::<DeviceTopology>() {
        return true;
    }
    world.resource_scope(|world, mut tables: Mut<DeviceTopology>| {
        let updated = tables.update(world.resource::<Topology>(), level, new);
        world.resource::<FaultBox>().check(updated)
    })
}
