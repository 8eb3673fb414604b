//! Changes the hierarchy, enforces proper nesting across ranks, and moves patches between ranks.

use super::communicator::Message;
use super::halo::{Halos, ReceivedRows};
use super::hierarchy::{ExchangePlans, Proposal, ReceivedOctet};
use super::migration::{Displaced, removed_patches};
use super::partition::PatchWork;
use super::{Ranks, RanksError, halo, hierarchy};
use bevy_ecs::prelude::*;
use nestar_engine_data::{FaultBox, Stores, patches};
use nestar_engine_mesh::patch::{PatchComponentValues, PatchComponents};
use nestar_engine_mesh::topology::shared_hierarchy::Octet;
use nestar_engine_mesh::{
    Changes, Level, PatchRow, Pinned, RefineRequests, RefinementFlags, Topology,
};
use std::collections::BTreeMap;

/// Creates the root grid on all ranks: tables, entities and rows. `NewRows` lists the own rows.
///
/// # Errors
/// Another rank or the transport has failed.
pub fn create_root(world: &mut World) -> Result<(), RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    let levels = world.resource::<Topology>().max_level + 1;
    halo::prepare(world, levels)?;
    world.resource_scope(|world, mut plans: Mut<ExchangePlans>| {
        let mut topology = world.resource_mut::<Topology>();
        hierarchy::root(&mut topology, ranks.communicator(), &mut plans)
    })?;
    let rows = world.resource::<Topology>().rows(0).to_vec();
    patches::enter(world, 0, rows, false);
    halo::update_lists(world, 0..=levels)
}

/// Applies `changes` to the patches of `level` and repartitions the finer level if a rank exceeds `imbalance`.
///
/// Own new children are listed in `NewRows`; their values are not set. Failures of this rank's memory go to [`FaultBox`].
///
/// # Errors
/// Another rank, the transport or the device has failed.
pub fn apply_changes(
    world: &mut World,
    level: usize,
    changes: &Changes,
    imbalance: f64,
) -> Result<(), RanksError> {
    let before = own_octets(world.resource::<Topology>(), level + 1);
    let proposal = propose(world, level, &before, changes, imbalance)?;
    rebuild_level(world, level + 1, &before, changes, &proposal)?;
    Ok(())
}

/// Repartitions the children of `level` by work while all patches stay.
///
/// Does nothing if all patches have equal work.
///
/// # Errors
/// As [`apply_changes`].
pub fn rebalance(world: &mut World, level: usize, imbalance: f64) -> Result<(), RanksError> {
    if PatchWork::of(world).is_none() {
        return Ok(());
    }
    let before = own_octets(world.resource::<Topology>(), level + 1);
    let none = Changes::default();
    let proposal = propose(world, level, &before, &none, imbalance)?;
    if proposal.cut {
        rebuild_level(world, level + 1, &before, &none, &proposal)?;
    }
    Ok(())
}

/// Repartitions the root grid by work. Returns `true` if patches may have moved.
///
/// # Errors
/// As [`apply_changes`].
pub fn rebalance_root(world: &mut World, imbalance: f64) -> Result<bool, RanksError> {
    let Some(work) = PatchWork::of(world).map(|work| work.level(0)) else {
        return Ok(false);
    };
    let before = own_octets(world.resource::<Topology>(), 0);
    let ranks = world.resource::<Ranks>().clone();
    let topology = &mut *world.resource_mut::<Topology>();
    let proposal = hierarchy::propose_root(topology, ranks.communicator(), &work, imbalance)?;
    match &proposal {
        Some(proposal) => rebuild_level(world, 0, &before, &Changes::default(), proposal),
        None => Ok(false),
    }
}

/// Repartitions all levels by work. Stops after a fault, which the caller checks.
///
/// # Errors
/// As [`apply_changes`].
pub fn rebalance_all(world: &mut World, imbalance: f64) -> Result<(), RanksError> {
    rebalance_root(world, imbalance)?;
    for level in 0..world.resource::<Topology>().finest() {
        if is_faulty(world)? {
            break;
        }
        rebalance(world, level, imbalance)?;
    }
    Ok(())
}

