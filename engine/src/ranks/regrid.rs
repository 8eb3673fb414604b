//! Changing the shared hierarchy: as [`crate::mesh::regrid`], with the patches that move between ranks.

use super::build::{self, Proposal, Shares};
use super::communicator::Message;
use super::halos::{self, Arrived, Halos};
use super::{Lifted, Ranks, RanksError, carried, lifted};
use crate::field::{Stores, patches};
use crate::mesh::topology::octet::Octet;
use crate::mesh::{Changes, RefineRequests, Topology};
use bevy_ecs::prelude::*;

/// Creates the root grid of the ranks.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(crate) fn create_root(world: &mut World) -> Result<(), RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    let levels = world.resource::<Topology>().max_level + 1;
    halos::prepare(world, levels)?;
    world.resource_scope(|world, mut shares: Mut<Shares>| {
        let mut topology = world.resource_mut::<Topology>();
        build::root(&mut topology, ranks.communicator(), &mut shares)
    })?;
    let rows = world.resource::<Topology>().rows(0).to_vec();
    patches::enter(world, 0, rows);
    halos::follow(world, 0..=levels)
}

/// Applies the ranks' `changes` to the patches of `level`, which is cut anew where a rank has more than `imbalance` times its
/// part; the own children created stand in `NewRows`, unfilled.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub(crate) fn apply(
    world: &mut World,
    level: usize,
    changes: &Changes,
    imbalance: f64,
) -> Result<(), RanksError> {
    let before = own_octets(world.resource::<Topology>(), level + 1);
    let proposal = propose(world, level, &before, changes, imbalance)?;
    make(world, level, &before, changes, &proposal)
}

/// Shares the children of `level` out anew where their costs ask for it, though the patches stay the same. Where no plugin has
/// registered costs this does nothing.
///
/// # Errors
/// As [`apply`].
pub(crate) fn rebalance(world: &mut World, level: usize, imbalance: f64) -> Result<(), RanksError> {
    if !world.resource::<Topology>().is_shared() || !carried::has_costs(world) {
        return Ok(());
    }
    let before = own_octets(world.resource::<Topology>(), level + 1);
    let none = Changes::default();
    let proposal = propose(world, level, &before, &none, imbalance)?;
    match proposal.cut {
        true => make(world, level, &before, &none, &proposal),
        false => Ok(()),
    }
}

fn propose(
    world: &mut World,
    level: usize,
    before: &[Octet],
    changes: &Changes,
    imbalance: f64,
) -> Result<Proposal, RanksError> {
    let costs = carried::costs(world, level, before, changes)?;
    let ranks = world.resource::<Ranks>().clone();
    let topology = &mut *world.resource_mut::<Topology>();
    build::propose(
        topology,
        ranks.communicator(),
        level,
        changes,
        &costs,
        imbalance,
    )
}

/// Makes the children of `level` what was proposed; `before` are the own octets so far.
fn make(
    world: &mut World,
    level: usize,
    before: &[Octet],
    changes: &Changes,
    proposal: &Proposal,
) -> Result<(), RanksError> {
    let (ranks, fine) = (world.resource::<Ranks>().clone(), level + 1);
    let components = carried::carry(world, level, before, changes)?;
    let moved = match proposal.cut {
        true => Some(move_octets(world, fine, before)?),
        false => None,
    };
    let octets = moved.as_ref().map_or(&[][..], |moved| &moved.octets);
    let refined: Vec<(u64, u8)> = octets.iter().map(|o| (o.key, o.refined)).collect();
    rebuild(world, &ranks, level, proposal, &refined)?;
    let mut items = Lifted::default();
    items.take(world, level, changes, |topology| {
        lifted::gone(topology, fine, before)
    });
    for entity in world.resource_mut::<Topology>().take_orphans() {
        world.despawn(entity);
    }
    let rows = new_rows(world.resource::<Topology>(), fine, proposal);
    patches::enter(world, fine, rows);
    carried::attach(world, fine, &components)?;
    if proposal.cut {
        patches::renew_parents(world, fine);
        patches::renew_parents(world, fine + 1);
        expire(world, fine + 1);
    }
    if let Some(moved) = moved {
        moved.settle(world, fine)?;
    }
    items.settle(world)?;
    halos::follow(world, level..=fine + usize::from(proposal.cut))
}

/// Declares all copies of `level` out of date.
fn expire(world: &mut World, level: usize) {
    if level <= world.resource::<Topology>().max_level {
        for field in world.resource::<Stores>().all() {
            field.of_mut(world).expire(level);
        }
    }
}

