//! Components of patches between ranks: those that go with patches that move or with new children, and costs, which the balance
//! reads. Nothing is exchanged where no plugin has registered any.

use super::communicator::Message;
use super::{Ranks, RanksError};
use crate::mesh::carried::{CarriedComponents, CarriedValues};
use crate::mesh::topology::octet::Octet;
use crate::mesh::{Changes, Cost, Topology};
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;

/// Whether the balance asks for costs.
pub(super) fn has_costs(world: &World) -> bool {
    world.resource::<CarriedComponents>().has::<Cost>()
}

/// The work of those children of own patches of `level` that have a [`Cost`]: by their parents' keys, ascending. `before` are
/// the own octets of the finer level, `changes` those of own patches. All ranks call this.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(super) fn costs(
    world: &World,
    level: usize,
    before: &[Octet],
    changes: &Changes,
) -> Result<Vec<(u64, u64)>, RanksError> {
    if !has_costs(world) {
        return Ok(Vec::new());
    }
    let topology = world.resource::<Topology>();
    let work = |row: u32| Some(world.get::<Cost>(topology.entity(row))?.work());
    let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for octet in before {
        let patches: Vec<Option<u64>> = octet.rows(octet.owned).map(work).collect();
        if patches.iter().any(Option::is_some) {
            let sum: u64 = patches.iter().map(|work| work.unwrap_or(Cost::ONE)).sum();
            let peer = topology.cuts().owner(level, octet.key);
            let message = messages.entry(peer).or_default();
            message.extend([octet.key, sum].into_iter().flat_map(u64::to_le_bytes));
        }
    }
    let received = exchange(world, messages)?;
    let words = |message: &Message| bytemuck::pod_collect_to_vec::<u8, u64>(&message.bytes);
    let words: Vec<u64> = received.iter().flat_map(words).collect();
    let told = words.as_chunks().0.iter().map(|&[key, work]| (key, work));
    let new = changes.refine.iter();
    let new = new.filter_map(|&row| Some((topology.key(row), 8 * work(row)?)));
    let mut costs: Vec<(u64, u64)> = told.chain(new).collect();
    costs.sort_unstable();
    Ok(costs)
}

fn exchange(world: &World, messages: BTreeMap<usize, Vec<u8>>) -> Result<Vec<Message>, RanksError> {
    let message = |(peer, bytes)| Message { peer, bytes };
    let messages = messages.into_iter().map(message).collect();
    world.resource::<Ranks>().communicator().exchange(messages)
}

/// Sends carried components to the ranks that own their patches once the level finer than `level` is cut anew: those of the
/// octets of `before` that leave, and what children inherit from own patches that `changes` refines. Returns what comes, by the
/// patches' keys. All ranks call this.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(super) fn carry(
    world: &World,
    level: usize,
    before: &[Octet],
    changes: &Changes,
) -> Result<CarriedValues, RanksError> {
    let mut received = CarriedValues::default();
    if world.resource::<CarriedComponents>().kinds().is_empty() {
        return Ok(received);
    }
    let topology = world.resource::<Topology>();
    let owner = |key: u64| topology.cuts().owner(level + 1, key << 3);
    let mut values: BTreeMap<usize, CarriedValues> = BTreeMap::new();
    for octet in before
        .iter()
        .filter(|octet| owner(octet.key) != topology.rank())
    {
        let patch = |row| (topology.key(row), topology.entity(row));
        let patches: Vec<_> = octet.rows(octet.owned).map(patch).collect();
        let leaving = CarriedValues::of(world, &patches, false);
        values.entry(owner(octet.key)).or_default().append(leaving);
    }
    for &row in &changes.refine {
        let (key, parent) = (topology.key(row), topology.entity(row));
        let children: Vec<_> = (0..8).map(|child| (key << 3 | child, parent)).collect();
        let inherited = CarriedValues::of(world, &children, true);
        values.entry(owner(key)).or_default().append(inherited);
    }
    let messages = values
        .iter()
        .map(|(&peer, values)| (peer, values.to_bytes()));
    for message in exchange(world, messages.collect())? {
        let broken = || RanksError::Transport("a message with components is cut off".into());
        received.append(CarriedValues::from_bytes(&message.bytes).ok_or_else(broken)?);
    }
    Ok(received)
}

/// Attaches what [`carry`] returned to own patches of `level`.
///
/// # Errors
/// A component refuses its bytes.
pub(super) fn attach(
    world: &mut World,
    level: usize,
    values: &CarriedValues,
) -> Result<(), RanksError> {
    let find = |world: &World, key: u64| {
        let topology = world.resource::<Topology>();
        let octet = topology.octet(level, key >> 3)?;
        let row = topology.in_order(level, octet.first)[(key & 7) as usize];
        topology.is_owned(row).then(|| topology.entity(row))
    };
    values.attach(world, find).map_err(RanksError::Transport)
}
