//! Changes of the hierarchy: applies one list of changes to entities, tables, pools and registers.

use super::memory::{self, MemoryDecision, MemoryGuard};
use super::{Error, Settings};
use bevy_ecs::prelude::*;
use nestar_engine_comm::{self as comm, Ranks};
use nestar_engine_data::new_patches::enter;
use nestar_engine_data::{FaultBox, FieldSpec, Stores};
use nestar_engine_mesh::patch_component::{PatchComponentValues, PatchComponents};
use nestar_engine_mesh::{Changes, LevelClock, NewRows, Topology};

/// Creates the root grid: tables, entities and rows. [`NewRows`] lists the rows; errors go to [`FaultBox`].
pub fn create_root(world: &mut World) {
    if !world.resource::<Ranks>().is_single() {
        let created = comm::regrid::create_root(world);
        return report(world, created);
    }
    let rows = world.resource_mut::<Topology>().create_root();
    enter(world, 0, rows);
}

/// Applies `changes` to the patches of `level`. [`NewRows`] lists the new, unfilled children; errors go to
/// [`FaultBox`]. Collective; each rank passes the changes of its own patches.
pub fn apply(world: &mut World, level: usize, changes: &Changes) {
    if !world.resource::<Ranks>().is_single() {
        let imbalance = world.resource::<Settings>().run.imbalance;
        let applied = comm::regrid::apply_changes(world, level, changes, imbalance);
        return report(world, applied);
    }
    let inherited = inherited(world, &changes.refine);
    let topology = world.resource::<Topology>();
    let coarsened = changes.coarsen.iter();
    let children = coarsened.filter_map(|&row| topology.first_child(row));
    let rows: Vec<u32> = children.flat_map(|first| first..first + 8).collect();
    let gone: Vec<Entity> = rows.iter().map(|&row| topology.entity(row)).collect();
    let mut displaced = comm::Displaced::default();
    displaced.detach(world, level + 1, changes, |topology| {
        let patch = |&row: &u32| (row, topology.index(row));
        rows.iter().map(patch).collect()
    });
    let mut topology = world.resource_mut::<Topology>();
    let created = topology.change(level, &changes.refine, &changes.coarsen);
    for entity in gone {
        world.despawn(entity);
    }
    enter(world, level + 1, created);
    if world.resource::<FaultBox>().has_fault() {
        return;
    }
    let settled = displaced.reinsert(world);
    report(world, settled);
    let child = |world: &World, place: u64| {
        let topology = world.resource::<Topology>();
        let first = topology.first_child((place >> 3) as u32)?;
        Some(topology.entity(first + (place & 7) as u32))
    };
    let attached = inherited.attach(world, child).map_err(Error::Setup);
    report(world, attached);
}

/// Returns the components that children inherit, keyed by eight times the parent's row plus the child number.
fn inherited(world: &World, parents: &[u32]) -> PatchComponentValues {
    if world.resource::<PatchComponents>().kinds().is_empty() {
        return PatchComponentValues::default();
    }
    let topology = world.resource::<Topology>();
    let children = |&row: &u32| {
        let parent = topology.entity(row);
        (0..8).map(move |child| (u64::from(row) << 3 | child, parent))
    };
    let children: Vec<_> = parents.iter().flat_map(children).collect();
    PatchComponentValues::of(world, &children, true)
}

/// Stores an error for the run.
fn report(world: &mut World, result: Result<(), impl Into<Error>>) {
    if let Err(error) = result {
        world.resource::<FaultBox>().fail(error.into());
    }
}

/// Regrids `level` by its requests within the memory limits and interpolates the new patches: the system
/// `Regrid: Refine`. [`NewRows`] lists the new patches.
pub fn refine(world: &mut World) {
    *world.resource_mut::<NewRows>() = NewRows::default();
    let level = world.resource::<LevelClock>().level;
    let refined = try_refine(world, level);
    report(world, refined);
}

fn try_refine(world: &mut World, level: usize) -> Result<(), Error> {
    let Some(changes) = changes(world, level, |_| ())? else {
        let imbalance = world.resource::<Settings>().run.imbalance;
        return Ok(comm::regrid::rebalance(world, level, imbalance)?);
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(shortage) => {
            world.resource_mut::<MemoryGuard>().shortage = Some(shortage);
            return Ok(());
        }
    };
    apply(world, level, &changes);
    if world.resource::<FaultBox>().has_fault() {
        return Ok(());
    }
    let operations = world.resource::<Stores>().all();
    // new patches are interpolated from the neighbourhood of their parents
    let copied = Stores::of(world, FieldSpec::reads_surroundings);
    comm::exchange::refresh_halo(world, level, &copied)?;
    comm::exchange::mark_new_patches(world)?;
    for field in &operations {
        field.fill(world);
    }
    Ok(())
}

/// Returns the changes that the requests of `level`, `edit` and the memory limits allow; `None` if no rank
/// changes anything.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(crate) fn changes(
    world: &mut World,
    level: usize,
    edit: impl FnOnce(&mut Changes),
) -> Result<MemoryDecision, Error> {
    let mut changes = comm::nesting::decide(world, level)?;
    edit(&mut changes);
    Ok(memory::limit_to_memory(world, level, changes)?)
}
