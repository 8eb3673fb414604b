//! Builds and rebuilds a rank's part of the hierarchy.
//!
//! Each rank decides about its own patches and requests halo patches from their owners.

use super::communicator::{Communicator, Message, RanksError};
use super::exchange_plan::{ExchangePlan, PeerRows};
use super::neighbourhood::{
    OctetPart, fine_octets_at_faces, level_neighbours, merge_parts, parents_with_neighbours,
    root_neighbours,
};
use super::owners::PatchOwners;
use super::partition::{WorkUnits, balance, octet_work, root_work};
use crate::mesh::faces::{FacePlan, between_ranks};
use crate::mesh::topology::octet::NeighbourLevel;
use crate::mesh::topology::octet::Octet;
use crate::mesh::{Changes, HilbertPartition, Topology};
use bevy_ecs::prelude::*;
use rayon::prelude::*;
use std::sync::Arc;

/// Exchange plans of all levels.
#[derive(Resource, Clone, Debug, Default)]
pub struct ExchangePlans {
    /// By level: rows whose values are sent from owners to halo patches.
    pub halo: Vec<ExchangePlan>,
    /// By level: rows whose averages of children are sent from the owner of the children to the owner of the row.
    pub averages: Vec<ExchangePlan>,
    /// By level: faces to the finer level whose fluxes are sent to another rank.
    pub faces: Vec<FacePlan>,
    /// By level: patches of other ranks beside own patches, independent of the finer level.
    touched: Vec<Vec<OctetPart>>,
}

/// Own octets of a level after a regrid, in ascending order of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// Keys of octets; `true` marks those that are new in the hierarchy.
    pub octets: Vec<(u64, bool)>,
    /// Is `true` if the level was repartitioned.
    pub cut: bool,
}

/// Builds the root grid: own patches, halo patches and tables.
///
/// # Errors
/// Another rank or the transport has failed.
pub fn root(
    topology: &mut Topology,
    ranks: &dyn Communicator,
    shares: &mut ExchangePlans,
) -> Result<(), RanksError> {
    let levels = topology.max_level + 1;
    let cuts = HilbertPartition::new(topology.domain.root, ranks.size(), levels);
    topology.share_among_ranks(ranks.rank(), Arc::new(cuts));
    let patches = topology.domain.root.iter().map(|&n| n as usize).product();
    topology.set_count(0, patches);
    topology.set_work(0, root_work(patches as u64, ranks.size() as u64));
    root_part(topology, ranks, shares)
}

/// Builds a rank's part of the root grid for the partition that the topology holds.
///
/// # Errors
/// As [`root`].
pub(super) fn root_part(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    shares: &mut ExchangePlans,
) -> Result<(), RanksError> {
    let levels = topology.max_level + 1;
    *shares = ExchangePlans {
        halo: vec![ExchangePlan::default(); levels],
        averages: vec![ExchangePlan::default(); levels],
        faces: vec![FacePlan::default(); levels],
        touched: vec![Vec::new(); levels],
    };
    find_neighbours(topology, shares, 0);
    set_octets(topology, 0, &topology.own_root(), &shares.touched[0]);
    topology.link_families(0);
    topology.link_owned(0);
    shares.halo[0] = negotiate_halo(topology, owners, 0)?;
    Ok(())
}

/// Sends `changes` of own patches of `level` to the owners of the children, and repartitions the finer level if needed.
///
/// The finer level is repartitioned if its imbalance (largest work over mean) exceeds `imbalance`. `costs` lists the
/// work of octets that differs from the default, by the keys of the parents. The function marks changed patches but
/// rebuilds nothing.
///
/// # Errors
/// As [`root`].
pub fn propose_level(
    topology: &mut Topology,
    ranks: &dyn Communicator,
    level: usize,
    changes: &Changes,
    costs: &[(u64, u64)],
    imbalance: f64,
) -> Result<Proposal, RanksError> {
    topology.mark_children(changes);
    let parents = parents(topology, level, changes);
    let keys: Vec<u64> = parents.iter().map(|(key, _)| key << 3).collect();
    let units = WorkUnits {
        keys: &keys,
        work: &octet_work(parents.iter().map(|(key, _)| *key), costs),
        patches: 8,
    };
    let cut = balance(topology, ranks, level + 1, units, imbalance)?;
    let mut messages: Vec<Message> = Vec::new();
    for (key, new) in parents {
        let peer = topology.partition().owner(level + 1, key << 3);
        if messages.last().is_none_or(|last| last.peer != peer) {
            let bytes = Vec::new();
            messages.push(Message { peer, bytes });
        }
        if let Some(last) = messages.last_mut() {
            last.bytes.extend((key << 1 | u64::from(new)).to_le_bytes());
        }
    }
    // The ranges of ranks are consecutive, so the received octets are in order.
    let received = ranks.exchange(messages)?;
    let words = received
        .iter()
        .flat_map(|message| message.bytes.as_chunks().0);
    let octets = words.map(|&word| u64::from_le_bytes(word));
    let octets = octets.map(|word| (word >> 1, word & 1 == 1)).collect();
    Ok(Proposal { octets, cut })
}

