//! Exchanges of a step: halo patches, averages of children, fluxes of fine faces and circulations along fine edges.

use super::halo::{ExchangeKind, HaloRequest, Halos, Transport};
use super::hierarchy::ExchangePlans;
use super::{Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_engine_data::store::{self, LevelBank, Store};
use nestar_engine_data::{Correct, Restrict, StoreRef, Stores};
use nestar_engine_mesh::{NewRows, Topology};
use nestar_kernels::mesh::Centring;

/// Updates the halo of `fields` for gathers on `level`, up to the halo width of each field.
///
/// # Errors
/// Another rank, the transport or the device has failed.
pub fn refresh_halo(
    world: &mut World,
    level: usize,
    fields: &[StoreRef],
) -> Result<(), RanksError> {
    if world.resource::<ExchangePlans>().has_halo(level) {
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

/// Sends averages of children and the registers of fine patches to the owners of the coarse patches.
///
/// All fields share one message for each peer.
///
/// # Errors
/// As [`refresh_halo`].
pub fn send_averages_and_fluxes(world: &mut World, level: usize) -> Result<(), RanksError> {
    let plans = world.resource::<ExchangePlans>();
    if plans.has_averages_or_fluxes(level) {
        let fields = world.resource::<Stores>().all();
        let requests = averages_and_fluxes(world, level, &fields);
        exchange_now(world, &requests, &fields)?;
    }
    // On all ranks, also without received averages.
    for n in 0..world.resource::<Stores>().list().len() {
        let operations = world.resource::<Stores>().list()[n];
        let field = operations.of_mut(world);
        if field.spec().restrict != Restrict::None {
            let at = field.present_bank(level);
            field.set_valid_layers(at, 0);
        }
    }
    Ok(())
}

/// Returns the requests for averages and registers of `level`.
fn averages_and_fluxes(world: &World, level: usize, fields: &[StoreRef]) -> Vec<HaloRequest> {
    let mut requests = Vec::with_capacity(2 * fields.len());
    for (field, operations) in fields.iter().enumerate() {
        let store = operations.of(world);
        if store.spec().restrict != Restrict::None {
            let (at, kind) = (store.present_bank(level), ExchangeKind::Averages);
            requests.push(HaloRequest { field, at, kind });
        }
        let (bank, kind) = match store.spec().correct {
            Correct::Fluxes => (LevelBank::REGISTERS, ExchangeKind::Faces),
            Correct::Circulations => (LevelBank::CIRCULATIONS, ExchangeKind::Edges),
            Correct::None => continue,
        };
        let at = LevelBank { level, bank };
        requests.push(HaloRequest { field, at, kind });
    }
    requests
}

/// Marks the new patches of all ranks and updates the halo of face-centred fields on their level.
///
/// New patches take the values on shared faces from their neighbours.
///
/// # Errors
/// As [`refresh_halo`].
pub fn mark_new_patches(world: &mut World) -> Result<(), RanksError> {
    let on_faces = Stores::of(world, |spec| spec.centring == Centring::Face);
    if on_faces.is_empty() {
        return Ok(());
    }
    let mut marks = vec![0; world.resource::<Topology>().capacity()];
    let NewRows { rows, level, .. } = world.resource::<NewRows>();
    let level = *level;
    rows.iter().for_each(|&row| marks[row as usize] = 1);
    let mut received = Vec::new();
    let plan = &world.resource::<ExchangePlans>().halo[level];
    let ranks = world.resource::<Ranks>().communicator();
    let mark = |row: u32| marks[row as usize];
    plan.forward(ranks, mark, |row, new| received.push((row, new)))?;
    for (row, new) in received {
        marks[row as usize] = new;
    }
    world.resource_mut::<NewRows>().marks = marks;
    refresh_halo(world, level, &on_faces)
}

/// Runs an exchange of all `requests` to its end.
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
