//! What travels between ranks in the course of a step: copies of others' patches, averages of children, fine fluxes.

use super::halo::{ExchangeKind, HaloRequest, Halos, Transport};
use super::hierarchy::ExchangePlans;
use super::{Ranks, RanksError};
use crate::data::store::{self, LevelBank, Store};
use crate::data::{Correct, Restrict, StoreRef, Stores};
use crate::mesh::{NewRows, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::Centring;

/// Brings the copies of `fields` up to date that gathers on `level` read, as deep as anything reads them.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn refresh_halo(
    world: &mut World,
    level: usize,
    fields: &[StoreRef],
) -> Result<(), RanksError> {
    if world.resource::<Topology>().is_shared() {
        let mut requests = Vec::new();
        for (n, operations) in fields.iter().enumerate() {
            let field = operations.of(world);
            let stale = store::stale_banks(field, level, operations.depth);
            requests.extend(stale.map(|at| HaloRequest {
                field: n,
                at,
                kind: ExchangeKind::Layers(operations.depth),
            }));
        }
        exchange_now(world, &requests, fields)?;
    }
    for operations in fields {
        store::mark_refreshed(operations.of_mut(world), level, operations.depth);
    }
    Ok(())
}

/// Sends the averages of children to the owners of their parents, and the fluxes through faces of own fine patches to the ranks
/// that own the coarse patches before them: all fields, in one message to each peer.
///
/// # Errors
/// As [`refresh_halo`].
pub fn send_averages_and_fluxes(world: &mut World, level: usize) -> Result<(), RanksError> {
    if !world.resource::<Topology>().is_shared() {
        return Ok(());
    }
    let fields = world.resource::<Stores>().all();
    let (mut requests, mut averaged) = (Vec::with_capacity(2 * fields.len()), Vec::new());
    for (field, operations) in fields.iter().enumerate() {
        let at = operations.of(world).present_bank(level);
        let spec = operations.of(world).spec();
        if spec.restrict != Restrict::None {
            let kind = ExchangeKind::Averages;
            requests.push(HaloRequest { field, at, kind });
            averaged.push((field, at));
        }
        if spec.correct == Correct::Fluxes {
            let (bank, kind) = (LevelBank::REGISTERS, ExchangeKind::Faces);
            let at = LevelBank { level, bank };
            requests.push(HaloRequest { field, at, kind });
        }
    }
    exchange_now(world, &requests, &fields)?;
    // on all ranks, also where no averages have come
    for (field, at) in averaged {
        fields[field].of_mut(world).set_valid_layers(at, 0);
    }
    Ok(())
}

/// Where fields lie on faces: marks the new patches, those of other ranks too, and brings the copies of the others of their
/// level up to date, whose faces the new ones take.
///
/// # Errors
/// As [`refresh_halo`].
pub fn mark_new_patches(world: &mut World) -> Result<(), RanksError> {
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
        let plan = &world.resource::<ExchangePlans>().halo[level];
        let ranks = world.resource::<Ranks>().communicator();
        plan.forward(
            ranks,
            |row| own[row as usize],
            |row, new| marks[row as usize] = new,
        )?;
    }
    world.resource_mut::<NewRows>().marks = marks;
    refresh_halo(world, level, &on_faces)
}

/// Exchanges what `requests` ask for, and waits for it.
fn exchange_now(
    world: &mut World,
    requests: &[HaloRequest],
    fields: &[StoreRef],
) -> Result<(), RanksError> {
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
