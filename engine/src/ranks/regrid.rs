//! Changing the shared hierarchy: as [`crate::mesh::regrid`], with the patches that move between ranks.

use super::build::{self, Proposal, Shares};
use super::communicator::Message;
use super::exchange::{pack, unpack};
use super::faces::between_ranks;
use super::{Ranks, RanksError};
use crate::error::Error;
use crate::field::FieldRegistry;
use crate::mesh::topology::shared::Octet;
use crate::mesh::{Changes, RefineRequests, Topology, regrid};
use crate::simulation::Settings;
use bevy_ecs::prelude::*;

/// Creates the root grid of the ranks.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(crate) fn create_root(world: &mut World) -> Result<(), Error> {
    let ranks = world.resource::<Ranks>().clone();
    world.resource_scope(|world, mut shares: Mut<Shares>| {
        let mut topology = world.resource_mut::<Topology>();
        build::root(&mut topology, ranks.communicator(), &mut shares)
    })?;
    let rows = world.resource::<Topology>().rows(0).to_vec();
    regrid::enter(world, 0, rows);
    Ok(())
}

/// Applies the ranks' `changes` to the patches of `level`; the own children created stand in `NewRows`, unfilled.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub(crate) fn apply(world: &mut World, level: usize, changes: &Changes) -> Result<(), Error> {
    let ranks = world.resource::<Ranks>().clone();
    let communicator = ranks.communicator();
    let imbalance = world.resource::<Settings>().run.imbalance;
    let fine = level + 1;
    let mut topology = world.resource_mut::<Topology>();
    let before: Vec<Octet> = own_octets(&topology, fine);
    let proposal = build::propose(&mut topology, communicator, level, changes, imbalance)?;
    let moved = match proposal.cut {
        true => communicator.exchange(leaving(world, fine, &before)?)?,
        false => Vec::new(),
    };
    let moved = moved
        .iter()
        .map(Moved::read)
        .collect::<Result<Vec<_>, _>>()?;
    let refined: Vec<(u64, u8)> = moved
        .iter()
        .flat_map(|m| m.refined.iter().copied())
        .collect();
    world.resource_scope(|world, mut shares: Mut<Shares>| {
        let mut topology = world.resource_mut::<Topology>();
        build::rebuild(
            &mut topology,
            communicator,
            &mut shares,
            level,
            &proposal,
            &refined,
        )?;
        for level in level..topology.max_level.min(fine + 1) {
            shares.faces[level] = between_ranks(&topology, level);
        }
        Ok::<(), RanksError>(())
    })?;
    for entity in world.resource_mut::<Topology>().take_orphans() {
        world.despawn(entity);
    }
    let rows = new_rows(world.resource::<Topology>(), fine, &proposal);
    regrid::enter(world, fine, rows);
    if proposal.cut {
        regrid::renew_parents(world, fine);
        regrid::renew_parents(world, fine + 1);
    }
    moved.iter().try_for_each(|moved| moved.settle(world, fine))
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

/// Octets on their way from another rank.
struct Moved<'a> {
    /// The octets' keys, each with the patches that have children.
    refined: Vec<(u64, u8)>,
    /// By octet: the patches that a finer patch needs refined.
    wished: &'a [u8],
    /// The present state of all fields, octet by octet.
    values: &'a [u8],
}

/// Messages with the octets of `before` whose owner is another one now.
fn leaving(world: &World, level: usize, before: &[Octet]) -> Result<Vec<Message>, Error> {
    let topology = world.resource::<Topology>();
    let requests = world.resource::<RefineRequests>();
    let fields = world.resource::<FieldRegistry>().operations();
    let owner = |octet: &Octet| topology.cuts().owner(level, octet.key << 3);
    let mut messages = Vec::new();
    // stretches of new owners follow each other
    for octets in before.chunk_by(|a, b| owner(a) == owner(b)) {
        let peer = owner(&octets[0]);
        if peer == topology.rank() {
            continue;
        }
        let mut bytes = (octets.len() as u64).to_le_bytes().to_vec();
        bytes.extend(octets.iter().flat_map(|octet| octet.key.to_le_bytes()));
        bytes.extend(octets.iter().map(|octet| topology.refined(octet)));
        bytes.extend(octets.iter().map(|octet| requests.wished(octet)));
        for octet in octets {
            let rows: Vec<u32> = octet.rows(u8::MAX).collect();
            pack(world, &fields, level, &rows, &mut bytes)?;
        }
        messages.push(Message { peer, bytes });
    }
    Ok(messages)
}

impl<'a> Moved<'a> {
    fn read(message: &'a Message) -> Result<Self, RanksError> {
        let parts = || {
            let (count, rest) = message.bytes.split_first_chunk()?;
            let count = u64::from_le_bytes(*count) as usize;
            let (keys, rest) = rest.split_at_checked(8 * count)?;
            let (refined, rest) = rest.split_at_checked(count)?;
            let (wished, values) = rest.split_at_checked(count)?;
            let keys = keys
                .as_chunks()
                .0
                .iter()
                .map(|&key| u64::from_le_bytes(key));
            let refined = keys.zip(refined.iter().copied()).collect();
            Some(Self {
                refined,
                wished,
                values,
            })
        };
        parts().ok_or_else(|| RanksError::Transport("a message with patches is too short".into()))
    }

    /// Enters the octets that still exist.
    fn settle(&self, world: &mut World, level: usize) -> Result<(), Error> {
        let fields = world.resource::<FieldRegistry>().operations();
        let row: usize = fields.iter().map(|field| (field.row_bytes)(world)).sum();
        let values = self.values.chunks_exact(8 * row);
        for ((&(key, _), &wished), values) in self.refined.iter().zip(self.wished).zip(values) {
            let octet = world.resource::<Topology>().octet(level, key).copied();
            let Some(octet) = octet.filter(|octet| octet.owned != 0) else {
                continue;
            };
            world
                .resource_mut::<RefineRequests>()
                .set_wished(&octet, wished);
            let rows: Vec<u32> = octet.rows(u8::MAX).collect();
            unpack(world, &fields, level, &rows, values)?;
        }
        Ok(())
    }
}
