//! What travels between ranks in the course of a step: values of copies, averages of children, fine fluxes.

use super::build::Shares;
use super::halos::{Halos, Kind};
use crate::error::Error;
use crate::field::{FieldOperations, FieldRegistry};
use crate::mesh::Topology;
use crate::schedule::Phase;
use bevy_ecs::prelude::*;

/// What others must send before `phase` of `level` runs. Before `Advance` the copies of fields that settle in their step are
/// sent on their way only.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn before(world: &mut World, phase: Phase, level: usize) -> Result<(), Error> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    match phase {
        Phase::Advance => start(world, level),
        Phase::Flag => {
            refresh(world, level)?;
            level
                .checked_sub(1)
                .map_or(Ok(()), |below| refresh(world, below))
        }
        Phase::Synchronise => {
            refresh(world, level)?;
            send_fluxes(world, level)
        }
        Phase::Initialise | Phase::Limit | Phase::Regrid => Ok(()),
    }
}

/// What others must know after `phase` of `level` has run.
///
/// # Errors
/// As [`before`].
pub fn after(world: &mut World, phase: Phase, level: usize) -> Result<(), Error> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    match phase {
        // what no system has settled
        Phase::Advance => settle(world)?,
        Phase::Synchronise => carry(world, &[(level, Kind::Averages)], |_| true)?,
        _ => {}
    }
    if matches!(
        phase,
        Phase::Initialise | Phase::Advance | Phase::Synchronise
    ) {
        world.resource_mut::<Shares>().stale[level] = true;
    }
    Ok(())
}

/// Brings the copies of `level` up to date, if its values have changed since: the present state of all fields.
///
/// # Errors
/// As [`before`].
pub fn refresh(world: &mut World, level: usize) -> Result<(), Error> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    match take_stale(world, level) {
        true => carry(world, &[(level, Kind::Copies)], |_| true),
        false => Ok(()),
    }
}

/// Whether copies of `level` are out of date; they count as up to date from now on.
fn take_stale(world: &mut World, level: usize) -> bool {
    std::mem::take(&mut world.resource_mut::<Shares>().stale[level])
}

/// Brings the copies that a step of `level` reads up to date, or on their way.
fn start(world: &mut World, level: usize) -> Result<(), Error> {
    let mut levels = Vec::with_capacity(2);
    for level in [Some(level), level.checked_sub(1)].into_iter().flatten() {
        if take_stale(world, level) {
            levels.push((level, Kind::Copies));
        }
    }
    carry(world, &levels, |field| !field.settles_in_step)?;
    let fields = operations(world, |field| field.settles_in_step);
    world.resource_scope(|world, mut halos: Mut<Halos>| halos.start(world, &levels, &fields))
}

/// Lets everything settle that is under way.
fn settle(world: &mut World) -> Result<(), Error> {
    world.resource_scope(|world, mut halos: Mut<Halos>| halos.settle_all(world))
}

/// Sends the present state of some fields in rows of some levels, and waits for what comes.
fn carry(
    world: &mut World,
    levels: &[(usize, Kind)],
    which: impl Fn(&FieldOperations) -> bool,
) -> Result<(), Error> {
    let fields = operations(world, which);
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.start(world, levels, &fields)?;
        halos.settle_all(world)
    })
}

fn operations(world: &World, which: impl Fn(&FieldOperations) -> bool) -> Vec<FieldOperations> {
    let mut fields = world.resource::<FieldRegistry>().operations();
    fields.retain(which);
    fields
}

/// The fluxes through faces of own fine patches go to the rank that owns the coarse patch of `level` before them.
fn send_fluxes(world: &mut World, level: usize) -> Result<(), Error> {
    let fields = operations(world, |_| true);
    world.resource_scope(|world, mut halos: Mut<Halos>| halos.carry_faces(world, level, &fields))
}