/// Returns `true` if a rank has a fault, which its [`FaultBox`] keeps. Collective.
///
/// # Errors
/// Another rank or the transport has failed.
pub fn is_faulty(world: &World) -> Result<bool, RanksError> {
    let has_fault = world.resource::<FaultBox>().has_fault();
    world.resource::<Ranks>().any(has_fault)
}

fn propose(
    world: &mut World,
    level: usize,
    before: &[Octet],
    changes: &Changes,
    imbalance: f64,
) -> Result<Proposal, RanksError> {
    let costs = PatchWork::of(world).map(|weights| weights.octets(level, before, changes));
    let costs = costs.transpose()?.unwrap_or_default();
    let ranks = world.resource::<Ranks>().clone();
    let topology = &mut *world.resource_mut::<Topology>();
    hierarchy::propose_level(
        topology,
        ranks.communicator(),
        level,
        changes,
        &costs,
        imbalance,
    )
}

/// Rebuilds level `fine` as proposed and moves all data with the patches. Returns `false` if a rank has a fault, such
/// as too little memory: then all ranks stop before data move.
///
/// `before` are the own octets so far; `changes` are those of the coarser level.
fn rebuild_level(
    world: &mut World,
    fine: usize,
    before: &[Octet],
    changes: &Changes,
    proposal: &Proposal,
) -> Result<bool, RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    // Without a new partition no octet departs.
    let departing = if proposal.cut { before } else { &[] };
    let components = send_components(world, fine, departing, changes)?;
    let moved = match proposal.cut {
        true => Some(move_octets(world, fine, departing)?),
        false => None,
    };
    let octets = moved.as_ref().map_or(&[][..], |moved| &moved.octets);
    rebuild(world, &ranks, fine, proposal, octets)?;
    let mut items = Displaced::default();
    items.detach(world, fine, changes, |topology| {
        removed_patches(topology, fine, before)
    });
    for entity in world.resource_mut::<Topology>().take_orphans() {
        world.despawn(entity);
    }
    let rows = new_rows(world.resource::<Topology>(), fine, proposal);
    patches::enter(world, fine, rows, proposal.cut);
    if is_faulty(world)? {
        return Ok(false);
    }
    attach_components(world, fine, &components)?;
    if proposal.cut {
        patches::renew_parents(world, fine);
        patches::renew_parents(world, fine + 1);
        expire_halo(world, fine + 1);
    }
    if let Some(moved) = moved {
        moved.insert(world, fine)?;
    }
    items.reinsert(world)?;
    let changed = fine.saturating_sub(1)..=fine + usize::from(proposal.cut);
    halo::update_lists(world, changed)?;
    Ok(true)
}

/// Marks the halo of `level` as out of date.
fn expire_halo(world: &mut World, level: usize) {
    if level <= world.resource::<Topology>().max_level {
        for field in world.resource::<Stores>().all() {
            field.of_mut(world).invalidate_halos(level);
        }
    }
}

/// Rebuilds the topology and exchange plans of level `fine`.
fn rebuild(
    world: &mut World,
    ranks: &Ranks,
    fine: usize,
    proposal: &Proposal,
    received: &[ReceivedOctet],
) -> Result<(), RanksError> {
    world.resource_scope(|world, mut plans: Mut<ExchangePlans>| {
        let topology = &mut *world.resource_mut::<Topology>();
        hierarchy::rebuild(
            topology,
            ranks.communicator(),
            &mut plans,
            fine,
            proposal,
            received,
        )
    })
}

fn own_octets(topology: &Topology, level: usize) -> Vec<Octet> {
    let octets = topology.octets(level).iter();
    octets.filter(|octet| octet.owned != 0).copied().collect()
}

