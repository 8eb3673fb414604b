//! Snapshots: numbering of rows, shards, transfer from devices, particles, derived fields and headers.
//!
//! This file defines the destination of snapshot values, the arrays that describe patches, and the numbering of patches:
//! each rank owns a contiguous part of a level's Hilbert curve, in the order of ranks. The rank that owns the first patch
//! of a shard stores it; the other ranks send it their patches.

pub(crate) mod headers;
pub(crate) mod particles;
pub(crate) mod shard_writer;
pub(crate) mod transfer;

use bevy_ecs::prelude::*;
use nestar_engine_comm::Ranks;
use nestar_engine_data::{ParticleKinds, ParticleSetRef};
use nestar_engine_mesh::Topology;
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{LEAF, ORIGIN, ParticlesHeader, SnapshotError, Values};
use std::ops::Range;

/// Receives the values of a snapshot.
pub(crate) trait SnapshotSink: Send + 'static {
    /// Result after all values are safe.
    type Stored: Send + 'static;
    /// Returns the part of a level that this sink receives.
    fn range(&self, level: usize) -> ShardRange;
    /// Takes one shard of an array, or this rank's part of it, from patch `first` of the level. Blocks while
    /// the queue is full.
    fn push(
        &mut self,
        level: usize,
        array: &str,
        first: usize,
        values: Values,
    ) -> Result<(), Error>;
    /// Waits until all values of this rank are safe.
    fn complete(self) -> Result<Self::Stored, Error>;
}

/// Returns the arrays that describe patches: origins, leaves and the numbers of particles.
pub(crate) fn structure(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let topology = world.resource::<Topology>();
    let origins = rows.iter().flat_map(|&row| topology.origin(row)).collect();
    let leaf = |&row: &u32| u8::from(topology.is_leaf(row));
    let mut arrays = vec![
        (ORIGIN.into(), Values::I32(origins)),
        (LEAF.into(), Values::U8(rows.iter().map(leaf).collect())),
    ];
    arrays.extend(particle_counts(world, rows));
    arrays
}

/// Returns the host memory for buffered values of this rank, its share of the host's limit.
pub(crate) fn buffer_limit(sim: &Engine) -> usize {
    let placement = sim.world.resource::<Ranks>().communicator().placement();
    ((sim.settings.output.buffer as usize) << 20) / placement.local_size.max(1)
}

pub(crate) fn snapshot_error(error: SnapshotError) -> Error {
    Error::Snapshot(error.to_string())
}

/// Returns the numbers of particles in some patches, one array per kind.
fn particle_counts(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let kinds = world.resource::<ParticleKinds>().all().into_iter();
    let of = |kind: ParticleSetRef| {
        let set = kind.of(world);
        let counts = rows.iter().map(|&row| set.count(row) as u32).collect();
        (name(&kind), Values::U32(counts))
    };
    kinds.map(of).collect()
}

/// Returns the names of these arrays.
pub(crate) fn particle_count_names(world: &World) -> Vec<String> {
    let kinds = world.resource::<ParticleKinds>().all();
    kinds.iter().map(name).collect()
}

fn name(kind: &ParticleSetRef) -> String {
    ParticlesHeader::counts_of(&kind.path)
}

/// Offsets of the ranks' patches on each level: 8 bytes per rank and level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatchOffsets {
    rank: usize,
    /// `[level][rank]`: number of the rank's first patch; the last entry is the total.
    firsts: Vec<Vec<usize>>,
}

