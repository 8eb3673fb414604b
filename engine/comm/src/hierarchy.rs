//! Builds and rebuilds a rank's part of the hierarchy.
//!
//! Each rank decides about its own patches and requests halo patches from their owners.

use super::communicator::{Communicator, Message, RanksError};
use super::exchange_plan::{ExchangePlan, PeerRows};
use super::partition::{WorkUnits, balance, octet_work, root_work};
use bevy_ecs::prelude::*;
use nestar_engine_mesh::topology::links::{
    FacePlan, between_ranks, children_facing, edge_providers, provided_at_edges, remote_at_edges,
};
use nestar_engine_mesh::topology::offset;
use nestar_engine_mesh::topology::shared_hierarchy::{NeighbourLevel, Octet, side};
use nestar_engine_mesh::{Changes, HilbertPartition, Topology};
use nestar_kernels::mesh::SELF;
use rayon::prelude::*;
use std::sync::Arc;

/// Exchange plans of all levels.
#[derive(Resource, Clone, Debug, Default)]
pub struct ExchangePlans {
    /// By level: rows whose values are sent from owners to halo patches.
    pub halo: Vec<ExchangePlan>,
    /// By level: rows whose averages are sent from the owner of their children to their owner.
    pub averages: Vec<ExchangePlan>,
    /// By level: faces to the finer level whose fluxes are sent to another rank.
    pub faces: Vec<FacePlan>,
    /// By level: patches of the finer level whose circulations along edges are sent to another rank.
    pub edges: Vec<ExchangePlan>,
    /// By level: patches of other ranks beside own patches, independent of the finer level.
    touched: Vec<Vec<OctetPart>>,
}

impl ExchangePlans {
    /// Returns `true` if this rank exchanges halo patches that gathers on `level` read: those of the level and of the next
    /// coarser one.
    #[must_use]
    pub fn has_halo(&self, level: usize) -> bool {
        let mut plans = self
            .halo
            .iter()
            .take(level + 1)
            .skip(level.saturating_sub(1));
        plans.any(|plan| !plan.is_empty())
    }

    /// Returns `true` if this rank exchanges averages or registers between `level` and the next finer level.
    #[must_use]
    pub fn has_averages_or_fluxes(&self, level: usize) -> bool {
        let mut rows = [&self.averages, &self.edges].into_iter();
        let faces = self.faces.get(level);
        rows.any(|plans| plans.get(level).is_some_and(|plan| !plan.is_empty()))
            || faces.is_some_and(|plan| !plan.is_empty())
    }
}

/// Key of an octet; `true` if the octet is new in the hierarchy.
pub type OctetKey = (u64, bool);

/// Own octets of a level after a regrid, in ascending order of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The octets.
    pub octets: Vec<OctetKey>,
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
    plans: &mut ExchangePlans,
) -> Result<(), RanksError> {
    let levels = topology.max_level + 1;
    let cuts = HilbertPartition::new(topology.domain.root, ranks.size(), levels);
    topology.share_among_ranks(ranks.rank(), Arc::new(cuts));
    let patches = topology.domain.root.iter().map(|&n| n as usize).product();
    topology.set_count(0, patches);
    topology.set_work(0, root_work(patches as u64, ranks.size() as u64));
    root_part(topology, ranks, plans)
}

/// Builds a rank's part of the root grid for the partition that the topology holds.
///
/// # Errors
/// As [`root`].
pub(super) fn root_part(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    plans: &mut ExchangePlans,
) -> Result<(), RanksError> {
    let levels = topology.max_level + 1;
    *plans = ExchangePlans {
        halo: vec![ExchangePlan::default(); levels],
        averages: vec![ExchangePlan::default(); levels],
        faces: vec![FacePlan::default(); levels],
        edges: vec![ExchangePlan::default(); levels],
        touched: vec![Vec::new(); levels],
    };
    set_octets(topology, 0, &topology.own_root(), &[]);
    topology.link_families(0);
    update_surroundings(topology, owners, plans, 0)
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
    let octets = deliver(topology, ranks, level + 1, parents)?;
    Ok(Proposal { octets, cut })
}