/// Returns the rows of own octets that are new in the hierarchy, in Hilbert order.
fn new_rows(topology: &Topology, level: usize, proposal: &Proposal) -> Vec<u32> {
    let new = proposal.octets.iter().filter(|(_, new)| *new);
    let octets = new.filter_map(|(key, _)| topology.octet(level, *key));
    octets
        .flat_map(|octet| topology.hilbert_ordered(level, octet.first))
        .collect()
}

/// Patches received from other ranks.
struct MovedPatches {
    octets: Vec<ReceivedOctet>,
    /// Present state of all fields, patch by patch.
    values: ReceivedRows,
}

/// Bytes of an octet in a message.
const OCTET: usize = 11;

/// Sends patches of `before` that have a new owner to it, and returns the received patches.
fn move_octets(
    world: &mut World,
    level: usize,
    before: &[Octet],
) -> Result<MovedPatches, RanksError> {
    let (messages, rows) = pack_departures(world, level, before);
    let ranks = world.resource::<Ranks>().clone();
    let received = ranks.communicator().exchange(messages)?;
    let (mut octets, mut counts) = (Vec::new(), Vec::new());
    for message in &received {
        let (entries, rest) = message.bytes.as_chunks::<OCTET>();
        if !rest.is_empty() {
            let cut = "a message with patches is truncated";
            return Err(RanksError::Transport(cut.into()));
        }
        let mut count = 0;
        octets.extend(entries.iter().map(|entry| {
            let [key @ .., patches, refined, requested] = *entry;
            count += patches.count_ones() as usize;
            ReceivedOctet {
                key: u64::from_le_bytes(key),
                patches,
                refined,
                requested,
            }
        }));
        counts.push((message.peer, count));
    }
    let fields = world.resource::<Stores>().all();
    let values = world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.exchange_rows(world, level, &rows, &counts, &fields)
    })?;
    Ok(MovedPatches { octets, values })
}

/// Rows by destination rank.
type RowsByPeer = Vec<(usize, Vec<u32>)>;

/// Encodes the departing patches of `before`; returns the messages and their rows.
fn pack_departures(world: &World, level: usize, before: &[Octet]) -> (Vec<Message>, RowsByPeer) {
    let topology = world.resource::<Topology>();
    let requests = world.resource::<RefineRequests>();
    let (mut messages, mut rows) = (Vec::<Message>::new(), RowsByPeer::new());
    // The ranges of new owners are consecutive.
    for (peer, octet, patches) in departures(topology, level, before) {
        if messages.last().is_none_or(|last| last.peer != peer) {
            let bytes = Vec::new();
            messages.push(Message { peer, bytes });
            rows.push((peer, Vec::new()));
        }
        let marks = [topology.refined(octet), requests.requested(octet)];
        let marks = marks.map(|mark| mark & patches);
        if let (Some(message), Some((_, rows))) = (messages.last_mut(), rows.last_mut()) {
            message.bytes.extend(octet.key.to_le_bytes());
            message.bytes.push(patches);
            message.bytes.extend(marks);
            rows.extend(octet.rows(patches));
        }
    }
    (messages, rows)
}

impl MovedPatches {
    /// Inserts the received patches that still exist.
    fn insert(&self, world: &mut World, level: usize) -> Result<(), RanksError> {
        let (mut rows, mut place) = (Vec::new(), 0);
        for moved in &self.octets {
            let first = place;
            place += moved.patches.count_ones() as usize;
            let topology = world.resource::<Topology>();
            let octet = topology.octet(level, moved.key).copied();
            let Some(octet) = octet.filter(|octet| octet.owned != 0) else {
                continue;
            };
            world.resource_mut::<RefineRequests>().set_requested(
                &octet,
                moved.patches,
                moved.requested,
            );
            rows.extend(octet.rows(moved.patches).zip(first..));
        }
        let fields = world.resource::<Stores>().all();
        world.resource_scope(|world, halos: Mut<Halos>| {
            halos.unpack_rows(world, level, &rows, &self.values, &fields)
        })
    }
}

