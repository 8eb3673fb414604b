//! Partitions each level among ranks along its Hilbert curve, such that all ranks have the same work.
//!
//! On level 1 and finer the eight patches of an octet stay together.

use super::Ranks;
use super::communicator::{Communicator, Message, RanksError, Reduction};
use bevy_ecs::prelude::*;
use nestar_engine_data::{ParticleKinds, ParticleSet, ParticleSetRef};
use nestar_engine_mesh::patch::PatchComponents;
use nestar_engine_mesh::topology::shared_hierarchy::Octet;
use nestar_engine_mesh::{CELLS, Changes, Cost, LevelWork, Topology};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Work of an octet whose patches have no [`Cost`].
pub(super) const PLAIN_OCTET_WORK: u64 = 8 * Cost::ONE;

/// Returns the work of octets per step of their level. `parents` are the keys of the parents; `costs` lists octets with
/// another work than the default. Both are ascending.
pub(super) fn octet_work(parents: impl Iterator<Item = u64>, costs: &[(u64, u64)]) -> Vec<u64> {
    let mut costs = costs.iter().peekable();
    let mut work = |key: u64| {
        while costs.next_if(|(other, _)| *other < key).is_some() {}
        costs
            .next_if(|(other, _)| *other == key)
            .map_or(PLAIN_OCTET_WORK, |(_, work)| *work)
    };
    parents.map(&mut work).collect()
}

/// Returns the work of a root grid of `patches` patches without a [`Cost`].
pub(super) fn root_work(patches: u64, ranks: u64) -> LevelWork {
    LevelWork {
        all: patches * Cost::ONE,
        busiest: patches.div_ceil(ranks) * Cost::ONE,
    }
}

/// Units of a partition: patches of the root grid, octets of the other levels.
#[derive(Clone, Copy)]
pub(super) struct WorkUnits<'a> {
    /// Key of the first patch of each unit, ascending.
    pub keys: &'a [u64],
    /// Work of each unit.
    pub work: &'a [u64],
    /// Number of patches in a unit.
    pub patches: u64,
}

/// Starts of the ranks' ranges on the Hilbert curve, as far as the units of one rank determine them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionStarts {
    /// By rank: first key of its range; 0 if other units determine it.
    pub keys: Vec<u64>,
    /// By rank: total work of the ranges before it.
    pub before: Vec<u64>,
}

impl PartitionStarts {
    /// Partitions `total` work among `ranks` ranks, as far as the given units determine it.
    ///
    /// The units follow `before` work on the curve. The range of a rank starts with the unit in which its share of the
    /// work starts.
    pub fn new(keys: &[u64], work: &[u64], before: u64, total: u64, ranks: usize) -> Self {
        let mut starts = Self {
            keys: vec![0; ranks],
            before: vec![0; ranks],
        };
        let (mut rank, mut at) = (1, before);
        let target = |rank: usize| (u128::from(total) * rank as u128 / ranks as u128) as u64;
        while rank < ranks && target(rank) < before {
            rank += 1;
        }
        for (key, work) in keys.iter().zip(work) {
            while rank < ranks && target(rank) < at + work {
                (starts.keys[rank], starts.before[rank]) = (*key, at);
                rank += 1;
            }
            at += work;
        }
        starts
    }

    /// Combines the starts that all ranks have determined.
    fn joined(self, ranks: &dyn Communicator) -> Result<Self, RanksError> {
        let size = self.keys.len();
        let mut keys = [self.keys, self.before].concat();
        ranks.reduce(Reduction::Max, &mut keys)?;
        let before = keys.split_off(size);
        Ok(Self { keys, before })
    }

    /// Returns the largest work of a rank.
    pub fn busiest(&self, total: u64) -> u64 {
        let ends = self.before.iter().skip(1).chain([&total]);
        let parts = self.before.iter().zip(ends).map(|(start, end)| end - start);
        parts.max().unwrap_or(total)
    }
}

