//! What the patches asked for will take: of the whole run by a rule, on a rank by foresight.

use super::items::particle_bytes;
use crate::comm::Ranks;
use crate::data::{Correct, FieldSpec, Precision, StoreRef, Stores};
use crate::mesh::Topology;
use crate::step::Settings;
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::fluxes::{FACE, QUARTER};

/// Bytes of a row in the tables of the topology.
pub(super) const TABLES: u64 = 176;
/// Bytes of a row in what says which faces have registers.
const SLOTS: u64 = 48;
/// Rows that a pool grows by.
const SLAB: u64 = 128;
/// Values of a component in the registers of a coarse-fine face: the coarse flux, and for each of four fine faces the first
/// flux, its change and the step under way.
const FACE_VALUES: u64 = (FACE + 4 * 3 * QUARTER) as u64;
/// Most coarse-fine faces that an octet has, and that its coming or going makes.
const FACES: u64 = 6;

/// The sum of `bytes` of a declaration, in the run's precision, over all fields.
fn sum_of_fields(world: &World, bytes: impl Fn(&FieldSpec, Precision) -> usize) -> u64 {
    let precision = world.resource::<Settings>().run.precision;
    let fields = world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| bytes(field.of(world).spec(), precision) as u64;
    fields.iter().map(bytes).sum()
}

/// Bytes that the fields, the tables and the expected items take with `rows` rows, by a rule that is the same on every device and rank: a run that a
/// limit caps gives the same bits everywhere. Functions of what surrounds cells that change a field in place count from their first
/// use on.
#[must_use]
pub fn needed(world: &World, rows: usize) -> u64 {
    field_bytes(world, rows).saturating_add(particle_bytes(world, rows, 1))
}

/// The same of the fields and the tables alone.
#[must_use]
pub fn field_bytes(world: &World, rows: usize) -> u64 {
    let rows = rows as u64;
    let fields = world.resource::<Stores>().all();
    let row: usize = fields.iter().map(|f| f.of(world).total_row_bytes()).sum();
    rows.next_multiple_of(SLAB) * row as u64 + rows * TABLES
}

/// Rows of the whole hierarchy when `refined` patches have got children and `coarsened` have lost theirs, on one rank or on
/// many: every patch counts once.
pub(super) fn whole_rows(topology: &Topology, refined: u64, coarsened: u64) -> usize {
    let finer: usize = (1..=topology.max_level)
        .map(|level| topology.count(level))
        .sum();
    let now = topology.root_rows() + finer;
    (now + 8 * refined as usize).saturating_sub(8 * coarsened as usize)
}

/// Octets that a rank will have of the level that changes, and hold of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Octets {
    pub own: u64,
    pub others: u64,
}

/// A change of a level's patches as one rank foresees it.
pub struct RegridDemand<'a> {
    world: &'a World,
    topology: &'a Topology,
    ranks: u64,
    /// The level whose patches come and go.
    fine: usize,
    coarsened: u64,
    /// What is held of the level now.
    now: Octets,
    /// Bytes that registers take now.
    registers: u64,
}

impl<'a> RegridDemand<'a> {
    /// The children of `level`'s patches change, of which `coarsened` lose theirs.
    #[must_use]
    pub fn new(world: &'a World, level: usize, coarsened: u64) -> Self {
        let topology = world.resource::<Topology>();
        let fields = world.resource::<Stores>().all();
        let held = topology.octets(level + 1);
        let own = held.iter().filter(|octet| octet.owned != 0).count() as u64;
        let registers: usize = fields.iter().map(|f| f.of(world).register_bytes()).sum();
        Self {
            world,
            topology,
            ranks: world.resource::<Ranks>().size() as u64,
            fine: level + 1,
            coarsened,
            now: Octets {
                own,
                others: held.len() as u64 - own,
            },
            registers: registers as u64,
        }
    }

    /// Rows that this rank will hold when `refined` patches of all ranks have got children.
    #[must_use]
    pub fn rows(&self, refined: u64) -> usize {
        if !self.topology.is_shared() {
            let (refined, coarsened) = (refined as usize, self.coarsened as usize);
            return self.topology.rows_with(refined, coarsened);
        }
        let all = self.octets_of_all(refined);
        let imbalance = self.world.resource::<Settings>().run.imbalance;
        let after = predicted_octets(self.now, all, self.ranks, refined, imbalance);
        let levels = 0..=self.topology.max_level;
        let held: usize = levels.map(|l| self.topology.octets(l).len()).sum();
        let same = held as u64 - self.now.own - self.now.others;
        let rows = 8 * (same + self.parents(after) + after.own + after.others);
        (rows as usize).max(self.topology.capacity())
    }

    fn octets_of_all(&self, refined: u64) -> u64 {
        let now = (self.topology.count(self.fine) / 8) as u64;
        (now + refined).saturating_sub(self.coarsened)
    }

    /// Octets of the coarser level that are held besides, since own patches stand on them.
    fn parents(&self, after: Octets) -> u64 {
        let coarse = self.topology.octets(self.fine - 1);
        let others = coarse.iter().filter(|octet| octet.owned == 0).count() as u64;
        let all = (self.topology.count(self.fine - 1) as u64).div_ceil(8);
        let more = match self.now.own {
            // eight parents are an octet; their surroundings come along
            0 => after.own.div_ceil(4),
            own => (others * after.own).div_ceil(own).saturating_sub(others),
        };
        more.min(all.saturating_sub(coarse.len() as u64))
    }