/// Returns the patches of `before` that now belong to other ranks.
///
/// Each item is the owner, the octet and the mask of its patches (z y x).
fn departures<'a>(
    topology: &'a Topology,
    level: usize,
    before: &'a [Octet],
) -> impl Iterator<Item = (usize, &'a Octet, u8)> {
    let own = topology.rank();
    let parts = before.iter().flat_map(move |octet| {
        let mut parts: Vec<(usize, &Octet, u8)> = Vec::new();
        if level > 0 {
            let owner = topology.partition().owner(level, octet.key << 3);
            parts.push((owner, octet, octet.owned));
            return parts;
        }
        for row in topology.hilbert_ordered(0, octet.first) {
            let patch = octet.owned & 1 << (row - octet.first);
            if patch == 0 {
                continue;
            }
            let owner = topology.partition().owner(0, topology.key(row));
            match parts.last_mut() {
                Some((peer, _, patches)) if *peer == owner => *patches |= patch,
                _ => parts.push((owner, octet, patch)),
            }
        }
        parts
    });
    parts.filter(move |(peer, ..)| *peer != own)
}

/// Sends carried components to the new owners of their patches. Collective.
///
/// Sends those of patches in `before` that depart, and those that children inherit from own coarse patches refined by
/// `changes`. Returns the components for this rank by patch key.
///
/// # Errors
/// Another rank or the transport has failed.
fn send_components(
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
    if let Some(own) = values.remove(&topology.rank()) {
        received.append(own);
    }
    let messages = values.iter();
    let messages = messages.map(|(&peer, values)| (peer, values.to_bytes()));
    let ranks = world.resource::<Ranks>();
    for message in ranks.exchange_bytes(messages.collect())? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        received.append(PatchComponentValues::from_bytes(&message.bytes).ok_or_else(broken)?);
    }
    Ok(received)
}

/// Attaches components returned by [`send_components`] to own patches of `level`.
///
/// # Errors
/// A component rejects its bytes.
fn attach_components(
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

/// Decides which own patches of `level` are refined and which lose their children.
///
/// # Errors
/// Another rank or the transport has failed.
pub fn decide(world: &mut World, level: usize) -> Result<Changes, RanksError> {
    let (staying, closed) = pins(world, level);
    world.resource_scope(|world, mut requests: Mut<RefineRequests>| {
        requests.pin(staying, closed);
        let topology = world.resource::<Topology>();
        let ranks = world.resource::<Ranks>().communicator();
        let plans = world.resource::<ExchangePlans>();
        let mut received = Vec::with_capacity(plans.halo[level].received());
        let sectors = |row| requests.sectors(row);
        plans.halo[level].forward(ranks, sectors, |row, sectors| received.push((row, sectors)))?;
        for (row, sectors) in received {
            requests.set_flags(row, RefinementFlags::of_sectors(sectors));
        }
        requests.prepare(topology, level);
        let back = plans.halo[level].reversed();
        let marks = |row: u32| u8::from(requests.is_required(row));
        back.forward(ranks, marks, |row, mark| {
            requests.require_if(row, mark != 0)
        })?;
        let changes = requests.choose(topology, level);
        if let Some(below) = level.checked_sub(1) {
            let back = plans.halo[below].reversed();
            let marks = |row: u32| u8::from(requests.is_requested(row));
            back.forward(ranks, marks, |row, mark| {
                requests.request_if(row, mark != 0)
            })?;
        }
        Ok(changes)
    })
}

/// Returns own finer patches that must stay, and own patches of `level` that must not be refined.
fn pins(world: &mut World, level: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut staying, mut closed) = (Vec::new(), Vec::new());
    let mut patches = world.query::<(&Level, &PatchRow, &Pinned)>();
    for (at, row, pin) in patches.iter(world) {
        let at = usize::from(at.0);
        if at == level + 1 && pin.stays {
            staying.push(row.0);
        }
        if at == level
            && pin
                .finest
                .is_some_and(|finest| usize::from(finest) <= level)
        {
            closed.push(row.0);
        }
    }
    (staying, closed)
}
