//! Particles in snapshots, sorted by level, by the Hilbert order of patches and by identity. Each rank owns a
//! contiguous part of a level. The rank that owns the first particle of a shard stores it; the others send it
//! theirs.

use crate::snapshot::headers;
use crate::snapshot::{PatchOffsets, snapshot_error};
use bevy_ecs::prelude::*;
use nestar_deck::CodeUnits;
use nestar_engine_comm::{Message, Ranks, RanksError};
use nestar_engine_data::{ParticleColumn, ParticleKinds, ParticleSet, ParticleSetRef, PatchPlace};
use nestar_engine_mesh::{Topology, parallel};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot as store;
use nestar_snapshot::{SnapshotError, SnapshotPlan, SnapshotWriter, Values};
use std::collections::BTreeMap;
use std::ops::Range;

/// Offsets of a kind of particles in a snapshot.
pub(crate) struct ParticleOffsets {
    pub kind: ParticleSetRef,
    pub columns: Vec<ParticleColumn>,
    rank: usize,
    ranks: usize,
    /// `[level * ranks + rank]`: number of the first particle; the last entry is the total.
    firsts: Vec<u64>,
}

impl ParticleOffsets {
    /// Gathers the offsets of all kinds. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn gather(world: &World, offsets: &PatchOffsets) -> Result<Vec<Self>, Error> {
        let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
        let kinds = world.resource::<ParticleKinds>().all();
        let count = |kind: &ParticleSetRef, level: usize| -> u64 {
            let (particles, rows) = (kind.of(world), topology.rows(level).iter());
            rows.map(|&row| particles.count(row) as u64).sum()
        };
        let levels = offsets.levels();
        let own = kinds
            .iter()
            .flat_map(|kind| (0..levels).map(move |l| count(kind, l)));
        let own: Vec<u64> = own.collect();
        let all = match own.is_empty() {
            true => Vec::new(),
            false => (ranks.communicator()).all_gather(bytemuck::cast_slice(&own))?,
        };
        let all = all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes));
        let all: Vec<Vec<u64>> = all.collect();
        let order = |(n, kind): (usize, ParticleSetRef)| {
            let mut firsts = vec![0];
            for level in n * levels..(n + 1) * levels {
                firsts.extend(all.iter().map(|counts| counts[level]));
            }
            (1..firsts.len()).for_each(|n| firsts[n] += firsts[n - 1]);
            Self {
                columns: kind.of(world).columns(),
                kind,
                rank: ranks.rank(),
                ranks: all.len(),
                firsts,
            }
        };
        Ok(kinds.into_iter().enumerate().map(order).collect())
    }

    /// Returns the number of all particles.
    fn count(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Returns the number of particles per shard.
    pub fn shard(&self) -> u64 {
        store::Snapshot::shard_particles(self.count())
    }

    /// Returns the range of own particles of a level.
    pub fn own(&self, level: usize) -> Range<u64> {
        let n = level * self.ranks + self.rank;
        self.firsts[n]..self.firsts[n + 1]
    }

    /// Returns own particles of a level that belong to a shard of an earlier rank.
    pub fn shared_head(&self, level: usize) -> Range<u64> {
        let own = self.own(level);
        own.start..own.start.next_multiple_of(self.shard()).min(own.end)
    }

    /// Returns the other own particles of a level; the first one starts a shard.
    pub fn rest(&self, level: usize) -> Range<u64> {
        self.shared_head(level).end..self.own(level).end
    }

    /// Returns the rank that owns a particle.
    pub fn owner(&self, item: u64) -> usize {
        let span = self.firsts.partition_point(|&first| first <= item) - 1;
        span % self.ranks
    }

    /// Returns the numbers of the shards that this rank stores.
    pub fn shards(&self, levels: usize) -> Vec<Range<u64>> {
        let (shard, rests) = (self.shard(), (0..levels).map(|level| self.rest(level)));
        let rests = rests.filter(|rest| !rest.is_empty());
        rests
            .map(|rest| rest.start / shard..rest.end.div_ceil(shard))
            .collect()
    }

    /// Returns the description for the snapshot plan.
    pub fn plan_of(&self, world: &World, units: &CodeUnits) -> store::ParticlesPlan {
        let particles = self.kind.of(world);
        let columns = self.columns.iter();
        store::ParticlesPlan {
            header: store::ParticlesHeader {
                path: self.kind.path.clone(),
                count: self.count(),
                version: particles.version(),
            },
            dimension: particles.group()[1].into(),
            columns: columns
                .map(|column| headers::particle_header(units, column))
                .collect(),
        }
    }
}

