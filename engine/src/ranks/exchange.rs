//! What travels between ranks in the course of a step: values of copies, averages of children, fine fluxes.

use super::build::Shares;
use super::communicator::{Halo, Message};
use super::plan::{PeerRows, Plan};
use super::{Ranks, RanksError};
use crate::error::Error;
use crate::field::{FieldOperations, FieldRegistry};
use crate::mesh::Topology;
use crate::schedule::Phase;
use bevy_ecs::prelude::*;

/// What others must send before `phase` of `level` runs.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn before(world: &mut World, phase: Phase, level: usize) -> Result<(), Error> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    match phase {
        Phase::Advance | Phase::Flag => {
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
    if phase == Phase::Synchronise {
        send_averages(world, level)?;
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
    world.resource_scope(|world, mut shares: Mut<Shares>| {
        if std::mem::take(&mut shares.stale[level]) {
            send_rows(world, level, &shares.copies[level])?;
        }
        Ok(())
    })
}

/// The averages of children that another rank owns go to the owner of their parent.
fn send_averages(world: &mut World, level: usize) -> Result<(), Error> {
    world.resource_scope(|world, shares: Mut<Shares>| {
        send_rows(world, level, &shares.averages[level])
    })
}

/// Sends the present state of the rows of `plan`.
fn send_rows(world: &mut World, level: usize, plan: &Plan) -> Result<(), Error> {
    let fields = world.resource::<FieldRegistry>().operations();
    let bytes: usize = fields.iter().map(|field| (field.row_bytes)(world)).sum();
    let halo = plan.messages(bytes, |rows, out| pack(world, &fields, level, rows, out))?;
    let halo = finish(world, halo)?;
    for (PeerRows { rows, .. }, message) in plan.receives.iter().zip(&halo.receives) {
        unpack(world, &fields, level, rows, &message.bytes)?;
    }
    Ok(())
}

fn finish(world: &World, halo: Halo) -> Result<Halo, RanksError> {
    world
        .resource::<Ranks>()
        .communicator()
        .start(halo)?
        .finish()
}

/// Adds the present state of rows of `level` to `out`, field by field.
pub(super) fn pack(
    world: &World,
    fields: &[FieldOperations],
    level: usize,
    rows: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    for field in fields {
        (field.pack_rows)(world, level, rows, out)?;
    }
    Ok(())
}

/// Sets the present state of rows of `level` from what [`pack`] gave.
pub(super) fn unpack(
    world: &mut World,
    fields: &[FieldOperations],
    level: usize,
    rows: &[u32],
    mut bytes: &[u8],
) -> Result<(), Error> {
    for field in fields {
        let own = rows.len() * (field.row_bytes)(world);
        let Some((values, rest)) = bytes.split_at_checked(own) else {
            let short = RanksError::Transport("a message with rows is too short".into());
            return Err(short.into());
        };
        (field.unpack_rows)(world, level, rows, values)?;
        bytes = rest;
    }
    Ok(())
}

/// The fluxes through faces of own fine patches go to the rank that owns the coarse patch of `level` before them.
fn send_fluxes(world: &mut World, level: usize) -> Result<(), Error> {
    world.resource_scope(|world, shares: Mut<Shares>| {
        let fields = world.resource::<FieldRegistry>().operations();
        let plan = &shares.faces[level];
        let bytes: usize = fields.iter().map(|field| (field.face_bytes)(world)).sum();
        let mut halo = Halo::default();
        for (peer, faces) in &plan.sends {
            let mut message = Message {
                peer: *peer,
                bytes: Vec::with_capacity(faces.len() * bytes),
            };
            for field in &fields {
                (field.pack_faces)(world, level, faces, &mut message.bytes)?;
            }
            halo.sends.push(message);
        }
        halo.receives
            .extend(plan.receives.iter().map(|(peer, faces)| Message {
                peer: *peer,
                bytes: vec![0; faces.len() * bytes],
            }));
        let halo = finish(world, halo)?;
        for ((_, faces), message) in plan.receives.iter().zip(&halo.receives) {
            let mut bytes = message.bytes.as_slice();
            for field in &fields {
                let (own, rest) = bytes.split_at(faces.len() * (field.face_bytes)(world));
                (field.unpack_faces)(world, level, faces, own)?;
                bytes = rest;
            }
        }
        Ok(())
    })
}