/// Repartitions `level` if its `units` are badly balanced; each rank passes the units that it knows.
///
/// A level is badly balanced if the busiest rank has more than `imbalance` times the best possible work in whole units.
/// It is repartitioned only if that lowers this work. Returns `true` if the partition has changed.
///
/// # Errors
/// Another rank or the transport has failed.
pub(super) fn balance(
    topology: &mut Topology,
    ranks: &dyn Communicator,
    level: usize,
    units: WorkUnits,
    imbalance: f64,
) -> Result<bool, RanksError> {
    let size = ranks.size();
    // By rank: work in the present partition, then work of the units that it knows; last, the number of units.
    let mut sums = vec![0u64; 2 * size + 1];
    for (key, work) in units.keys.iter().zip(units.work) {
        sums[topology.partition().owner(level, *key)] += work;
    }
    sums[size + ranks.rank()] = units.work.iter().sum();
    sums[2 * size] = units.keys.len() as u64;
    ranks.reduce(Reduction::Sum, &mut sums)?;
    let all: u64 = sums[..size].iter().sum();
    let busiest = sums[..size].iter().copied().max().unwrap_or(0);
    let fresh = topology.count(level) == 0;
    topology.set_count(level, (units.patches * sums[2 * size]) as usize);
    topology.set_work(level, LevelWork { all, busiest });
    let plain = units.patches * Cost::ONE;
    let best = all.div_ceil(size as u64).next_multiple_of(plain);
    if all == 0 || (!fresh && busiest as f64 <= imbalance * best as f64) {
        return Ok(false);
    }
    let before = sums[size..size + ranks.rank()].iter().sum();
    let starts = PartitionStarts::new(units.keys, units.work, before, all, size).joined(ranks)?;
    let after = starts.busiest(all);
    if !fresh && after >= busiest {
        return Ok(false);
    }
    let busiest = after;
    topology.set_work(level, LevelWork { all, busiest });
    let differs = topology.partition().starts(level) != starts.keys;
    if differs {
        topology.set_partition(level, starts.keys);
    }
    Ok(differs)
}

/// Work of the patches of this rank.
pub(crate) struct PatchWork<'a> {
    world: &'a World,
    topology: &'a Topology,
    /// Is `true` if patches may have a [`Cost`].
    measured: bool,
    /// Kinds of particles with a work.
    kinds: Vec<&'a dyn ParticleSet>,
}

impl<'a> PatchWork<'a> {
    /// Returns the work of the patches in `world`, or `None` if all patches are equal or belong to one rank.
    pub fn of(world: &'a World) -> Option<Self> {
        if !world.resource::<Topology>().is_shared() {
            return None;
        }
        let kinds = world.resource::<ParticleKinds>().all();
        let kinds = kinds.iter().map(|kind: &ParticleSetRef| kind.of(world));
        let weights = Self {
            world,
            topology: world.resource::<Topology>(),
            measured: world.resource::<PatchComponents>().has::<Cost>(),
            kinds: kinds.filter(|items| items.weight() > 0.0).collect(),
        };
        (weights.measured || !weights.kinds.is_empty()).then_some(weights)
    }

    /// Returns the measured cost of a patch, if any.
    fn measured(&self, row: u32) -> Option<u64> {
        let entity = self.measured.then(|| self.topology.entity(row))?;
        Some(self.world.get::<Cost>(entity)?.work())
    }

    /// Returns the work of the particles in a patch.
    fn items(&self, row: u32) -> u64 {
        let kinds = self.kinds.iter();
        let work = kinds.map(|items| work_of_particles(items.weight(), items.count(row) as u64));
        work.sum()
    }

    /// Returns the work of own patches of a level, in Hilbert order.
    pub fn level(&self, level: usize) -> Vec<u64> {
        let rows = self.topology.rows(level).par_iter().with_min_len(1024);
        let work = |&row: &u32| self.measured(row).unwrap_or(Cost::ONE) + self.items(row);
        rows.map(work).collect()
    }

    /// Returns the octets finer than `level` whose work differs from the default, by ascending key of the parent.
    /// Collective.
    ///
    /// `before` are the own octets so far; `changes` are those of own patches of `level`.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn octets(
        &self,
        level: usize,
        before: &[Octet],
        changes: &Changes,
    ) -> Result<Vec<(u64, u64)>, RanksError> {
        let topology = self.topology;
        let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for octet in before {
            let rows = || octet.rows(octet.owned);
            let items: u64 = rows().map(|row| self.items(row)).sum();
            let measured: Vec<Option<u64>> = rows().map(|row| self.measured(row)).collect();
            if items > 0 || measured.iter().any(Option::is_some) {
                let measured = measured.iter().map(|work| work.unwrap_or(Cost::ONE));
                let work = measured.sum::<u64>() + items;
                let peer = topology.partition().owner(level, octet.key);
                let message = messages.entry(peer).or_default();
                message.extend([octet.key, work].into_iter().flat_map(u64::to_le_bytes));
            }
        }
        let received = self.world.resource::<Ranks>().exchange_bytes(messages)?;
        let words = |message: &Message| bytemuck::pod_collect_to_vec::<u8, u64>(&message.bytes);
        let words: Vec<u64> = received.iter().flat_map(words).collect();
        let reported = words.as_chunks().0.iter().map(|&[key, work]| (key, work));
        // New children inherit the measured cost of their parent, and get its particles.
        let new = changes.refine.iter().map(|&row| {
            let measured = self.measured(row).unwrap_or(Cost::ONE);
            (topology.key(row), 8 * measured + self.items(row))
        });
        let mut all: Vec<(u64, u64)> = reported.chain(new).collect();
        all.sort_unstable();
        Ok(all)
    }
}