/// Repartitions the root grid if its imbalance exceeds `imbalance`; returns `None` if the partition stays.
///
/// `work` is that of own patches in Hilbert order. Nothing is rebuilt yet.
///
/// # Errors
/// As [`root`].
pub(super) fn propose_root(
    topology: &mut Topology,
    ranks: &dyn Communicator,
    work: &[u64],
    imbalance: f64,
) -> Result<Option<Proposal>, RanksError> {
    let rows = topology.rows(0).par_iter().with_min_len(1024);
    let keys: Vec<u64> = rows.map(|&row| topology.key(row)).collect();
    let units = WorkUnits {
        keys: &keys,
        work,
        patches: 1,
    };
    if !balance(topology, ranks, 0, units, imbalance)? {
        return Ok(None);
    }
    let octets = topology.own_root().into_iter();
    let octets = octets.map(|(key, _)| (key, false)).collect();
    Ok(Some(Proposal { octets, cut: true }))
}

/// Returns the keys of own patches of `level` with children, ascending; `true` marks new children.
fn parents(topology: &Topology, level: usize, changes: &Changes) -> Vec<(u64, bool)> {
    let rows = topology.rows(level).par_iter().with_min_len(1024);
    let refined = rows.filter(|&&row| !topology.is_leaf(row));
    let keyed: Vec<(u64, u32)> = refined.map(|&row| (topology.key(row), row)).collect();
    let mut new = changes.refine.iter().peekable();
    let mut is_new = |row: u32| new.next_if(|&&new| new == row).is_some();
    keyed
        .into_iter()
        .map(|(key, row)| (key, is_new(row)))
        .collect()
}

/// An octet received from another rank: its key, the received patches, and those of them with children, as bit masks (z
/// y x).
pub type RefinedOctet = (u64, u8, u8);

/// Rebuilds the level `fine` as proposed, with halo patches and exchange plans.
///
/// `refined` lists which patches received from other ranks have children.
///
/// # Errors
/// As [`root`].
pub fn rebuild(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    shares: &mut ExchangePlans,
    fine: usize,
    proposal: &Proposal,
    refined: &[RefinedOctet],
) -> Result<(), RanksError> {
    let octets = proposal.octets.iter();
    let owned: Vec<OctetPart> = match fine {
        0 => topology.own_root(),
        _ => octets.map(|&(key, _)| (key, u8::MAX)).collect(),
    };
    // Hold the new octets and, for now, all former halo octets: octets that stay keep their rows.
    let copied = copied_parts(topology, fine);
    set_octets(topology, fine, &owned, &copied);
    let coarser = fine.checked_sub(1);
    if let Some(level) = coarser {
        // Parents of the new octets and the neighbours of these parents.
        let beneath = parents_with_neighbours(topology, level);
        update_halo(topology, owners, shares, level, beneath)?;
    }
    for &(key, patches, refined) in refined {
        if let Some(&octet) = topology.octet(fine, key) {
            topology.set_refined(octet.rows(octet.owned & patches), refined);
        }
    }
    topology.link_families(fine);
    if let Some(level) = coarser {
        topology.link_copies(level);
    }
    update_surroundings(topology, owners, shares, fine)?;
    if proposal.cut && fine < topology.max_level {
        // The finer level keeps its patches but needs other halo patches.
        update_surroundings(topology, owners, shares, fine + 1)?;
    }
    for level in coarser.unwrap_or(0)..(fine + 1).min(topology.max_level) {
        shares.averages[level] = averages(topology, level);
        shares.faces[level] = between_ranks(topology, level);
    }
    Ok(())
}

/// Updates the halo of `level`: neighbours of own patches, and parents of own finer patches with their neighbours.
/// Links all of them.
fn update_surroundings(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    shares: &mut ExchangePlans,
    level: usize,
) -> Result<(), RanksError> {
    find_neighbours(topology, shares, level);
    let beneath = parents_with_neighbours(topology, level);
    update_halo(topology, owners, shares, level, beneath)?;
    topology.link_families(level + 1);
    topology.link_owned(level);
    topology.link_copies(level);
    Ok(())
}