/// Particles of shared shards, by kind and first particle: the bytes of each column.
type ReceivedParticles = BTreeMap<(usize, u64), Vec<Vec<u8>>>;

/// Writes a rank's part of all kinds of particles.
#[derive(Default)]
pub(crate) struct ParticleShards {
    levels: usize,
    kinds: Vec<ParticleOffsets>,
    /// Particles that other ranks sent for own shards.
    received: ReceivedParticles,
}

impl ParticleShards {
    /// Gathers the offsets of all kinds. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn gather(world: &World, offsets: &PatchOffsets) -> Result<Self, Error> {
        Ok(Self {
            levels: offsets.levels(),
            kinds: ParticleOffsets::gather(world, offsets)?,
            received: ReceivedParticles::new(),
        })
    }

    /// Adds the particles to the plan of a snapshot.
    ///
    /// # Errors
    /// The snapshot format does not support them.
    pub fn plan(
        &self,
        sim: &Engine,
        mut plan: SnapshotPlan,
    ) -> Result<SnapshotPlan, SnapshotError> {
        let units = &sim.present_units();
        let mut kinds = self
            .kinds
            .iter()
            .map(|kind| kind.plan_of(&sim.world, units));
        kinds.try_for_each(|particles| plan.add_particles(&particles))?;
        Ok(plan)
    }

    /// Returns the numbers of the shards that this rank stores, by kind.
    pub fn shards(&self) -> impl Iterator<Item = Vec<Range<u64>>> {
        self.kinds.iter().map(|kind| kind.shards(self.levels))
    }

    /// Returns the bytes received from other ranks.
    pub fn bytes(&self) -> usize {
        self.received.values().flatten().map(Vec::len).sum()
    }

    /// Packs the particles of shards that other ranks store, one message per receiver.
    ///
    /// # Errors
    /// The device fails.
    pub fn pack(&self, world: &World) -> Result<Vec<Message>, Error> {
        let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (n, kind) in self.kinds.iter().enumerate() {
            for level in 0..self.levels {
                let head = kind.shared_head(level);
                if head.is_empty() {
                    continue;
                }
                let receiver = kind.owner(head.start / kind.shard() * kind.shard());
                let message = messages.entry(receiver).or_default();
                let numbers = [n as u64, head.start, head.end - head.start];
                message.extend_from_slice(bytemuck::cast_slice(&numbers));
                for values in LevelParticles::of(world, kind, level).values(head)? {
                    message.extend_from_slice(values.bytes());
                }
            }
        }
        let message = |(peer, bytes)| Message { peer, bytes };
        Ok(messages.into_iter().map(message).collect())
    }

    /// Exchanges particles of shared shards. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or a message is damaged.
    pub fn exchange(&mut self, world: &World, messages: Vec<Message>) -> Result<(), Error> {
        let ranks = world.resource::<Ranks>();
        if self.kinds.is_empty() {
            return Ok(());
        }
        let is_own = |message: &Message| message.peer == ranks.rank();
        let (mut arrived, leaving): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_own);
        arrived.extend(ranks.communicator().exchange(leaving)?);
        for message in arrived {
            let why = || {
                format!(
                    "the particles from rank {} for a snapshot are truncated",
                    message.peer
                )
            };
            let taken = self.unpack(&message.bytes);
            taken.ok_or_else(|| RanksError::Transport(why()))?;
        }
        Ok(())
    }

    /// Unpacks a message.
    fn unpack(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let mut number = || Some(u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?));
            let [kind, first, count] = [number()?, number()?, number()?].map(|n| n as usize);
            let columns = self.kinds.get(kind)?.columns.iter();
            let columns = columns.map(|column| {
                let length = column.bytes().checked_mul(count)?;
                Some(bytes.split_off(..length)?.to_vec())
            });
            let columns = columns.collect::<Option<_>>()?;
            self.received.insert((kind, first as u64), columns);
        }
        Some(())
    }

    /// Writes the own shards.
    ///
    /// # Errors
    /// The device or the writer fails.
    pub fn push(&mut self, world: &World, writer: &mut SnapshotWriter) -> Result<(), Error> {
        for (n, kind) in self.kinds.iter().enumerate() {
            for level in 0..self.levels {
                let (rest, particles) = (kind.rest(level), LevelParticles::of(world, kind, level));
                for first in rest.clone().step_by(kind.shard() as usize) {
                    let mut end = (first + kind.shard()).min(rest.end);
                    let mut values = particles.values(first..end)?;
                    // particles of other ranks complete the shard
                    while let Some(piece) = self.received.remove(&(n, end)) {
                        end += (piece[0].len() / kind.columns[0].bytes()) as u64;
                        let columns = values.iter_mut().zip(piece);
                        columns.for_each(|(values, bytes)| values.append_bytes(&bytes));
                    }
                    for (column, values) in kind.columns.iter().zip(values) {
                        let pushed = writer.push_particles(
                            &kind.kind.path,
                            &column.what.name,
                            first,
                            values,
                        );
                        pushed.map_err(snapshot_error)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The own particles of a level.
struct LevelParticles<'a> {
    particles: &'a dyn ParticleSet,
    columns: &'a [ParticleColumn],
    topology: &'a Topology,
    level: usize,
    /// Per own patch the number of its first particle; the last entry is the end.
    firsts: Vec<u64>,
}

impl<'a> LevelParticles<'a> {
    fn of(world: &'a World, order: &'a ParticleOffsets, level: usize) -> Self {
        let (particles, topology) = (order.kind.of(world), world.resource::<Topology>());
        let mut firsts = vec![order.own(level).start];
        for (n, &row) in topology.rows(level).iter().enumerate() {
            firsts.push(firsts[n] + particles.count(row) as u64);
        }
        Self {
            particles,
            columns: &order.columns,
            topology,
            level,
            firsts,
        }
    }

    /// Returns the values of a range of particles, by column.
    fn values(&self, range: Range<u64>) -> Result<Vec<Values>, Error> {
        let first = self.firsts.partition_point(|&n| n <= range.start) - 1;
        let end = self.firsts.partition_point(|&n| n < range.end);
        let length = self.particles.record_bytes();
        let patches: Vec<usize> = (first..end)
            .filter(|&n| self.firsts[n] < self.firsts[n + 1])
            .collect();
        let rows = self.topology.rows(self.level);
        let rows: Vec<u32> = patches.iter().map(|&n| rows[n]).collect();
        let mut records = self.particles.copy_all(&rows)?;
        for (records, n) in records.iter_mut().zip(patches) {
            records.truncate((range.end - self.firsts[n]) as usize * length);
            records.drain(..range.start.saturating_sub(self.firsts[n]) as usize * length);
        }
        let records: Vec<(u32, Vec<u8>)> = rows.into_iter().zip(records).collect();
        let columns = parallel::map(self.columns, |column| self.column(column, &records));
        Ok(columns)
    }

    /// Returns the values of a column for the records of some patches.
    fn column(&self, column: &ParticleColumn, records: &[(u32, Vec<u8>)]) -> Values {
        let mut bytes = Vec::new();
        for (row, records) in records {
            let patch = PatchPlace {
                domain: &self.topology.domain,
                level: self.level,
                index: self.topology.index(*row),
            };
            for record in records.chunks_exact(self.particles.record_bytes()) {
                match column.at {
                    Some(at) => bytes.extend_from_slice(&record[at..at + column.bytes()]),
                    None => {
                        let numbers = self.particles.derive(&column.what.name, record, &patch);
                        bytes.extend_from_slice(bytemuck::cast_slice(&numbers[..column.values()]));
                    }
                }
            }
        }
        let mut values = Values::zeros(column.data_type, 0);
        values.append_bytes(&bytes);
        values
    }
}
