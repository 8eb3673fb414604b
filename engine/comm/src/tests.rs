//! Tests that a hierarchy built by several ranks equals that of one rank, patch by patch.

mod circulations;
mod faces;
mod level_patches;
mod root_grid;

use super::hierarchy::{ExchangePlans, Proposal, ReceivedOctet, propose_level, rebuild, root};
use super::{Communicator, SingleRank, ThreadRank};
use nestar_engine_mesh::partition::{bits_for, hilbert_key};
use nestar_engine_mesh::topology::offset;
use nestar_engine_mesh::{Changes, Domain, HilbertPartition, Topology, audit};
use nestar_kernels::mesh::{COARSER, OUTSIDE, direction};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const MAX_LEVEL: usize = 3;

pub(super) type Index = [i32; 3];
/// Patches of a hierarchy; `true` for leaves.
type Patches = BTreeMap<(usize, Index), bool>;

/// A change of a level, by patch indices.
#[derive(Clone, Default)]
struct Step {
    level: usize,
    refine: BTreeSet<Index>,
    coarsen: BTreeSet<Index>,
    /// All patches after the change.
    after: Patches,
}

impl Step {
    /// Returns the changes of a rank's own patches.
    fn changes(&self, topology: &Topology) -> Changes {
        let rows = topology.rows(self.level).iter().copied();
        let these = |places: &BTreeSet<Index>| {
            let listed = |row: &u32| places.contains(&topology.index(*row));
            rows.clone().filter(listed).collect()
        };
        Changes {
            refine: these(&self.refine),
            coarsen: these(&self.coarsen),
        }
    }
}