/// Rebuilds the children of `level` and what travels for them, as proposed.
fn rebuild(
    world: &mut World,
    ranks: &Ranks,
    level: usize,
    proposal: &Proposal,
    refined: &[(u64, u8)],
) -> Result<(), RanksError> {
    world.resource_scope(|world, mut shares: Mut<Shares>| {
        let topology = &mut *world.resource_mut::<Topology>();
        build::rebuild(
            topology,
            ranks.communicator(),
            &mut shares,
            level,
            proposal,
            refined,
        )
    })
}

fn own_octets(topology: &Topology, level: usize) -> Vec<Octet> {
    let octets = topology.octets(level).iter();
    octets.filter(|octet| octet.owned != 0).copied().collect()
}

/// Rows of the own octets that are new in the hierarchy, in Hilbert order.
fn new_rows(topology: &Topology, level: usize, proposal: &Proposal) -> Vec<u32> {
    let new = proposal.octets.iter().filter(|(_, new)| *new);
    let octets = new.filter_map(|(key, _)| topology.octet(level, *key));
    octets
        .flat_map(|octet| topology.in_order(level, octet.first))
        .collect()
}

/// An octet that has come from another rank.
struct MovedOctet {
    key: u64,
    /// Patches that have children.
    refined: u8,
    /// Patches that a finer patch needs refined.
    wished: u8,
}

/// Octets that have come from other ranks.
struct Moved {
    octets: Vec<MovedOctet>,
    /// The present state of all fields, octet by octet.
    values: Arrived,
}

/// Bytes that tell about an octet.
const OCTET: usize = 10;

/// Sends the octets of `before` whose owner is another one now to their owners; what comes from others.
fn move_octets(world: &mut World, level: usize, before: &[Octet]) -> Result<Moved, RanksError> {
    let (messages, rows) = leaving(world, level, before);
    let ranks = world.resource::<Ranks>().clone();
    let received = ranks.communicator().exchange(messages)?;
    let (mut octets, mut counts) = (Vec::new(), Vec::new());
    for message in &received {
        let (entries, rest) = message.bytes.as_chunks::<OCTET>();
        if !rest.is_empty() {
            let cut = "a message with patches is cut off";
            return Err(RanksError::Transport(cut.into()));
        }
        counts.push((message.peer, 8 * entries.len()));
        octets.extend(entries.iter().map(|entry| {
            let [key @ .., refined, wished] = *entry;
            MovedOctet {
                key: u64::from_le_bytes(key),
                refined,
                wished,
            }
        }));
    }
    let fields = world.resource::<Stores>().all();
    let values = world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.carry_rows(world, level, &rows, &counts, &fields)
    })?;
    Ok(Moved { octets, values })
}

/// Rows by the ranks that get them.
type RowsByPeer = Vec<(usize, Vec<u32>)>;

/// What tells about the octets of `before` that leave, and their rows.
fn leaving(world: &World, level: usize, before: &[Octet]) -> (Vec<Message>, RowsByPeer) {
    let topology = world.resource::<Topology>();
    let requests = world.resource::<RefineRequests>();
    let owner = |octet: &Octet| topology.cuts().owner(level, octet.key << 3);
    let (mut messages, mut rows) = (Vec::new(), Vec::new());
    // stretches of new owners follow each other
    for octets in before.chunk_by(|a, b| owner(a) == owner(b)) {
        let peer = owner(&octets[0]);
        if peer == topology.rank() {
            continue;
        }
        let tell = |octet: &Octet| {
            let marks = [topology.refined(octet), requests.wished(octet)];
            octet.key.to_le_bytes().into_iter().chain(marks)
        };
        let bytes = octets.iter().flat_map(tell).collect();
        messages.push(Message { peer, bytes });
        let leave = octets.iter().flat_map(|octet| octet.rows(u8::MAX));
        rows.push((peer, leave.collect()));
    }
    (messages, rows)
}

impl Moved {
    /// Enters the octets that still exist.
    fn settle(&self, world: &mut World, level: usize) -> Result<(), RanksError> {
        let mut rows = Vec::new();
        for (n, moved) in self.octets.iter().enumerate() {
            let topology = world.resource::<Topology>();
            let octet = topology.octet(level, moved.key).copied();
            let Some(octet) = octet.filter(|octet| octet.owned != 0) else {
                continue;
            };
            world
                .resource_mut::<RefineRequests>()
                .set_wished(&octet, moved.wished);
            rows.extend(octet.rows(u8::MAX).zip(8 * n..));
        }
        let fields = world.resource::<Stores>().all();
        world.resource_scope(|world, halos: Mut<Halos>| {
            halos.unload_rows(world, level, &rows, &self.values, &fields)
        })
    }
}
