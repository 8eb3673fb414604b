//! Moves components of patches between ranks, with moving patches and to new children.
//!
//! Nothing is exchanged unless a plugin has registered such components.

use super::communicator::Message;
use super::departures::departures;
use super::{Ranks, RanksError};
use crate::mesh::patch_component::{PatchComponentValues, PatchComponents};
use crate::mesh::topology::octet::Octet;
use crate::mesh::{Changes, Topology};
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;

pub(super) fn exchange(
    world: &World,
    messages: BTreeMap<usize, Vec<u8>>,
) -> Result<Vec<Message>, RanksError> {
    let message = |(peer, bytes)| Message { peer, bytes };
    let messages = messages.into_iter().map(message).collect();
    world.resource::<Ranks>().communicator().exchange(messages)
}

/// Sends carried components to the new owners of their patches after `fine` was repartitioned. Collective.
///
/// Sends those of departing octets of `before`, and those that children inherit from own coarse patches refined by
/// `changes`. Returns the received components by patch key.
///
/// # Errors
/// Another rank or the transport has failed.
pub(super) fn send(
    world: &World,
    fine: usize,
    before: &[Octet],
    changes: &Changes,
) -> Result<PatchComponentValues, RanksError> {
    let mut received = PatchComponentValues::default();
    if world.resource::<PatchComponents>().kinds().is_empty() {
        return Ok(received);
    }
    let topology = world.resource::<Topology>();
    let mut values: BTreeMap<usize, PatchComponentValues> = BTreeMap::new();
    for (peer, octet, patches) in departures(topology, fine, before) {
        let patch = |row| (topology.key(row), topology.entity(row));
        let patches: Vec<_> = octet.rows(patches).map(patch).collect();
        let leaving = PatchComponentValues::of(world, &patches, false);
        values.entry(peer).or_default().append(leaving);
    }
    for &row in &changes.refine {
        let (key, parent) = (topology.key(row), topology.entity(row));
        let children: Vec<_> = (0..8).map(|child| (key << 3 | child, parent)).collect();
        let inherited = PatchComponentValues::of(world, &children, true);
        values
            .entry(topology.partition().owner(fine, key << 3))
            .or_default()
            .append(inherited);
    }
    let messages = values
        .iter()
        .map(|(&peer, values)| (peer, values.to_bytes()));
    for message in exchange(world, messages.collect())? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        received.append(PatchComponentValues::from_bytes(&message.bytes).ok_or_else(broken)?);
    }
    Ok(received)
}

/// Attaches components returned by [`send`] to own patches of `level`.
///
/// # Errors
/// A component rejects its bytes.
pub(super) fn attach(
    world: &mut World,
    level: usize,
    values: &PatchComponentValues,
) -> Result<(), RanksError> {
    let find = |world: &World, key: u64| {
        let topology = world.resource::<Topology>();
        let octet = topology.octet(level, key >> 3)?;
        let mut own = octet.rows(octet.owned);
        let row = own.find(|&row| topology.key(row) == key)?;
        Some(topology.entity(row))
    };
    values.attach(world, find).map_err(RanksError::Transport)
}