/// Returns a pseudo-random number from 0 to 99.
pub(super) fn chance(words: &[i32]) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for &word in words {
        state = (state ^ word as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    state % 100
}

pub(super) fn domain(root: Index, periodic: [bool; 3]) -> Domain {
    Domain {
        root,
        left_edge: [0.0; 3],
        right_edge: [1.0; 3],
        periodic,
    }
}

fn patches(topology: &Topology) -> Patches {
    let levels =
        (0..=MAX_LEVEL).flat_map(|level| topology.rows(level).iter().map(move |&row| (level, row)));
    levels
        .map(|(level, row)| ((level, topology.index(row)), topology.is_leaf(row)))
        .collect()
}

/// Returns random changes of `level` that keep proper nesting.
fn random_changes(topology: &Topology, level: usize, seed: i32) -> Changes {
    let mut changes = Changes::default();
    for &row in topology.rows(level) {
        let [x, y, z] = topology.index(row);
        // Clumps, so that deeper levels have patches to refine.
        let lot = chance(&[seed, level as i32, x / 2, y / 2, z / 2]);
        let around = topology.neighbours(row);
        let refined = |&n: &i32| n >= 0 && !topology.is_leaf(n as u32);
        match topology.first_child(row) {
            None if lot < 45 && !around.contains(&COARSER) => changes.refine.push(row),
            Some(first) if lot > 60 => {
                let mut children = first..first + 8;
                if !children.any(|child| topology.neighbours(child).iter().any(&refined)) {
                    changes.coarsen.push(row);
                }
            }
            _ => {}
        }
    }
    changes
}

/// Creates a root grid on one rank.
pub(super) fn root_of_one_rank(domain: Domain, max_level: usize) -> (Topology, ExchangePlans) {
    let mut topology = Topology::new(domain, max_level);
    let mut plans = ExchangePlans::default();
    root(&mut topology, &SingleRank, &mut plans).unwrap();
    (topology, plans)
}

/// Applies changes of `level` on one rank.
pub(super) fn change_on_one_rank(
    topology: &mut Topology,
    plans: &mut ExchangePlans,
    level: usize,
    changes: &Changes,
) {
    let proposal = propose_level(topology, &SingleRank, level, changes, &[], 1.0).unwrap();
    assert!(!proposal.cut, "one rank is not partitioned");
    rebuild(topology, &SingleRank, plans, level + 1, &proposal, &[]).unwrap();
}

/// Builds the history of a hierarchy on one rank.
fn history(domain: Domain, seed: i32) -> Vec<Step> {
    rounds(domain, seed, [3, MAX_LEVEL]).concat()
}

/// Builds a history on one rank, in rounds of changes of all levels up to `finest`.
fn rounds(domain: Domain, seed: i32, [count, finest]: [usize; 2]) -> Vec<Vec<Step>> {
    let (mut topology, mut plans) = root_of_one_rank(domain, MAX_LEVEL);
    let mut change = |round: usize, level: usize| {
        let changes = random_changes(&topology, level, seed + 17 * round as i32);
        let places = |rows: &[u32]| rows.iter().map(|&row| topology.index(row)).collect();
        let (refine, coarsen) = (places(&changes.refine), places(&changes.coarsen));
        change_on_one_rank(&mut topology, &mut plans, level, &changes);
        audit(&topology).unwrap();
        assert!(topology.owns_all());
        let after = patches(&topology);
        Step {
            level,
            refine,
            coarsen,
            after,
        }
    };
    let levels = || (0..finest).rev().chain(0..finest);
    let round = |round| levels().map(|level| change(round, level)).collect();
    (0..count).map(round).collect()
}

/// Replay of a history by one rank.
struct Part {
    topology: Topology,
    plans: ExchangePlans,
    ranks: ThreadRank,
    imbalance: f64,
}

impl Part {
    fn new(domain: Domain, ranks: ThreadRank, imbalance: f64) -> Self {
        let mut topology = Topology::new(domain, MAX_LEVEL);
        let mut plans = ExchangePlans::default();
        root(&mut topology, &ranks, &mut plans).unwrap();
        Self {
            topology,
            plans,
            ranks,
            imbalance,
        }
    }

    fn apply(&mut self, step: &Step) {
        let changes = step.changes(&self.topology);
        let proposal = propose_level(
            &mut self.topology,
            &self.ranks,
            step.level,
            &changes,
            &[],
            self.imbalance,
        )
        .unwrap();
        self.rebuild(step.level + 1, &proposal, &step.after);
    }

    /// Rebuilds a level, which then has the patches of `after`.
    fn rebuild(&mut self, fine: usize, proposal: &Proposal, after: &Patches) {
        // In a run, former owners send these masks.
        let refined = |key: u64| {
            let half = self.topology.octet_place(fine, key);
            let bit = |c: i32| {
                let place = std::array::from_fn(|a| 2 * half[a] + (c >> a & 1));
                u8::from(after.get(&(fine, place)) == Some(&false)) << c
            };
            (0..8).map(bit).sum()
        };
        let octets = proposal.octets.iter();
        let refined: Vec<ReceivedOctet> = octets
            .map(|&(key, _)| ReceivedOctet {
                key,
                patches: u8::MAX,
                refined: refined(key),
                requested: 0,
            })
            .collect();
        let Self {
            topology,
            plans,
            ranks,
            ..
        } = self;
        rebuild(topology, ranks, plans, fine, proposal, &refined).unwrap();
    }

    fn check(&self, all: &Patches) {
        for level in 0..=MAX_LEVEL {
            let count = all.keys().filter(|(l, _)| *l == level).count();
            assert_eq!(self.topology.count(level), count);
            let rows = self.topology.rows(level);
            assert!(rows.is_sorted_by_key(|&row| self.topology.key(row)));
            for &row in rows {
                assert!(self.topology.is_owned(row));
                self.check_patch(all, level, row);
            }
            self.check_copies(all, level);
            self.check_plans(all, level);
        }
        self.check_all_are_owned(all);
    }

    /// Checks a patch, its neighbours, its parent and the neighbours of the parent.
    fn check_patch(&self, all: &Patches, level: usize, row: u32) {
        let topology = &self.topology;
        let index = topology.index(row);
        assert_eq!(all[&(level, index)], topology.is_leaf(row));
        self.check_neighbours(all, level, row);
        if level > 0 {
            let parent = topology.parent(row).unwrap();
            assert_eq!(topology.index(parent), index.map(|i| i >> 1));
            assert_eq!(topology.level(parent), Some(level - 1));
            let first = topology.first_child(parent).unwrap();
            assert!((first..first + 8).contains(&row));
            self.check_neighbours(all, level - 1, parent);
        }
    }

    fn check_neighbours(&self, all: &Patches, level: usize, row: u32) {
        let topology = &self.topology;
        for (d, &code) in topology.neighbours(row).iter().enumerate() {
            let Some(place) = topology.place_beside(level, topology.index(row), offset(d)) else {
                assert_eq!(code, OUTSIDE);
                continue;
            };
            let Some(leaf) = all.get(&(level, place)) else {
                assert_eq!(code, COARSER);
                continue;
            };
            let next = u32::try_from(code).unwrap_or_else(|_| panic!("{code} at {place:?}"));
            assert_eq!(
                (topology.level(next), topology.index(next)),
                (Some(level), place)
            );
            assert_eq!(topology.is_leaf(next), *leaf);
        }
    }

    /// Checks that the halo consists of exactly the neighbours of own patches.
    fn check_copies(&self, all: &Patches, level: usize) {
        let topology = &self.topology;
        let mut touched = BTreeSet::new();
        let mut add = |level: usize, index: Index| {
            for d in 0..27 {
                if let Some(place) = topology.place_beside(level, index, offset(d))
                    && all.contains_key(&(level, place))
                    && self.topology.owner_at(level, place) != topology.rank()
                {
                    touched.insert(place);
                }
            }
        };
        for &row in topology.rows(level) {
            add(level, topology.index(row));
        }
        for &row in topology.rows(level + 1) {
            add(level, topology.index(row).map(|i| i >> 1));
        }
        let copies = topology.copies(level);
        let places: BTreeSet<Index> = copies.iter().map(|&row| topology.index(row)).collect();
        assert_eq!(places.len(), copies.len());
        assert_eq!(places, touched);
        // This rank holds the octets of refined neighbours across faces of its leaves, and of those across an edge if no
        // refined neighbour across a face has that edge.
        for &row in topology.rows(level) {
            let around = topology.neighbours(row);
            let refined = |step: Index| {
                let next = u32::try_from(around[direction(step)]);
                next.is_ok_and(|next| !topology.is_leaf(next))
            };
            for step in (0..27).map(offset).filter(|_| topology.is_leaf(row)) {
                let axes: Vec<usize> = (0..3).filter(|&a| step[a] != 0).collect();
                let without = |axis: &usize| [0, 1, 2].map(|a| step[a] * i32::from(a != *axis));
                let known =
                    axes.len() == 3 || axes.len() == 2 && axes.iter().map(without).any(refined);
                if axes.is_empty() || known || !refined(step) {
                    continue;
                }
                let next = around[direction(step)] as u32;
                assert!(topology.first_child(next).is_some());
            }
        }
    }

    /// Checks that both sides of every message mean the same patches.
    fn check_plans(&self, all: &Patches, level: usize) {
        let (topology, ranks) = (&self.topology, &self.ranks);
        let key = |row| topology.key(row);
        let plan = &self.plans.halo[level];
        assert_eq!(plan.received(), topology.copies(level).len());
        plan.forward(ranks, key, |row, sent| assert_eq!(key(row), sent))
            .unwrap();
        let back = plan.reversed();
        back.forward(ranks, key, |row, sent| assert_eq!(key(row), sent))
            .unwrap();
        for plan in [&self.plans.edges[level], &self.plans.averages[level]] {
            plan.forward(ranks, key, |row, sent| assert_eq!(key(row), sent))
                .unwrap();
        }
        let plan = &self.plans.averages[level];
        let refined = |row: &&u32| !all[&(level, topology.index(**row))];
        let elsewhere = topology.rows(level).iter().filter(refined).filter(|row| {
            let children = topology.key(**row) << 3;
            topology.partition().owner(level + 1, children) != topology.rank()
        });
        assert_eq!(plan.received(), elsewhere.count());
    }

    fn check_all_are_owned(&self, all: &Patches) {
        let own = patches(&self.topology).len() as u64;
        let mut total = [own];
        self.ranks
            .reduce(super::Reduction::Sum, &mut total)
            .unwrap();
        assert_eq!(total[0] as usize, all.len());
    }
}

/// Stops the other ranks if this one panics.
impl Drop for Part {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.ranks.abort("a check failed");
        }
    }
}