/// Returns the work of `count` particles, each of which equals the work of `weight` cells.
pub(crate) fn work_of_particles(weight: f64, count: u64) -> u64 {
    (weight * count as f64 * (Cost::ONE / CELLS as u64) as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::{PLAIN_OCTET_WORK, PartitionStarts, octet_work};
    use nestar_engine_mesh::LevelWork;

    #[test]
    fn equal_octets_are_partitioned_into_parts_that_differ_by_one() {
        let keys: Vec<u64> = (10..21).map(|key| key << 3).collect();
        let work = vec![PLAIN_OCTET_WORK; 11];
        let starts = PartitionStarts::new(&keys, &work, 0, 11 * PLAIN_OCTET_WORK, 4);
        // Eleven octets; parts start at 0, 2.75, 5.5 and 8.25.
        assert_eq!(starts.keys, [0, 12 << 3, 15 << 3, 18 << 3]);
        assert_eq!(
            starts.before,
            [
                0,
                2 * PLAIN_OCTET_WORK,
                5 * PLAIN_OCTET_WORK,
                8 * PLAIN_OCTET_WORK
            ]
        );
        assert_eq!(starts.busiest(11 * PLAIN_OCTET_WORK), 3 * PLAIN_OCTET_WORK);
        assert!(
            starts.keys.iter().all(|key| key % 8 == 0),
            "octets are whole"
        );
    }

    #[test]
    fn heavy_octets_shift_the_partition_and_ranks_agree_on_it() {
        let (keys, work) = ([0, 8, 16, 24, 32, 40], [1, 1, 6, 1, 1, 2]);
        let whole = PartitionStarts::new(&keys, &work, 0, 12, 3);
        // The parts start at 4, in the heavy octet, and at 8.
        assert_eq!(
            (&whole.keys[..], &whole.before[..]),
            (&[0, 16, 24][..], &[0, 2, 8][..])
        );
        assert_eq!(whole.busiest(12), 6);
        // Two ranks that know some octets each determine the same partition.
        let first = PartitionStarts::new(&keys[..3], &work[..3], 0, 12, 3);
        let second = PartitionStarts::new(&keys[3..], &work[3..], 8, 12, 3);
        assert_eq!(first.keys, [0, 16, 0]);
        assert_eq!(
            (second.keys, second.before),
            (vec![0, 0, 24], vec![0, 0, 8])
        );
    }

    #[test]
    fn octets_without_a_cost_have_the_default_work() {
        let costs = [(1, 5), (3, 7), (4, 9), (9, 1)];
        let expected = [PLAIN_OCTET_WORK, 7, PLAIN_OCTET_WORK, 1];
        assert_eq!(octet_work([2, 3, 5, 9].into_iter(), &costs), expected);
        assert_eq!(octet_work([2, 3].into_iter(), &[]), [PLAIN_OCTET_WORK; 2]);
    }

    #[test]
    fn more_ranks_than_octets_leave_some_ranks_empty() {
        let starts = PartitionStarts::new(&[56], &[PLAIN_OCTET_WORK], 0, PLAIN_OCTET_WORK, 3);
        assert_eq!(starts.keys, [0, 56, 56]);
        assert_eq!(starts.busiest(PLAIN_OCTET_WORK), PLAIN_OCTET_WORK);
    }

    #[test]
    fn the_imbalance_is_the_excess_of_the_busiest_rank_over_the_mean() {
        let mut work = LevelWork::default();
        assert_eq!(work.imbalance(4), 0.0);
        // A coarse step and two fine steps.
        work.add(LevelWork { all: 8, busiest: 3 });
        work.add(LevelWork {
            all: 12,
            busiest: 3,
        });
        work.add(LevelWork {
            all: 12,
            busiest: 4,
        });
        assert_eq!(work.imbalance(4), 0.25);
        assert_eq!(LevelWork { all: 5, busiest: 5 }.imbalance(1), 0.0);
    }
}
