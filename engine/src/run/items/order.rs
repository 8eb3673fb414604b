//! Numbering of particles over ranks, and the assignment of shards to ranks.

use crate::comm::Ranks;
use crate::data::{ParticleColumn, ParticleKinds, ParticleSetRef};
use crate::mesh::Topology;
use crate::run::headers;
use crate::run::layout::PatchOffsets;
use crate::step::Error;
use bevy_ecs::prelude::*;
use nestar_deck::CodeUnits;
use nestar_snapshot as store;
use std::ops::Range;

/// Offsets of a kind of particles in a snapshot.
pub(super) struct ParticleOffsets {
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
    pub fn gather(world: &World, layout: &PatchOffsets) -> Result<Vec<Self>, Error> {
        let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
        let kinds = world.resource::<ParticleKinds>().all();
        let count = |kind: &ParticleSetRef, level: usize| -> u64 {
            let (items, rows) = (kind.of(world), topology.rows(level).iter());
            rows.map(|&row| items.count(row) as u64).sum()
        };
        let levels = layout.levels();
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
    pub fn head(&self, level: usize) -> Range<u64> {
        let own = self.own(level);
        own.start..own.start.next_multiple_of(self.shard()).min(own.end)
    }

    /// Returns the other own particles of a level; the first one starts a shard.
    pub fn rest(&self, level: usize) -> Range<u64> {
        self.head(level).end..self.own(level).end
    }

    /// Returns the rank that owns a particle.
    pub fn holder(&self, item: u64) -> usize {
        let stretch = self.firsts.partition_point(|&first| first <= item) - 1;
        stretch % self.ranks
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
    pub fn described(&self, world: &World, units: &CodeUnits) -> store::ParticlesPlan {
        let items = self.kind.of(world);
        let columns = self.columns.iter();
        store::ParticlesPlan {
            header: store::ParticlesHeader {
                path: self.kind.path.clone(),
                count: self.count(),
                version: items.version(),
            },
            dimension: items.group()[1].into(),
            columns: columns
                .map(|column| headers::of_items(units, column))
                .collect(),
        }
    }
}