fn compare(domain: Domain, size: usize, imbalance: f64, seed: i32) {
    let steps = history(domain, seed);
    let deepest = steps
        .iter()
        .filter(|step| step.after.keys().any(|key| key.0 == MAX_LEVEL));
    assert!(deepest.count() > 0, "the finest level is in use");
    std::thread::scope(|scope| {
        for ranks in ThreadRank::connect(size) {
            let steps = &steps;
            scope.spawn(move || {
                let mut part = Part::new(domain, ranks, imbalance);
                for step in steps {
                    part.apply(step);
                    part.check(&step.after);
                }
            });
        }
    });
}

#[test]
fn ranks_build_what_one_rank_builds() {
    for size in [1, 2, 3, 4, 7, 8] {
        compare(domain([4, 4, 4], [true; 3]), size, 1.05, 1);
    }
}

#[test]
fn a_badly_balanced_partition_is_kept_below_the_threshold() {
    compare(domain([4, 4, 4], [false, true, false]), 4, 1e9, 3);
}

#[test]
fn interior_blocks_touch_no_other_rank() {
    const LEVEL: usize = 2;
    for (root, periodic) in [([4; 3], [true; 3]), ([3, 2, 5], [false, true, false])] {
        let mut interior = [0; 4];
        for (rank, starts) in [[0, 1], [1, 1], [0, 2], [1, 2]].into_iter().enumerate() {
            let mut topology = Topology::new(domain(root, periodic), MAX_LEVEL);
            let mut cuts = HilbertPartition::new(root, 2, MAX_LEVEL + 1);
            let all = 1 << (3 * bits_for(root, LEVEL));
            cuts.set(LEVEL, vec![0, (starts[1] * all / 3) & !7]);
            topology.share_among_ranks(starts[0] as usize, cuts.into());
            let patches = root.map(|n| n << LEVEL);
            for bits in 0..4 {
                let blocks = patches.map(|n| ((n - 1) >> bits) + 1);
                let places = (0..blocks[0] * blocks[1] * blocks[2]).map(|n| {
                    let (x, y) = (n % blocks[0], n / blocks[0] % blocks[1]);
                    [x, y, n / blocks[0] / blocks[1]]
                });
                for place in places {
                    let finest = bits_for(root, LEVEL) - bits;
                    let key = hilbert_key(place.map(|i| i as u32), finest);
                    if topology.is_interior(LEVEL, bits, key) {
                        interior[rank] += 1;
                        own_around(&topology, LEVEL, place.map(|i| i << bits), 1 << bits);
                    }
                }
            }
        }
        assert!(interior.iter().any(|&blocks| blocks > 0), "{root:?}");
    }
}

/// Checks that the rank owns all patches of a cube and all patches that touch it.
fn own_around(topology: &Topology, level: usize, first: Index, across: i32) {
    for n in 0..across.pow(3) {
        let step = [n % across, n / across % across, n / across / across];
        let index: Index = std::array::from_fn(|a| first[a] + step[a]);
        if (0..3).any(|a| index[a] >= topology.domain.root[a] << level) {
            continue;
        }
        let places = (0..27).filter_map(|d| topology.place_beside(level, index, offset(d)));
        for place in places {
            let owner = topology.owner_at(level, place);
            assert_eq!(owner, topology.rank(), "{place:?} beside {index:?}");
        }
    }
}
