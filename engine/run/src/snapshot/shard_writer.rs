//! A rank's part of a snapshot: the shards that it stores, including patches that other ranks send.
//!
//! Patches are sent array by array as [`Store::save`](nestar_engine_data::Store::save) returns them. Halo lists are
//! not suitable: the receiver has no rows for these patches, and a shard holds one component of many patches.
//! The messages are smaller than one shard of each array.

use crate::snapshot::headers::DerivedArrays;
use crate::snapshot::particles::ParticleShards;
use crate::snapshot::{PatchOffsets, ShardRange};
use crate::snapshot::{SnapshotSink, particle_count_names, snapshot_error, structure};
use bevy_ecs::prelude::World;
use nestar_engine_comm::{Message, Ranks, RanksError};
use nestar_engine_data::StoreRef;
use nestar_engine_mesh::Topology;
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{LEAF, ORIGIN, PendingSnapshot, Role, SnapshotWriter, Values};
use std::collections::BTreeMap;
use std::ops::Range;

/// Values of patches that other ranks have sent, as bytes, by level and array.
pub(crate) type Received = BTreeMap<(usize, String), Vec<u8>>;

/// Writes a rank's shards: own patches, received patches and the fields derived from both.
pub(crate) struct ShardWriter {
    writer: SnapshotWriter,
    ranges: Vec<ShardRange>,
    received: Received,
    particles: ParticleShards,
    derived: DerivedArrays,
}

impl ShardWriter {
    /// Creates the part whose shards `writer` stores.
    pub fn new(
        writer: SnapshotWriter,
        ranges: Vec<ShardRange>,
        received: Received,
        particles: ParticleShards,
        derived: DerivedArrays,
    ) -> Self {
        Self {
            writer,
            ranges,
            received,
            particles,
            derived,
        }
    }

    /// Writes the particles.
    ///
    /// # Errors
    /// The device or the writer fails.
    pub fn push_particles(&mut self, world: &World) -> Result<(), Error> {
        self.particles.push(world, &mut self.writer)
    }

    /// Completes the part; it becomes durable in the background.
    ///
    /// # Errors
    /// A shard is missing.
    pub fn finish(self) -> Result<PendingSnapshot, Error> {
        self.writer.finish().map_err(snapshot_error)
    }
}

impl SnapshotSink for ShardWriter {
    type Stored = PendingSnapshot;

    fn range(&self, level: usize) -> ShardRange {
        self.ranges[level]
    }

    fn push(
        &mut self,
        level: usize,
        array: &str,
        first: usize,
        mut values: Values,
    ) -> Result<(), Error> {
        let part = &self.ranges[level];
        if first + part.shard > part.end
            && let Some(rest) = self.received.remove(&(level, array.to_string()))
        {
            values.append_bytes(&rest);
        }
        let made = self.derived.take((level, first), array, &values);
        let mut push = |array: &str, values| {
            let pushed = self.writer.push(level as u8, array, first as u64, values);
            pushed.map_err(snapshot_error)
        };
        push(array, values)?;
        made.into_iter()
            .try_for_each(|(array, values)| push(&array, values))
    }

    fn complete(self) -> Result<PendingSnapshot, Error> {
        let finishing = self.finish()?;
        finishing.wait_until_synced().map_err(snapshot_error)?;
        Ok(finishing)
    }
}

/// Returns the role of this rank among the writers of a snapshot.
pub(crate) fn role(ranks: &Ranks) -> Role {
    match (ranks.size(), ranks.rank()) {
        (1, _) => Role::Only,
        (_, 0) => Role::Leader,
        _ => Role::Follower,
    }
}

/// Returns this rank's part of the shards, by level.
pub(crate) fn shard_ranges(offsets: &PatchOffsets) -> Vec<ShardRange> {
    let part = |level: usize| {
        let shard = nestar_snapshot::Snapshot::shard_patches(offsets.total(level));
        offsets.shard_range(level, shard)
    };
    (0..offsets.levels()).map(part).collect()
}