impl PatchOffsets {
    /// Gathers the present offsets. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn gather(world: &World) -> Result<Self, Error> {
        let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
        let levels = 0..=topology.finest();
        let own: Vec<u64> = levels.map(|l| topology.rows(l).len() as u64).collect();
        let all = ranks
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        let counts: Vec<Vec<u64>> = all
            .iter()
            .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
            .collect();
        Ok(Self::new(ranks.rank(), &counts))
    }

    /// Computes the offsets from `counts[rank][level]` for `rank`.
    fn new(rank: usize, counts: &[Vec<u64>]) -> Self {
        let level = |level: usize| {
            let mut firsts = vec![0];
            for counts in counts {
                let before = firsts[firsts.len() - 1];
                firsts.push(before + counts[level] as usize);
            }
            firsts
        };
        Self {
            rank,
            firsts: (0..counts[rank].len()).map(level).collect(),
        }
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.firsts.len()
    }

    /// Returns the range of own patches of a level.
    pub fn own(&self, level: usize) -> Range<usize> {
        self.of(level, self.rank)
    }

    /// Returns the range of patches of a level that `rank` owns.
    fn of(&self, level: usize, rank: usize) -> Range<usize> {
        self.firsts[level][rank]..self.firsts[level][rank + 1]
    }

    /// Returns the number of patches of a level on all ranks.
    pub fn total(&self, level: usize) -> usize {
        self.firsts[level].last().copied().unwrap_or(0)
    }

    /// Returns the rank that owns a patch of a level.
    fn owner(&self, level: usize, patch: usize) -> usize {
        self.firsts[level].partition_point(|&first| first <= patch) - 1
    }

    /// Returns this rank's part of the shards of a level, with `shard` patches per shard.
    pub fn shard_range(&self, level: usize, shard: usize) -> ShardRange {
        let own = self.own(level);
        let sent = self.sent_by(level, shard, self.rank);
        ShardRange {
            sent: sent.as_ref().map_or(0, |(_, patches)| patches.len()),
            receiver: sent.map_or(self.rank, |(receiver, _)| receiver),
            first: own.start.next_multiple_of(shard).min(own.end),
            end: own.end,
            shard,
        }
    }

    /// Returns the rank to which `rank` sends patches of a level, and these patches.
    fn sent_by(&self, level: usize, shard: usize, rank: usize) -> Option<(usize, Range<usize>)> {
        let own = self.of(level, rank);
        let sent = own.start..own.start.next_multiple_of(shard).min(own.end);
        let begin = own.start / shard * shard;
        (!sent.is_empty()).then(|| (self.owner(level, begin), sent))
    }

    /// Returns the number of patches of a level that `peer` sends to this rank.
    pub fn received_from(&self, level: usize, shard: usize, peer: usize) -> usize {
        let sent = self.sent_by(level, shard, peer);
        let mine = sent.filter(|(receiver, _)| *receiver == self.rank);
        mine.map_or(0, |(_, patches)| patches.len())
    }
}

/// Describes a rank's part of the shards of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRange {
    /// Number of leading own patches in a shard of another rank.
    pub sent: usize,
    /// Rank that stores this shard.
    pub receiver: usize,
    /// Number of the first own patch after them; it starts a shard.
    pub first: usize,
    /// End of the own patches; other ranks send the rest of the last shard.
    pub end: usize,
    /// Patches per shard.
    pub shard: usize,
}

impl ShardRange {
    /// Returns the numbers of the shards that this rank stores.
    pub fn shards(&self) -> Range<u64> {
        let numbers = self.first.div_ceil(self.shard)..self.end.div_ceil(self.shard);
        match self.first < self.end {
            true => numbers.start as u64..numbers.end as u64,
            false => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::snapshot::*;

    /// Checks that every patch is in one shard, sent by one rank.
    fn check(counts: &[u64], shard: usize) {
        let all: Vec<Vec<u64>> = counts.iter().map(|&count| vec![count]).collect();
        let total = counts.iter().sum::<u64>() as usize;
        let layouts = (0..counts.len()).map(|rank| PatchOffsets::new(rank, &all));
        let mut stored = Vec::new();
        let mut sent = vec![0; counts.len()];
        let mut received = vec![0; counts.len()];
        for (rank, offsets) in layouts.enumerate() {
            let part = offsets.shard_range(0, shard);
            let own = offsets.own(0);
            assert_eq!(offsets.total(0), total);
            assert_eq!(part.sent + (part.end - part.first), own.len(), "{part:?}");
            sent[part.receiver] += part.sent;
            received[rank] = (0..counts.len())
                .map(|peer| offsets.received_from(0, shard, peer))
                .sum();
            let shards = part.shards();
            for number in shards.clone() {
                let first = number as usize * shard;
                assert!(own.contains(&first));
                stored.push(first);
            }
            let last = shards.end as usize * shard;
            let missing = match shards.is_empty() {
                true => 0,
                false => last.min(total) - part.end,
            };
            assert_eq!(received[rank], missing, "{counts:?} {shard} rank {rank}");
        }
        assert_eq!(sent, received);
        let expected: Vec<usize> = (0..total).step_by(shard).collect();
        assert_eq!(stored, expected, "{counts:?} {shard}");
    }

    #[test]
    fn every_shard_is_stored_once_and_whole() {
        for counts in [
            &[5][..],
            &[0, 5, 0],
            &[4, 4],
            &[1, 1, 1, 1, 1],
            &[0, 0, 0, 9],
            &[3, 0, 2, 8, 1, 0],
            &[9, 0, 0],
            &[0, 0],
        ] {
            for shard in [1, 2, 3, 4, 8, 100] {
                check(counts, shard);
            }
        }
    }
}