fn owned_parts(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let octets = topology.octets(level).iter();
    let owned = octets.filter(|octet| octet.owned != 0);
    owned.map(|octet| (octet.key, octet.owned)).collect()
}

fn copied_parts(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let octets = topology.octets(level).iter();
    let copied = octets.filter(|octet| octet.owned == 0);
    copied.map(|octet| (octet.key, octet.copied)).collect()
}

/// Finds the patches of other ranks beside own patches of `level`.
fn find_neighbours(topology: &Topology, shares: &mut ExchangePlans, level: usize) {
    if level == 0 {
        shares.touched[0] = root_neighbours(topology, &topology.own_root());
        return;
    }
    let mut touched = level_neighbours(topology, level);
    touched.extend(fine_octets_at_faces(topology, level));
    shares.touched[level] = merge_parts(touched);
}

/// Holds the neighbours of own patches of `level` and the patches `more` as halo, and makes the exchange plan.
fn update_halo(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    shares: &mut ExchangePlans,
    level: usize,
    more: Vec<OctetPart>,
) -> Result<(), RanksError> {
    let owned = owned_parts(topology, level);
    let mut copied = more;
    copied.extend(&shares.touched[level]);
    set_octets(topology, level, &owned, &merge_parts(copied));
    shares.halo[level] = negotiate_halo(topology, owners, level)?;
    // Octets were added and removed: parents do not know their children yet, and children are linked by the caller.
    topology.link_families(level);
    Ok(())
}

fn set_octets(topology: &mut Topology, level: usize, owned: &[OctetPart], copied: &[OctetPart]) {
    let own = owned.iter().map(|&(key, owned)| Octet::new(key, owned, 0));
    let copies = copied
        .iter()
        .map(|&(key, copied)| Octet::new(key, 0, copied));
    let mut octets: Vec<Octet> = own.chain(copies).collect();
    // The stable sort merges the two ascending runs.
    octets.sort_by_key(|octet| octet.key);
    octets.dedup_by(|next, kept| {
        let same = next.key == kept.key;
        if same {
            kept.owned |= next.owned;
            kept.copied = (kept.copied | next.copied) & !kept.owned;
        }
        same
    });
    topology.set_octets(level, octets);
}

/// Requests the halo of `level` from its owners, who add the rows to their plans and return which patches have
/// children.
fn negotiate_halo(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    level: usize,
) -> Result<ExchangePlan, RanksError> {
    let mut plan = ExchangePlan::default();
    for octet in topology.octets(level) {
        for row in octet.rows(octet.copied) {
            plan.receive(topology.owner(row), row);
        }
    }
    let parts = |rows: &[u32]| (topology.key(rows[0]) >> 3, mask(rows));
    let wanted = |from: &PeerRows| (from.peer, octets(&from.rows).map(parts).collect());
    let wanted: Vec<_> = plan.receives.iter().map(wanted).collect();
    let answers = owners.request_halo(topology, level, &wanted, &mut plan)?;
    for (from, refined) in plan.receives.iter().zip(answers) {
        for (rows, refined) in octets(&from.rows).zip(refined) {
            topology.set_refined(rows.iter().copied(), refined);
        }
    }
    Ok(plan)
}

/// Splits rows by octet.
fn octets(rows: &[u32]) -> impl Iterator<Item = &[u32]> {
    rows.chunk_by(|a, b| a / 8 == b / 8)
}

/// Returns the bit mask (z y x) of patches of an octet with the given rows.
fn mask(rows: &[u32]) -> u8 {
    rows.iter().map(|row| 1 << (row % 8)).sum()
}

/// Plans the exchange of averages of children for patches of `level`.
fn averages(topology: &Topology, level: usize) -> ExchangePlan {
    let mut plan = ExchangePlan::default();
    let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
    let parents = near.filter_map(|octet| topology.parent(octet.first));
    let others = parents.filter(|&parent| !topology.is_owned(parent));
    for parent in others.collect::<Vec<_>>() {
        plan.send(topology.owner(parent), parent);
    }
    let near = topology.octets_near_others(level, NeighbourLevel::Finer);
    let rows = near.flat_map_iter(|octet| {
        let owned = |row: &u32| octet.owned >> (row - octet.first) & 1 == 1;
        topology
            .hilbert_ordered(level, octet.first)
            .into_iter()
            .filter(owned)
    });
    let others = rows.filter(|&row| {
        let first = topology.first_child(row);
        !topology.is_leaf(row) && !first.is_some_and(|first| topology.is_owned(first))
    });
    for row in others.collect::<Vec<_>>() {
        let owner = topology
            .partition()
            .owner(level + 1, topology.key(row) << 3);
        plan.receive(owner, row);
    }
    plan
}