    /// Bytes that this rank will need at most for its rows, for registers and for patches on their way between ranks.
    #[must_use]
    pub fn bytes(&self, refined: u64) -> u64 {
        let rows = self.rows(refined);
        let more = rows.saturating_sub(self.topology.capacity()) as u64;
        // items that are there are no part of what is free
        field_bytes(self.world, rows)
            + self.register_bytes(refined, rows)
            + more * SLOTS
            + self.moved(refined)
    }

    /// What registers will take: each octet that comes or goes makes six coarse-fine faces at most.
    fn register_bytes(&self, refined: u64, rows: usize) -> u64 {
        // buffers are made an eighth longer than they must be
        let value = sum_of_fields(self.world, |spec, precision| match spec.correct {
            Correct::Fluxes => spec.components.len() * precision.bytes(),
            Correct::None => 0,
        });
        let octet = FACES * FACE_VALUES * value * 9 / 8;
        let all = rows as u64 / 8 * octet + rows as u64 * SLOTS;
        all.min(self.registers + (refined + self.coarsened) * octet)
    }

    /// Patches that may be on their way when the level is cut anew: what leaves and what comes, in messages. A cut lies off
    /// by what the ranks before it have too much, or too little.
    fn moved(&self, refined: u64) -> u64 {
        if self.ranks == 1 || self.now.own == 0 {
            return 0;
        }
        let imbalance = self.world.resource::<Settings>().run.imbalance;
        let all = self.octets_of_all(refined);
        let off = (imbalance - 1.0) * all as f64 / 2.0;
        let most = off.min(all as f64) as u64 + refined + self.coarsened;
        let own = all.div_ceil(self.ranks);
        let octets = most.min(self.now.own) + most.min(own);
        let row = |spec: &FieldSpec, p: Precision| spec.row_values() * p.bytes();
        8 * octets * sum_of_fields(self.world, row)
    }
}

/// The octets of a rank, which has `now`, of a level of `all` octets, when `refined` new ones have come: the level is cut anew
/// where a rank has more than `imbalance` times its part.
fn predicted_octets(now: Octets, all: u64, ranks: u64, refined: u64, imbalance: f64) -> Octets {
    let part = all.div_ceil(ranks);
    let let_be = (imbalance * part as f64).min(all as f64) as u64;
    let own = part.max(let_be.min(now.own + refined)).min(all);
    let like_now = match now.own {
        0 => 0,
        n => (now.others * own).div_ceil(n),
    };
    Octets {
        own,
        others: like_now.max(shell(own)).min(all - own),
    }
}

/// Octets around a cube of `octets`.
fn shell(octets: u64) -> u64 {
    let width = (0..).find(|n: &u64| n.pow(3) >= octets).unwrap_or(0);
    match octets {
        0 => 0,
        _ => (width + 2).pow(3) - width.pow(3),
    }
}

/// As [`needed`], of each of `ranks` ranks that share a hierarchy of `rows` rows, with the copies that they keep of each other's.
#[must_use]
pub fn needed_per_rank(world: &World, rows: usize, ranks: usize) -> u64 {
    let part = rows_per_rank(rows, ranks);
    field_bytes(world, part).saturating_add(particle_bytes(world, part, ranks))
}

/// Rows that a rank has of a hierarchy of `rows` rows that `ranks` ranks are about to share.
pub(super) fn rows_per_rank(rows: usize, ranks: usize) -> usize {
    let (all, ranks) = ((rows as u64).div_ceil(8), ranks as u64);
    if ranks == 1 {
        return rows;
    }
    let own = all.div_ceil(ranks);
    (8 * (own + shell(own).min(all - own))) as usize
}

#[cfg(test)]
mod tests {
    use super::{Octets, predicted_octets, rows_per_rank, shell};

    #[test]
    fn a_rank_has_its_part_or_what_is_let_be() {
        let now = Octets {
            own: 100,
            others: 50,
        };
        let own =
            |refined, imbalance| predicted_octets(now, 400 + refined, 4, refined, imbalance).own;
        assert_eq!(own(0, 1.05), 100);
        // it may get all the new ones, until the level is cut anew
        assert_eq!(own(4, 1.05), 104);
        assert_eq!(own(40, 1.05), 115);
        assert_eq!(own(40, 1e9), 140);
        let fresh = predicted_octets(Octets::default(), 400, 4, 400, 1.05);
        assert_eq!(fresh.own, 105);
    }

    #[test]
    fn copies_grow_with_the_part_and_end_with_the_level() {
        let now = Octets {
            own: 100,
            others: 250,
        };
        let after = predicted_octets(now, 420, 4, 20, 1.05);
        assert_eq!(
            after,
            Octets {
                own: 110,
                others: 275
            }
        );
        assert_eq!(predicted_octets(now, 200, 2, 0, 1.0).others, 100);
        assert_eq!([0, 1, 8].map(shell), [0, 26, 56]);
        assert_eq!(
            (
                rows_per_rank(64, 1),
                rows_per_rank(64, 2),
                rows_per_rank(8, 3)
            ),
            (64, 64, 8)
        );
        assert_eq!(rows_per_rank(8 * 8000, 8), 8 * (1000 + 12 * 12 * 12 - 1000));
    }
}
