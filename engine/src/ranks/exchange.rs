//! What travels between ranks in the course of a step: values of copies, averages of children, fine fluxes.

use super::build::Shares;
use super::halos::{Halos, Kind};
use super::{Ranks, RanksError};
use crate::field::{Correct, FieldOperations, FieldRegistry, FieldSpec, Restrict};
use crate::mesh::{NewRows, Topology};
use crate::step::Phase;
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::Centring;

/// What others must send before `phase` of `level` runs. Before `Advance` the copies of fields that settle in their step are
/// sent on their way only.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn before(world: &mut World, phase: Phase, level: usize) -> Result<(), RanksError> {
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
            refresh_parents(world, level)?;
            send_fluxes(world, level)
        }
        Phase::Split => refresh(world, level),
        Phase::Ready | Phase::Aligned => {
            let coarsest = level.saturating_sub(usize::from(phase == Phase::Ready));
            let finest = match phase {
                Phase::Ready => level,
                _ => world.resource::<Topology>().finest(),
            };
            (coarsest..=finest).try_for_each(|level| refresh(world, level))
        }
        Phase::Initialise | Phase::Limit | Phase::Regrid => Ok(()),
    }
}

/// What others must know after `phase` of `level` has run.
///
/// # Errors
/// As [`before`].
pub fn after(world: &mut World, phase: Phase, level: usize) -> Result<(), RanksError> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    match phase {
        // what no system has settled
        Phase::Advance => settle(world)?,
        Phase::Synchronise => carry(world, &[(level, Kind::Averages)], |_, spec| averaged(spec))?,
        _ => {}
    }
    let mut shares = world.resource_mut::<Shares>();
    match phase {
        Phase::Initialise | Phase::Ready | Phase::Split | Phase::Advance | Phase::Synchronise => {
            shares.stale[level] = true;
        }
        Phase::Aligned => shares.stale[level..].fill(true),
        Phase::Limit | Phase::Flag | Phase::Regrid => {}
    }
    Ok(())
}

/// Brings the copies of `level` up to date, if its values have changed since: the present state of all fields.
///
/// # Errors
/// As [`before`].
pub fn refresh(world: &mut World, level: usize) -> Result<(), RanksError> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    let stale = take_stale(world, level);
    let partial = world.resource_mut::<Halos>().replace_partial(level, false);
    match stale || partial {
        true => carry(world, &[(level, Kind::Copies)], |_, spec| spec.is_copied()),
        false => Ok(()),
    }
}

/// Where fields lie on faces: marks the new patches, those of other ranks too, and brings the copies of the others of their
/// level up to date, whose faces the new ones take.
///
/// # Errors
/// As [`before`].
pub fn mark_new(world: &mut World) -> Result<(), RanksError> {
    let on_faces = |spec: &FieldSpec| spec.centring == Centring::Face;
    if FieldRegistry::of(world, on_faces).is_empty() {
        return Ok(());
    }
    let topology = world.resource::<Topology>();
    let (shared, mut marks) = (topology.is_shared(), vec![0; topology.capacity()]);
    let new = world.resource::<NewRows>();
    new.rows.iter().for_each(|&row| marks[row as usize] = 1);
    let level = new.level;
    if shared {
        let own = marks.clone();
        let plan = &world.resource::<Shares>().copies[level];
        let ranks = world.resource::<Ranks>().communicator();
        plan.forward(
            ranks,
            |row| own[row as usize],
            |row, new| marks[row as usize] = new,
        )?;
        carry(world, &[(level, Kind::Copies)], |_, spec| on_faces(spec))?;
    }
    world.resource_mut::<NewRows>().marks = marks;
    Ok(())
}

/// After a restriction of `level`: gives faces that patches of it share to one of them.
///
/// # Errors
/// As [`before`].
pub fn share(world: &mut World, level: usize) -> Result<(), RanksError> {
    let fields = operations(world, |_, spec| {
        spec.centring == Centring::Face && spec.restrict != Restrict::None
    });
    if fields.is_empty() {
        return Ok(());
    }
    refresh(world, level)?;
    for field in fields {
        (field.share)(world, level);
    }
    if world.resource::<Topology>().is_shared() {
        world.resource_mut::<Shares>().stale[level] = true;
    }
    Ok(())
}

/// Brings the copies up to date whose children this rank owns: where an average is unphysical, a cell keeps its state.
fn refresh_parents(world: &mut World, level: usize) -> Result<(), RanksError> {
    carry(world, &[(level, Kind::Parents)], |_, spec| averaged(spec))
}

/// Whether children's values go into those of their parents.
fn averaged(spec: &FieldSpec) -> bool {
    spec.restrict != Restrict::None
}

/// Whether copies of `level` are out of date; they count as up to date from now on.
fn take_stale(world: &mut World, level: usize) -> bool {
    std::mem::take(&mut world.resource_mut::<Shares>().stale[level])
}

/// Brings the copies that a step of `level` reads up to date, or on their way.
fn start(world: &mut World, level: usize) -> Result<(), RanksError> {
    let mut stale = Vec::with_capacity(2);
    stale.extend([Some(level), level.checked_sub(1)].into_iter().flatten());
    stale.retain(|&level| take_stale(world, level));
    let of = |kind| stale.iter().map(|&level| (level, kind)).collect::<Vec<_>>();
    carry(world, &of(Kind::Copies), |field, spec| {
        field.settles_in_step.is_none() && spec.is_copied()
    })?;
    let fields = operations(world, |field, _| field.settles_in_step.is_some());
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        for &level in &stale {
            halos.replace_partial(level, !fields.is_empty());
        }
        halos.start(world, &of(Kind::Layers), &fields)
    })
}

/// Lets everything settle that is under way.
fn settle(world: &mut World) -> Result<(), RanksError> {
    world.resource_scope(|world, mut halos: Mut<Halos>| halos.settle_all(world))
}

/// Sends the present state of some fields in rows of some levels, and waits for what comes.
fn carry(
    world: &mut World,
    levels: &[(usize, Kind)],
    which: impl Fn(&FieldOperations, &FieldSpec) -> bool,
) -> Result<(), RanksError> {
    let fields = operations(world, which);
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.start(world, levels, &fields)?;
        halos.settle_all(world)
    })
}

fn operations(
    world: &World,
    which: impl Fn(&FieldOperations, &FieldSpec) -> bool,
) -> Vec<FieldOperations> {
    let mut fields = world.resource::<FieldRegistry>().operations();
    fields.retain(|field| which(field, (field.spec)(world)));
    fields
}

/// The fluxes through faces of own fine patches go to the rank that owns the coarse patch of `level` before them.
fn send_fluxes(world: &mut World, level: usize) -> Result<(), RanksError> {
    let fields = operations(world, |_, spec| spec.correct == Correct::Fluxes);
    if fields.is_empty() {
        return Ok(());
    }
    world.resource_scope(|world, mut halos: Mut<Halos>| halos.carry_faces(world, level, &fields))
}
