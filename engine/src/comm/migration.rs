//! Migrates particles: each record goes to the leaf that contains it, on any level and rank.

use super::communicator::Message;
use super::migration_batch::{decode, encode, exchange};
use super::{Ranks, RanksError};
use crate::data::{MigrationBatch, ParticleEntityIndex, ParticleSet};
use crate::device::DeviceError;
use crate::mesh::Topology;
use crate::mesh::topology::octet::side;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Delivers the records of `parcels` to the leaves that contain them. Collective, also with nothing to send.
///
/// Records move to the parent if the patch does not exist, and to a child if it is refined.
///
/// # Errors
/// A batch names an impossible patch or holds incomplete records; another rank, the transport, the device or the memory
/// of `items` has failed.
pub(super) fn migrate(
    topology: &Topology,
    (ranks, entities): (&Ranks, &ParticleEntityIndex),
    items: &mut dyn ParticleSet,
    mut parcels: Vec<MigrationBatch>,
) -> Result<(), RanksError> {
    entities.note_migration();
    for parcel in &parcels {
        check(topology, items, parcel)?;
    }
    loop {
        let mut leaving: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        // The receiver registers them as well.
        let follow = entities.may_migrate(items);
        while !parcels.is_empty() {
            let (mut landed, mut refined) = (Vec::new(), Vec::new());
            for parcel in std::mem::take(&mut parcels) {
                let owner = topology.owner_at(parcel.level, parcel.index);
                if owner != ranks.rank() {
                    if follow {
                        entities.note(items, &parcel.records, -1);
                    }
                    let message = leaving.entry(owner);
                    encode(&parcel, message.or_insert_with(|| vec![u8::from(follow)]));
                    continue;
                }
                match topology.find(parcel.level, parcel.index) {
                    Some(row) if topology.is_leaf(row) => landed.push((row, parcel.records)),
                    Some(_) => refined.push(parcel),
                    None => parcels.push(to_parent(items, parcel)),
                }
            }
            items.put_all(landed)?;
            parcels.extend(to_children(items, &refined));
        }
        if ranks.is_single() || !ranks.any(!leaving.is_empty())? {
            return Ok(());
        }
        parcels = exchange((ranks, entities), items, leaving)?;
    }
}

/// Message to a patch, given by its index on a level.
pub type PatchMessage = ([i32; 3], Vec<u8>);

/// Sends messages to the owners of existing patches of `level`. Collective, also with nothing to send.
///
/// Returns the messages for own patches, by row.
///
/// # Errors
/// A patch does not exist; another rank or the transport has failed.
pub(super) fn send_to_patches(
    topology: &Topology,
    ranks: &Ranks,
    level: usize,
    letters: Vec<PatchMessage>,
) -> Result<Vec<(u32, Vec<u8>)>, RanksError> {
    let mut leaving: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut come = Vec::new();
    let mut take = |index: [i32; 3], bytes: Vec<u8>| match topology.find(level, index) {
        Some(row) => {
            come.push((row, bytes));
            Ok(())
        }
        None => Err(RanksError::Transport(format!(
            "a message was sent to the patch {index:?} of level {level}, which does not exist"
        ))),
    };
    for (index, bytes) in letters {
        let owner = topology.owner_at(level, index);
        if owner == ranks.rank() {
            take(index, bytes)?;
            continue;
        }
        let parcel = MigrationBatch {
            level,
            index,
            records: bytes,
        };
        encode(&parcel, leaving.entry(owner).or_default());
    }
    if !ranks.is_single() {
        let message = |(peer, bytes)| Message { peer, bytes };
        let messages = leaving.into_iter().map(message).collect();
        for message in ranks.communicator().exchange(messages)? {
            let cut = || RanksError::Transport("a message to patches is truncated".into());
            for parcel in decode(&message.bytes).ok_or_else(cut)? {
                take(parcel.index, parcel.records)?;
            }
        }
    }
    Ok(come)
}

/// Rejects batches for impossible patches and incomplete records.
fn check(
    topology: &Topology,
    items: &dyn ParticleSet,
    parcel: &MigrationBatch,
) -> Result<(), RanksError> {
    let MigrationBatch { level, index, .. } = parcel;
    let root = topology.domain.root;
    let within = (0..3).all(|a| (0..root[a] << level).contains(&index[a]));
    let whole = parcel.records.len().is_multiple_of(items.record_bytes());
    if *level <= topology.max_level && within && whole {
        return Ok(());
    }
    let (name, bytes, length) = (items.name(), parcel.records.len(), items.record_bytes());
    let why = format!(
        "particles `{name}` were sent to the patch {index:?} of level {level} with {bytes} bytes of records: there are {root:?} \
         root patches and levels up to {}, and a record has {length} bytes; plugins must remove or wrap particles that leave the domain",
        topology.max_level
    );
    Err(DeviceError::Setup(why).into())
}

/// Number of records that one task distributes to children.
const PIECE: usize = 1 << 14;

/// Distributes batches to the children of their patches; a child may get several batches.
fn to_children(items: &dyn ParticleSet, parcels: &[MigrationBatch]) -> Vec<MigrationBatch> {
    let bytes = PIECE * items.record_bytes();
    let pieces = parcels.iter().flat_map(|parcel| {
        let pieces = parcel.records.chunks(bytes);
        pieces.map(move |records| (parcel, records))
    });
    let pieces: Vec<(&MigrationBatch, &[u8])> = pieces.collect();
    let children = pieces.into_par_iter().flat_map_iter(|(parcel, records)| {
        let (level, index) = (parcel.level + 1, parcel.index);
        let children = scatter_to_children(items, records).into_iter().enumerate();
        let parcel = move |(child, records)| MigrationBatch {
            level,
            index: child_index(index, child),
            records,
        };
        children
            .filter(|(_, records)| !records.is_empty())
            .map(parcel)
    });
    children.collect()
}

/// Distributes records of a patch to its children.
fn scatter_to_children(items: &dyn ParticleSet, records: &[u8]) -> [Vec<u8>; 8] {
    let mut children = [const { Vec::new() }; 8];
    let mut own = vec![0; items.record_bytes()];
    for record in records.chunks_exact(items.record_bytes()) {
        own.copy_from_slice(record);
        let child = items.to_child(&mut own);
        children[child].extend_from_slice(&own);
    }
    children
}

/// Returns the index of a child, which is given as bits z y x.
pub(super) fn child_index(index: [i32; 3], child: usize) -> [i32; 3] {
    [0, 1, 2].map(|axis| 2 * index[axis] + (child >> axis & 1) as i32)
}

/// Converts a batch of a missing patch to one of its parent.
///
/// # Panics
/// The patch is a root patch; root patches always exist.
fn to_parent(items: &dyn ParticleSet, parcel: MigrationBatch) -> MigrationBatch {
    let MigrationBatch {
        level,
        index,
        mut records,
    } = parcel;
    assert!(level > 0, "root patches always exist: {index:?}");
    let child = side(index) as usize;
    for record in records.chunks_exact_mut(items.record_bytes()) {
        items.to_parent(child, record);
    }
    MigrationBatch {
        level: level - 1,
        index: index.map(|i| i >> 1),
        records,
    }
}