/// Returns the numbers of the shards that this rank stores, by level and then by kind of particles.
pub(crate) fn shard_numbers(
    ranges: &[ShardRange],
    particles: &ParticleShards,
) -> Vec<Vec<Range<u64>>> {
    let levels = ranges.iter().map(|part| vec![part.shards()]);
    levels.chain(particles.shards()).collect()
}

/// Visits the arrays of some rows in the order of a snapshot: the patch structure, then the fields.
pub(crate) fn visit_arrays(
    sim: &Engine,
    fields: &[StoreRef],
    level: usize,
    rows: &[u32],
    mut visit: impl FnMut(&str, Values) -> Result<(), Error>,
) -> Result<(), Error> {
    for (name, values) in structure(&sim.world, rows) {
        visit(&name, values)?;
    }
    for field in fields {
        for (c, component) in field.of(&sim.world).spec().components.iter().enumerate() {
            visit(&component.name, field.of(&sim.world).save(level, c, rows)?)?;
        }
    }
    Ok(())
}

/// Packs the patches of shards that other ranks store, for each receiver by level and array.
///
/// # Errors
/// The device fails.
pub(crate) fn pack(
    sim: &Engine,
    fields: &[StoreRef],
    ranges: &[ShardRange],
) -> Result<Vec<Message>, Error> {
    let topology = sim.world.resource::<Topology>();
    let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (level, part) in ranges.iter().enumerate() {
        if part.sent == 0 {
            continue;
        }
        let message = messages.entry(part.receiver).or_default();
        let rows = &topology.rows(level)[..part.sent];
        visit_arrays(sim, fields, level, rows, |_, values| {
            message.extend_from_slice(values.bytes());
            Ok(())
        })?;
    }
    let message = |(peer, bytes)| Message { peer, bytes };
    Ok(messages.into_iter().map(message).collect())
}

/// Exchanges patches of shared shards; returns those of own shards by level and array. Collective.
///
/// # Errors
/// Another rank has failed, or a message has a wrong length.
pub(crate) fn exchange(
    sim: &Engine,
    fields: &[StoreRef],
    offsets: &PatchOffsets,
    ranges: &[ShardRange],
    messages: Vec<Message>,
) -> Result<Received, Error> {
    let ranks = sim.world.resource::<Ranks>();
    let mut received = Received::new();
    // messages arrive in the order of ranks, which is that of the patches
    for message in ranks.communicator().exchange(messages)? {
        let mut bytes = message.bytes.as_slice();
        for (level, part) in ranges.iter().enumerate() {
            let patches = offsets.received_from(level, part.shard, message.peer);
            for (name, patch_bytes) in patch_sizes(sim, fields) {
                let values = bytes.split_off(..patches * patch_bytes);
                let values = values.ok_or_else(|| wrong_length(message.peer))?;
                received
                    .entry((level, name))
                    .or_default()
                    .extend_from_slice(values);
            }
        }
        if !bytes.is_empty() {
            return Err(wrong_length(message.peer));
        }
    }
    Ok(received)
}

fn wrong_length(peer: usize) -> Error {
    let why = format!("the snapshot message from rank {peer} has a wrong length");
    RanksError::Transport(why).into()
}

/// Returns the arrays and their bytes per patch.
fn patch_sizes(sim: &Engine, fields: &[StoreRef]) -> Vec<(String, usize)> {
    let structure = [(ORIGIN.to_string(), 12), (LEAF.to_string(), 1)];
    let of_field = |field: &StoreRef| {
        let spec = field.of(&sim.world).spec();
        let bytes = spec.shape().values() * sim.precision().bytes();
        let components = spec.components.iter();
        components.map(move |component| (component.name.clone(), bytes))
    };
    let counts = particle_count_names(&sim.world)
        .into_iter()
        .map(|name| (name, 4));
    structure
        .into_iter()
        .chain(counts)
        .chain(fields.iter().flat_map(of_field))
        .collect()
}

/// Returns the bytes received from other ranks.
pub(crate) fn received_bytes(received: &Received) -> usize {
    received.values().map(Vec::len).sum()
}