/// Sends octets of `level`, ascending, to their owners. Returns the octets of this rank, ascending.
fn deliver(
    topology: &Topology,
    ranks: &dyn Communicator,
    level: usize,
    octets: Vec<OctetKey>,
) -> Result<Vec<OctetKey>, RanksError> {
    let own = topology.partition().keys(level, topology.rank());
    let first = octets.partition_point(|(key, _)| key << 3 < own.start);
    let end = octets.partition_point(|(key, _)| key << 3 < own.end);
    let mut messages: Vec<Message> = Vec::new();
    for &(key, new) in octets[..first].iter().chain(&octets[end..]) {
        let peer = topology.partition().owner(level, key << 3);
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
    let (before, after) = received.split_at(received.partition_point(|m| m.peer < topology.rank()));
    let decode = |messages: &[Message]| -> Vec<OctetKey> {
        let words = messages
            .iter()
            .flat_map(|message| message.bytes.as_chunks().0);
        let words = words.map(|&word| u64::from_le_bytes(word));
        words.map(|word| (word >> 1, word & 1 == 1)).collect()
    };
    let mut all = decode(before);
    all.extend_from_slice(&octets[first..end]);
    all.extend(decode(after));
    Ok(all)
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
fn parents(topology: &Topology, level: usize, changes: &Changes) -> Vec<OctetKey> {
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

/// An octet received from another rank, with masks of its patches (z y x).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedOctet {
    /// Key of the octet.
    pub key: u64,
    /// Received patches: an octet of the root grid may belong to several ranks.
    pub patches: u8,
    /// Patches with children.
    pub refined: u8,
    /// Patches that finer patches need refined.
    pub requested: u8,
}

/// Rebuilds the level `fine` as proposed, with halo patches and exchange plans.
///
/// `received` lists the octets that come from other ranks.
///
/// # Errors
/// As [`root`].
pub fn rebuild(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    plans: &mut ExchangePlans,
    fine: usize,
    proposal: &Proposal,
    received: &[ReceivedOctet],
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
        let parents = parents_with_neighbours(topology, level);
        update_halo(topology, owners, plans, level, parents)?;
    }
    for octet in received {
        if let Some(&own) = topology.octet(fine, octet.key) {
            topology.set_refined(own.rows(own.owned & octet.patches), octet.refined);
        }
    }
    topology.link_families(fine);
    if let Some(level) = coarser {
        topology.link_copies(level);
    }
    update_surroundings(topology, owners, plans, fine)?;
    if proposal.cut && fine < topology.max_level {
        // The finer level keeps its patches but needs other halo patches.
        update_surroundings(topology, owners, plans, fine + 1)?;
    }
    for level in coarser.unwrap_or(0)..(fine + 1).min(topology.max_level) {
        plans.averages[level] = averages(topology, level);
        plans.faces[level] = between_ranks(topology, level);
        plans.edges[level] = edges(topology, level);
    }
    Ok(())
}

/// Updates the halo of `level`: neighbours of own patches, and parents of own finer patches with their neighbours.
/// Links all of them.
fn update_surroundings(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    plans: &mut ExchangePlans,
    level: usize,
) -> Result<(), RanksError> {
    find_neighbours(topology, plans, level);
    let parents = parents_with_neighbours(topology, level);
    update_halo(topology, owners, plans, level, parents)?;
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
fn find_neighbours(topology: &Topology, plans: &mut ExchangePlans, level: usize) {
    plans.touched[level] = match level {
        0 => root_neighbours(topology),
        _ => {
            let mut touched = level_neighbours(topology, level);
            touched.extend(fine_octets_at_edges(topology, level));
            merge_parts(touched)
        }
    };
}

/// Holds the neighbours of own patches of `level` and the patches `more` as halo, and makes the exchange plan.
fn update_halo(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    plans: &mut ExchangePlans,
    level: usize,
    more: Vec<OctetPart>,
) -> Result<(), RanksError> {
    let mut copied = more;
    copied.extend(&plans.touched[level]);
    let copied = merge_parts(copied);
    let held = topology.octets(level).iter();
    let held = held.filter(|octet| octet.owned == 0 || octet.copied != 0);
    let changes = !held
        .map(|octet| (octet.key, octet.copied))
        .eq(copied.iter().copied());
    if changes {
        let owned = owned_parts(topology, level);
        set_octets(topology, level, &owned, &copied);
    }
    plans.halo[level] = negotiate_halo(topology, owners, level)?;
    if changes {
        // Parents do not know their children yet, and children are linked by the caller.
        topology.link_families(level);
    }
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
    octets.dedup_by(|next, merged| {
        let same = next.key == merged.key;
        if same {
            merged.owned |= next.owned;
            merged.copied = (merged.copied | next.copied) & !merged.owned;
        }
        same
    });
    topology.set_octets(level, octets);
}

/// Requests the halo of `level` from its owners.
///
/// They add the rows to their plans and return which patches have children.
fn negotiate_halo(
    topology: &mut Topology,
    owners: &(impl PatchOwners + ?Sized),
    level: usize,
) -> Result<ExchangePlan, RanksError> {
    let mut plan = ExchangePlan::default();
    for &row in topology.copies(level) {
        plan.receive(topology.owner(row), row);
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

/// Plans the exchange of circulations along edges between `level` and the next finer level.
fn edges(topology: &Topology, level: usize) -> ExchangePlan {
    let mut plan = ExchangePlan::default();
    for (peer, row) in provided_at_edges(topology, level) {
        plan.send(peer, row);
    }
    for row in remote_at_edges(topology, level) {
        plan.receive(topology.owner(row), row);
    }
    plan
}

/// Answers requests for halo patches.
pub trait PatchOwners {
    /// Requests halo patches of `level` from their owners; `wanted` lists the octets of each owner.
    ///
    /// Adds the rows that other ranks request from this one to `plan`. Returns, by owner and octet, the mask of patches
    /// with children.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    fn request_halo(
        &self,
        topology: &Topology,
        level: usize,
        wanted: &[(usize, Vec<OctetPart>)],
        plan: &mut ExchangePlan,
    ) -> Result<Vec<Vec<u8>>, RanksError>;
}

/// Bytes of a request: key of the octet and mask of patches.
const REQUEST: usize = 9;

impl<C: Communicator + ?Sized> PatchOwners for C {
    fn request_halo(
        &self,
        topology: &Topology,
        level: usize,
        wanted: &[(usize, Vec<OctetPart>)],
        plan: &mut ExchangePlan,
    ) -> Result<Vec<Vec<u8>>, RanksError> {
        let request = |(peer, parts): &(usize, Vec<OctetPart>)| {
            let entry = |(key, mask): &OctetPart| key.to_le_bytes().into_iter().chain([*mask]);
            let bytes = parts.iter().flat_map(entry).collect();
            Message { peer: *peer, bytes }
        };
        let received = self.exchange(wanted.iter().map(request).collect())?;
        let mut answers = Vec::with_capacity(received.len());
        for request in received {
            answers.push(answer(topology, level, &request, plan)?);
        }
        let answers = self.exchange(answers)?;
        Ok(answers.into_iter().map(|answer| answer.bytes).collect())
    }
}

/// Adds the rows that one rank requests to the plan; the answer has one byte per octet.
fn answer(
    topology: &Topology,
    level: usize,
    request: &Message,
    plan: &mut ExchangePlan,
) -> Result<Message, RanksError> {
    let mut bytes = Vec::with_capacity(request.bytes.len() / REQUEST);
    for entry in request.bytes.as_chunks::<REQUEST>().0 {
        let [key @ .., mask] = *entry;
        let octet = topology.octet(level, u64::from_le_bytes(key));
        let octet = octet
            .filter(|octet| octet.owned & mask == mask)
            .ok_or_else(|| {
                RanksError::Transport(format!(
                    "rank {} requests patches of level {level} that rank {} does not own",
                    request.peer,
                    topology.rank()
                ))
            })?;
        for row in octet.rows(mask) {
            plan.send(request.peer, row);
        }
        bytes.push(topology.refined(octet));
    }
    let peer = request.peer;
    Ok(Message { peer, bytes })
}

/// Patches of an octet: its key, and the patches as a bit mask (z y x).
pub(super) type OctetPart = (u64, u8);

/// Sorts parts by key and merges parts of the same octet.
fn merge_parts(mut parts: Vec<OctetPart>) -> Vec<OctetPart> {
    parts.sort_unstable();
    parts.dedup_by(|next, merged| {
        let same = next.0 == merged.0;
        if same {
            merged.1 |= next.1;
        }
        same
    });
    parts
}

/// Returns root patches of other ranks among the 26 neighbours of own patches.
fn root_neighbours(topology: &Topology) -> Vec<OctetPart> {
    let near = topology.octets_near_others(0, NeighbourLevel::Same);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let touched = |row| neighbours_at(topology, 0, topology.index(row), None);
    merge_parts(rows.flat_map_iter(touched).collect())
}

/// Returns patches of other ranks among the 27 patches at and around `index` of `level`.
///
/// `row` is the row held at `index`, if any. Its neighbour list may predate the latest regrid, so each entry is
/// verified.
fn neighbours_at(
    topology: &Topology,
    level: usize,
    index: [i32; 3],
    row: Option<u32>,
) -> impl Iterator<Item = OctetPart> {
    let own = move |d: usize, place: [i32; 3]| {
        let next = row.and_then(|row| u32::try_from(topology.neighbours(row)[d]).ok());
        let there =
            |&next: &u32| topology.level(next) == Some(level) && topology.index(next) == place;
        next.filter(there)
            .is_some_and(|next| topology.is_owned(next))
    };
    (0..27).filter_map(move |d| {
        let place = topology.place_beside(level, index, offset(d))?;
        if own(d, place) {
            return None;
        }
        let key = topology.key_at(level, place);
        let owner = topology.partition().owner(level, key);
        (owner != topology.rank()).then(|| (key >> 3, 1 << side(place)))
    })
}

/// Returns patches of other ranks on `level` (1 or finer) among the 26 neighbours of own patches.
///
/// Needs the family links of `level` and the neighbour lists of the parents.
fn level_neighbours(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let touched = |octet: &Octet| {
        let parent = topology.parent(octet.first);
        let around = parent.map(|parent| *topology.neighbours(parent));
        let directions = (0..27).filter(|&d| d != SELF);
        directions.filter_map(move |d| {
            let next = u32::try_from(around?[d]).ok()?;
            remote_children(topology, next).map(|key| (key, children_facing(offset(d))))
        })
    };
    let near = topology.octets_near_others(level, NeighbourLevel::Same);
    merge_parts(near.flat_map_iter(touched).collect())
}

/// Returns the key of the octet of children of `row`, if it exists and another rank owns it.
///
/// Own octets are always held.
fn remote_children(topology: &Topology, row: u32) -> Option<u64> {
    let first = topology.first_child(row);
    let own = first.is_some_and(|first| topology.is_owned(first));
    (!own && !topology.is_leaf(row)).then(|| topology.key(row))
}

/// Returns patches of other ranks on `level` among the parents of own finer octets and the neighbours of these parents.
fn parents_with_neighbours(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let touched = |octet: &Octet| {
        let parent = topology.octet_place(level + 1, octet.key);
        let held = topology.octet(level, octet.key >> 3);
        neighbours_at(
            topology,
            level,
            parent,
            held.map(|held| held.first + side(parent)),
        )
    };
    let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
    merge_parts(near.flat_map_iter(touched).collect())
}

/// Returns octets of other ranks on `level` at the faces and edges of own leaf patches of the coarser level.
///
/// They hold no values, only flux and circulation registers.
fn fine_octets_at_edges(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let Some(coarser) = level.checked_sub(1) else {
        return Vec::new();
    };
    let touched = |row: u32| {
        let around = topology.neighbours(row);
        edge_providers(topology, row).filter_map(|d| {
            let next = u32::try_from(around[d]).ok()?;
            remote_children(topology, next).map(|key| (key, 0))
        })
    };
    let near = topology.octets_near_others(coarser, NeighbourLevel::Finer);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let leaves = rows.filter(|&row| topology.is_leaf(row));
    merge_parts(leaves.flat_map_iter(touched).collect())
}
