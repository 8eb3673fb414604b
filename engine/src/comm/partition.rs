//! Sharing levels out: how much work patches are, and cuts that give every rank as much of it. On levels from 1 on octets are kept
//! whole.

use super::communicator::{Communicator, RanksError, Reduction};
use crate::mesh::{Cost, LevelWork, Topology};

/// Work of an octet of patches without a [`Cost`].
pub(super) const PLAIN_OCTET_WORK: u64 = 8 * Cost::ONE;

/// The work of octets in one step of their level, by their parents' keys; `costs` has those that are not plain. Both ascend.
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

/// The work of a root grid of `patches` plain patches.
pub(super) fn root_work(patches: u64, ranks: u64) -> LevelWork {
    LevelWork {
        all: patches * Cost::ONE,
        busiest: patches.div_ceil(ranks) * Cost::ONE,
    }
}

/// What a level is cut between: patches of the root grid, octets of the others.
#[derive(Clone, Copy)]
pub(super) struct WorkUnits<'a> {
    /// Keys of their first patches, ascending.
    pub keys: &'a [u64],
    /// The work of each.
    pub work: &'a [u64],
    /// Patches of each.
    pub patches: u64,
}

/// Where the stretches of ranks begin that the units of one rank decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionStarts {
    /// By rank: the first key of its stretch; 0 where other units decide.
    pub keys: Vec<u64>,
    /// By rank: the work before its stretch.
    pub before: Vec<u64>,
}

impl PartitionStarts {
    /// Shares `total` work out to `ranks` ranks, as far as the units with the first keys `keys` decide about it, whose work follows on
    /// `before`. A rank's stretch begins with the unit in which its part of the work begins.
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

    /// What all ranks decide together.
    fn joined(self, ranks: &dyn Communicator) -> Result<Self, RanksError> {
        let size = self.keys.len();
        let mut keys = [self.keys, self.before].concat();
        ranks.reduce(Reduction::Max, &mut keys)?;
        let before = keys.split_off(size);
        Ok(Self { keys, before })
    }

    /// The most work of a rank.
    pub fn busiest(&self, total: u64) -> u64 {
        let ends = self.before.iter().skip(1).chain([&total]);
        let parts = self.before.iter().zip(ends).map(|(start, end)| end - start);
        parts.max().unwrap_or(total)
    }
}

/// Cuts `level` anew if its `units`, of which each rank knows some, are shared out badly: if the busiest rank has more than
/// `imbalance` times the work that whole plain units allow, and other cuts give it less. Whether the cuts are others now.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(super) fn balance(
    topology: &mut Topology,
    ranks: &dyn Communicator,
    level: usize,
    units: WorkUnits,
    imbalance: f64,
) -> Result<bool, RanksError> {
    let size = ranks.size();
    // by rank: work under the present cuts, then that of the units it knows; the number of units
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
    topology.set_partition(level, starts.keys);
    Ok(differs)
}

#[cfg(test)]
mod tests {
    use super::{PLAIN_OCTET_WORK, PartitionStarts, octet_work};
    use crate::mesh::LevelWork;

    #[test]
    fn equal_octets_are_cut_into_parts_that_differ_by_one() {
        let keys: Vec<u64> = (10..21).map(|key| key << 3).collect();
        let work = vec![PLAIN_OCTET_WORK; 11];
        let starts = PartitionStarts::new(&keys, &work, 0, 11 * PLAIN_OCTET_WORK, 4);
        // 11 octets, parts that begin at 0, 2.75, 5.5 and 8.25
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
    fn heavy_octets_weigh_more_and_parts_of_ranks_add_up() {
        let (keys, work) = ([0, 8, 16, 24, 32, 40], [1, 1, 6, 1, 1, 2]);
        let whole = PartitionStarts::new(&keys, &work, 0, 12, 3);
        // the parts begin at 4, in the heavy octet, and at 8
        assert_eq!(
            (&whole.keys[..], &whole.before[..]),
            (&[0, 16, 24][..], &[0, 2, 8][..])
        );
        assert_eq!(whole.busiest(12), 6);
        // two ranks that know some octets each say the same together
        let first = PartitionStarts::new(&keys[..3], &work[..3], 0, 12, 3);
        let second = PartitionStarts::new(&keys[3..], &work[3..], 8, 12, 3);
        assert_eq!(first.keys, [0, 16, 0]);
        assert_eq!(
            (second.keys, second.before),
            (vec![0, 0, 24], vec![0, 0, 8])
        );
    }

    #[test]
    fn octets_without_a_cost_are_plain() {
        let costs = [(1, 5), (3, 7), (4, 9), (9, 1)];
        let expected = [PLAIN_OCTET_WORK, 7, PLAIN_OCTET_WORK, 1];
        assert_eq!(octet_work([2, 3, 5, 9].into_iter(), &costs), expected);
        assert_eq!(octet_work([2, 3].into_iter(), &[]), [PLAIN_OCTET_WORK; 2]);
    }

    #[test]
    fn more_ranks_than_octets_leave_some_without() {
        let starts = PartitionStarts::new(&[56], &[PLAIN_OCTET_WORK], 0, PLAIN_OCTET_WORK, 3);
        assert_eq!(starts.keys, [0, 56, 56]);
        assert_eq!(starts.busiest(PLAIN_OCTET_WORK), PLAIN_OCTET_WORK);
    }

    #[test]
    fn the_imbalance_is_what_the_busiest_has_above_the_mean() {
        let mut work = LevelWork::default();
        assert_eq!(work.imbalance(4), 0.0);
        // a coarse step and two fine ones
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
