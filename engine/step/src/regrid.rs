//! Changes of the hierarchy, applied to entities, tables, pools and registers; systems that synchronise a level with
//! the finer one.

use super::memory::{MemoryDecision, MemoryGuard};
use super::{Error, Settings, Write, memory};
use bevy_ecs::prelude::*;
use nestar_engine_comm as comm;
use nestar_engine_comm::{RanksError, exchange};
use nestar_engine_data::operators::RepairedOnHost;
use nestar_engine_data::{FaultBox, Field, FieldSpec, Stores};
use nestar_engine_mesh::{Changes, LevelClock, NewRows};

/// Creates the root grid: tables, entities and rows. [`NewRows`] lists the rows; errors go to [`FaultBox`].
pub fn create_root(world: &mut World) {
    let created = comm::regrid::create_root(world);
    report(world, created);
}

/// Applies `changes` to the patches of `level`. [`NewRows`] lists the new, unfilled children; errors go to
/// [`FaultBox`]. Collective; each rank passes the changes of its own patches.
pub fn apply(world: &mut World, level: usize, changes: &Changes) {
    let imbalance = world.resource::<Settings>().run.imbalance;
    let applied = comm::regrid::apply_changes(world, level, changes, imbalance);
    report(world, applied);
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
    if comm::regrid::is_faulty(world)? {
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
    let mut changes = comm::regrid::decide(world, level)?;
    edit(&mut changes);
    Ok(memory::limit_to_memory(world, level, changes)?)
}

/// Restriction: averages children into covered cells, or into the halo copy of a parent on another rank.
///
/// # Errors
/// The device fails.
pub fn restrict<F: Field>(
    mut field: Write<F>,
    mut repaired: ResMut<RepairedOnHost>,
) -> Result<(), Error> {
    repaired.0.averages += field.restrict()?;
    Ok(())
}

/// Sends averages in halo copies, and fine fluxes and circulations at borders between ranks, to the owners of the coarse
/// patches.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn exchange_averages_and_fluxes(world: &mut World) -> Result<(), RanksError> {
    let level = world.resource::<LevelClock>().level;
    exchange::send_averages_and_fluxes(world, level)
}

/// Makes values on patch boundaries equal to those of one patch: a refined one, else the first.
///
/// # Errors
/// The device fails; the halo is stale.
pub fn share<F: Field>(mut field: Write<F, 1>) -> Result<(), Error> {
    field.share()
}

/// Flux correction: replaces coarse fluxes by fine ones in cells at coarse-fine faces, or coarse circulations by fine ones.
///
/// # Errors
/// The device fails.
pub fn correct<F: Field>(
    mut field: Write<F>,
    mut repaired: ResMut<RepairedOnHost>,
) -> Result<(), Error> {
    repaired.0.corrections += field.correct()?;
    Ok(())
}
