//! What travels between ranks in the course of a step: copies of others' patches, averages of children, fine fluxes.

use super::build::Shares;
use super::halos::{Halos, Request, Transport, What};
use super::{Ranks, RanksError};
use crate::field::store::{self, BankOf, Store};
use crate::field::{Correct, Restrict, StoreRef, Stores};
use crate::mesh::{NewRows, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::Centring;

/// Brings the copies of `fields` up to date that gathers on `level` read, as deep as anything reads them.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn refresh(world: &mut World, level: usize, fields: &[StoreRef]) -> Result<(), RanksError> {
    if world.resource::<Topology>().is_shared() {
        let mut requests = Vec::new();
        for (n, operations) in fields.iter().enumerate() {
            let field = operations.of(world);
            let stale = store::stale(field, level, operations.depth);
            requests.extend(stale.map(|at| Request {
                field: n,
                at,
                what: What::Layers(operations.depth),
            }));
        }
        carry(world, &requests, fields)?;
    }
    for operations in fields {
        store::refreshed(operations.of_mut(world), level, operations.depth);
    }
    Ok(())
}

/// Sends the averages of children to the owners of their parents, and the fluxes through faces of own fine patches to the ranks
/// that own the coarse patches before them: all fields, in one message to each peer.
///
/// # Errors
/// As [`refresh`].
pub fn averages_and_fluxes(world: &mut World, level: usize) -> Result<(), RanksError> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    let fields = world.resource::<Stores>().all();
    let (mut requests, mut averaged) = (Vec::with_capacity(2 * fields.len()), Vec::new());
    for (field, operations) in fields.iter().enumerate() {
        let at = operations.of(world).present_bank(level);
        let spec = operations.of(world).spec();
        if spec.restrict != Restrict::None {
            let what = What::Averages;
            requests.push(Request { field, at, what });
            averaged.push((field, at));
        }
        if spec.correct == Correct::Fluxes {
            let (bank, what) = (BankOf::REGISTERS, What::Faces);
            let at = BankOf { level, bank };
            requests.push(Request { field, at, what });
        }
    }
    carry(world, &requests, &fields)?;
    // on all ranks, also where no averages have come
    for (field, at) in averaged {
        fields[field].of_mut(world).set_fresh(at, 0);
    }
    Ok(())
}

/// Where fields lie on faces: marks the new patches, those of other ranks too, and brings the copies of the others of their
/// level up to date, whose faces the new ones take.
///
/// # Errors
/// As [`refresh`].
pub fn mark_new(world: &mut World) -> Result<(), RanksError> {
    let on_faces = Stores::of(world, |spec| spec.centring == Centring::Face);
    if on_faces.is_empty() {
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
    }
    world.resource_mut::<NewRows>().marks = marks;
    refresh(world, level, &on_faces)
}

/// Exchanges what `requests` ask for, and waits for it.
fn carry(world: &mut World, requests: &[Request], fields: &[StoreRef]) -> Result<(), RanksError> {
    if requests.is_empty() {
        return Ok(());
    }
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        let read: Vec<&dyn Store> = fields.iter().map(|f| f.of(world)).collect();
        let transport = Transport::of(world);
        halos.exchange(&transport, requests, &read)?;
        halos.unpack(|n, set| set(fields[n].of_mut(world)))?;
        Ok(())
    })
}
