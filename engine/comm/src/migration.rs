//! Migrates particles: each record goes to the leaf that contains it, on any level and rank.

use super::{Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_engine_data::{
    FaultBox, InitialEstimate, MigrationBatch, ParticleEntityIndex, ParticleKinds, ParticleSet,
};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::topology::shared_hierarchy::{Octet, side};
use nestar_engine_mesh::{Changes, Topology};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Delivers the records of `batches` to the leaves that contain them. Collective, also with nothing to send.
///
/// Records move to the parent if the patch does not exist, and to a child if it is refined.
///
/// # Errors
/// A batch names an impossible patch or holds incomplete records; another rank, the transport, the device or the memory
/// of `items` has failed.
pub(super) fn migrate(
    topology: &Topology,
    ranks: &Ranks,
    entities: &ParticleEntityIndex,
    items: &mut dyn ParticleSet,
    mut batches: Vec<MigrationBatch>,
) -> Result<(), RanksError> {
    entities.note_migration();
    for batch in &batches {
        check(topology, items, batch)?;
    }
    loop {
        let mut outgoing: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        // The receiver registers them as well.
        let tracked = entities.may_migrate(items);
        while !batches.is_empty() {
            let (mut arrived, mut refined) = (Vec::new(), Vec::new());
            for batch in std::mem::take(&mut batches) {
                let owner = topology.owner_at(batch.level, batch.index);
                if owner != ranks.rank() {
                    if tracked {
                        entities.note(items, &batch.records, -1);
                    }
                    let message = outgoing.entry(owner);
                    encode(&batch, message.or_insert_with(|| vec![u8::from(tracked)]));
                    continue;
                }
                match topology.find(batch.level, batch.index) {
                    Some(row) if topology.is_leaf(row) => arrived.push((row, batch.records)),
                    Some(_) => refined.push(batch),
                    None => batches.push(to_parent(items, batch)),
                }
            }
            items.put_all(arrived)?;
            batches.extend(to_children(items, &refined));
        }
        if !ranks.any(!outgoing.is_empty())? {
            return Ok(());
        }
        batches = exchange_batches(ranks, entities, items, outgoing)?;
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
    messages: Vec<PatchMessage>,
) -> Result<Vec<(u32, Vec<u8>)>, RanksError> {
    let mut outgoing: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut received = Vec::new();
    let mut take = |index: [i32; 3], bytes: Vec<u8>| match topology.find(level, index) {
        Some(row) => {
            received.push((row, bytes));
            Ok(())
        }
        None => Err(RanksError::Transport(format!(
            "a message was sent to the patch {index:?} of level {level}, which does not exist"
        ))),
    };
    for (index, bytes) in messages {
        let owner = topology.owner_at(level, index);
        if owner == ranks.rank() {
            take(index, bytes)?;
            continue;
        }
        let batch = MigrationBatch {
            level,
            index,
            records: bytes,
        };
        encode(&batch, outgoing.entry(owner).or_default());
    }
    for message in ranks.exchange_bytes(outgoing)? {
        let cut = || RanksError::Transport("a message to patches is truncated".into());
        for batch in decode(&message.bytes).ok_or_else(cut)? {
            take(batch.index, batch.records)?;
        }
    }
    Ok(received)
}

/// Rejects batches for impossible patches and incomplete records.
fn check(
    topology: &Topology,
    items: &dyn ParticleSet,
    batch: &MigrationBatch,
) -> Result<(), RanksError> {
    let MigrationBatch { level, index, .. } = batch;
    let root = topology.domain.root;
    let within = (0..3).all(|a| (0..root[a] << level).contains(&index[a]));
    let whole = batch.records.len().is_multiple_of(items.record_bytes());
    if *level <= topology.max_level && within && whole {
        return Ok(());
    }
    let (name, bytes, length) = (items.name(), batch.records.len(), items.record_bytes());
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
fn to_children(items: &dyn ParticleSet, batches: &[MigrationBatch]) -> Vec<MigrationBatch> {
    let bytes = PIECE * items.record_bytes();
    let pieces = batches.iter().flat_map(|batch| {
        let pieces = batch.records.chunks(bytes);
        pieces.map(move |records| (batch, records))
    });
    let pieces: Vec<(&MigrationBatch, &[u8])> = pieces.collect();
    let children = pieces.into_par_iter().flat_map_iter(|(batch, records)| {
        let (level, index) = (batch.level + 1, batch.index);
        let children = scatter_to_children(items, records).into_iter().enumerate();
        let batch = move |(child, records)| MigrationBatch {
            level,
            index: child_index(index, child),
            records,
        };
        children
            .filter(|(_, records)| !records.is_empty())
            .map(batch)
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
fn child_index(index: [i32; 3], child: usize) -> [i32; 3] {
    [0, 1, 2].map(|axis| 2 * index[axis] + (child >> axis & 1) as i32)
}

/// Converts a batch of a missing patch to one of its parent.
///
/// # Panics
/// The patch is a root patch; root patches always exist.
fn to_parent(items: &dyn ParticleSet, batch: MigrationBatch) -> MigrationBatch {
    let MigrationBatch {
        level,
        index,
        mut records,
    } = batch;
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

/// Exchanges encoded batches by rank and returns the received ones.
///
/// The first byte of a message tells whether entities may be attached to its particles.
fn exchange_batches(
    ranks: &Ranks,
    entities: &ParticleEntityIndex,
    items: &dyn ParticleSet,
    outgoing: BTreeMap<usize, Vec<u8>>,
) -> Result<Vec<MigrationBatch>, RanksError> {
    let mut all = Vec::new();
    for message in ranks.exchange_bytes(outgoing)? {
        let why = || format!("a message with particles `{}` is truncated", items.name());
        let cut = || RanksError::Transport(why());
        let (tracked, bytes) = message.bytes.split_first().ok_or_else(cut)?;
        let received = decode(bytes).ok_or_else(cut)?;
        if *tracked > 0 {
            let each = received.iter();
            each.for_each(|batch| entities.note(items, &batch.records, 1));
        }
        all.extend(received);
    }
    Ok(all)
}

/// Appends a batch as bytes: level (u32), index (3 i32), length of the records (u64), records.
fn encode(batch: &MigrationBatch, bytes: &mut Vec<u8>) {
    bytes.extend((batch.level as u32).to_le_bytes());
    bytes.extend(batch.index.iter().flat_map(|i| i.to_le_bytes()));
    bytes.extend((batch.records.len() as u64).to_le_bytes());
    bytes.extend(&batch.records);
}

/// Decodes consecutive batches written by [`encode`].
fn decode(mut bytes: &[u8]) -> Option<Vec<MigrationBatch>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let level = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        let mut index = [0; 3];
        for i in &mut index {
            *i = i32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        }
        let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        batches.push(MigrationBatch {
            level: level as usize,
            index,
            records: bytes.split_off(..usize::try_from(length).ok()?)?.to_vec(),
        });
    }
    Some(batches)
}

/// Particles without a leaf patch during a regrid.
#[derive(Default)]
pub struct Displaced {
    /// Particles of removed patches, by kind in order of registration.
    batches: Vec<Vec<MigrationBatch>>,
    /// Levels and indices of the removed patches.
    ///
    /// The order is that in which they were passed to kinds that move particles themselves.
    removed: Vec<(usize, [i32; 3])>,
    /// Refined patches, each with its level. Their particles stay in them and are delivered in batches.
    refined: Vec<(usize, u32)>,
}

/// Approximate size of a batch of records that leaves refined patches, bytes.
const BATCH_BYTES: usize = 1 << 28;

impl Displaced {
    /// Detaches the particles of removed or moved patches of level `fine`.
    ///
    /// `removed` returns the rows, which nobody uses yet, and the indices of these patches. Particles of coarse patches
    /// that `changes` refines are moved later. Errors are stored in [`FaultBox`].
    pub fn detach(
        &mut self,
        world: &mut World,
        fine: usize,
        changes: &Changes,
        removed: impl FnOnce(&Topology) -> Vec<(u32, [i32; 3])>,
    ) {
        let kinds = world.resource::<ParticleKinds>().all();
        if kinds.is_empty() || world.contains_resource::<InitialEstimate>() {
            return;
        }
        let refined = changes.refine.iter().map(|&row| (fine - 1, row));
        self.refined.extend(refined);
        let removed = removed(world.resource::<Topology>());
        let rows: Vec<u32> = removed.iter().map(|(row, _)| *row).collect();
        let places = removed.iter().map(|(_, index)| (fine, *index));
        self.removed.extend(places.clone());
        for (n, kind) in kinds.into_iter().enumerate() {
            self.batches
                .resize_with(self.batches.len().max(n + 1), Vec::new);
            let displaced = &mut self.batches[n];
            kind.scope(world, |world, items| {
                if let Some(remapping) = items.remap_on_regrid() {
                    remapping.detach(&rows);
                }
                match items.take_all(&rows) {
                    Ok(records) => displaced.extend(to_batches(places.clone(), records)),
                    Err(error) => {
                        world.resource::<FaultBox>().check(Err(error));
                    }
                }
            });
        }
    }

    /// Collects the particles in own patches with children, after initial conditions were created again.
    pub fn in_refined_patches(world: &World) -> Self {
        let topology = world.resource::<Topology>();
        let of_level = |level| topology.rows(level).iter().map(move |&row| (level, row));
        let patches = (0..=topology.finest()).flat_map(of_level);
        Self {
            refined: patches.filter(|(_, row)| !topology.is_leaf(*row)).collect(),
            ..Self::default()
        }
    }

    /// Delivers the particles to their leaves. Collective; an error on one rank ends all ranks.
    ///
    /// # Errors
    /// As `migrate`.
    pub fn reinsert(mut self, world: &mut World) -> Result<(), RanksError> {
        if world.contains_resource::<InitialEstimate>() {
            return Ok(());
        }
        for (n, kind) in world
            .resource::<ParticleKinds>()
            .all()
            .into_iter()
            .enumerate()
        {
            let mut displaced = self.batches.get_mut(n).map(std::mem::take);
            let mut delivered = Ok(());
            kind.scope(world, |world, items| {
                let mut displaced = displaced.take().unwrap_or_default();
                delivered = remap(world, items, &self.removed, &self.refined)
                    .map(|left| displaced.extend(left))
                    .and_then(|()| migrate_in_batches(world, items, displaced, &self.refined));
            });
            delivered?;
        }
        Ok(())
    }
}

/// Lets kinds that support it move particles to leaves of this rank without records.
///
/// Particles come from removed patches, given by level and index, and from `refined` patches. Returns the remaining
/// particles of removed patches.
fn remap(
    world: &World,
    items: &mut dyn ParticleSet,
    removed: &[(usize, [i32; 3])],
    refined: &[(usize, u32)],
) -> Result<Vec<MigrationBatch>, RanksError> {
    let Some(remapping) = items.remap_on_regrid() else {
        return Ok(Vec::new());
    };
    let topology = world.resource::<Topology>();
    let is_own_leaf = |row: u32| topology.is_owned(row) && topology.is_leaf(row);
    let above = |&(level, index): &(usize, [i32; 3])| {
        let row = topology.find(level.checked_sub(1)?, index.map(|i| i >> 1))?;
        is_own_leaf(row).then_some((row, side(index) as usize))
    };
    let children = |&(_, row): &(usize, u32)| {
        let first = topology.first_child(row)?;
        (first..first + 8).all(is_own_leaf).then_some((row, first))
    };
    let above: Vec<_> = removed.iter().map(above).collect();
    let refined: Vec<_> = refined.iter().filter_map(children).collect();
    let records = remapping.reinsert(topology, &above, &refined)?;
    Ok(to_batches(removed.iter().copied(), records).collect())
}

/// Delivers the particles of `displaced` and of `refined` patches to their leaves, in batches. Collective.
fn migrate_in_batches(
    world: &World,
    items: &mut dyn ParticleSet,
    mut displaced: Vec<MigrationBatch>,
    mut refined: &[(usize, u32)],
) -> Result<(), RanksError> {
    let topology = world.resource::<Topology>();
    let ranks = world.resource::<Ranks>();
    let entities = world.resource::<ParticleEntityIndex>();
    loop {
        let (now, rest) = refined.split_at(batch_length(items, refined));
        let rows: Vec<u32> = now.iter().map(|(_, row)| *row).collect();
        let places = now.iter().map(|&(level, row)| (level, topology.index(row)));
        displaced.extend(to_batches(places, items.take_all(&rows)?));
        migrate(
            topology,
            ranks,
            entities,
            items,
            std::mem::take(&mut displaced),
        )?;
        refined = rest;
        if !ranks.any(!refined.is_empty())? {
            return Ok(());
        }
    }
}

/// Returns the number of patches in the next batch, at least one if there are any.
fn batch_length(items: &dyn ParticleSet, patches: &[(usize, u32)]) -> usize {
    let mut bytes = 0;
    let full = |(_, row): &(usize, u32)| {
        let before = bytes;
        bytes += items.count(*row) * items.record_bytes();
        before > 0 && bytes > BATCH_BYTES
    };
    patches.iter().position(full).unwrap_or(patches.len())
}

/// Converts records of patches, each given by level and index, to batches; empty ones are dropped.
fn to_batches(
    places: impl Iterator<Item = (usize, [i32; 3])>,
    records: Vec<Vec<u8>>,
) -> impl Iterator<Item = MigrationBatch> {
    let all = places
        .zip(records)
        .map(|((level, index), records)| MigrationBatch {
            level,
            index,
            records,
        });
    all.filter(|batch| !batch.records.is_empty())
}

/// Returns the row and index of the patches of `before` that this rank no longer owns. `before` is ascending.
pub(crate) fn removed_patches(
    topology: &Topology,
    level: usize,
    before: &[Octet],
) -> Vec<(u32, [i32; 3])> {
    let mut octets = topology.octets(level).iter().peekable();
    let patches = |octet: &Octet| {
        while octets.next_if(|now| now.key < octet.key).is_some() {}
        let same = octets.next_if(|now| now.key == octet.key);
        let gone = octet.owned & !same.map_or(0, |now| now.owned);
        let half = (gone != 0).then(|| topology.octet_place(level, octet.key));
        let first = octet.first;
        let patch = move |row: u32| Some((row, child_index(half?, (row - first) as usize)));
        octet.rows(gone).filter_map(patch)
    };
    before.iter().flat_map(patches).collect()
}

#[cfg(test)]
mod tests {
    use super::{MigrationBatch, decode, encode};

    #[test]
    fn batches_survive_encoding() {
        let batch = |level, index, length| MigrationBatch {
            level,
            index,
            records: vec![7; length],
        };
        let batches = vec![batch(0, [0; 3], 300), batch(12, [-1, i32::MAX, 5], 1)];
        let mut bytes = Vec::new();
        batches.iter().for_each(|batch| encode(batch, &mut bytes));
        assert_eq!(decode(&bytes), Some(batches));
        for length in [1, 19, 21, bytes.len() - 1] {
            assert_eq!(decode(&bytes[..length]), None, "{length}");
        }
    }
}
