//! Estimates of the memory that requested patches and particles need: for the whole run, and per rank.

use super::{AND, FIELDS};
use crate::Settings;
use bevy_ecs::prelude::*;
use nestar_engine_comm::Ranks;
use nestar_engine_data::{
    Correct, ENTITY_BYTES, FieldSpec, ParticleKinds, ParticleSetRef, Precision, StoreRef, Stores,
};
use nestar_engine_mesh::Topology;
use nestar_kernels::mesh::circulations::{FINE_SURFACE, SURFACE};
use nestar_kernels::mesh::fluxes::{FACE, QUARTER};
use std::collections::BTreeMap;

/// Bytes per row in the tables of the topology.
pub(super) const TABLES: u64 = 176;
/// Bytes per row in the tables of registers.
const SLOTS: u64 = 48;
/// Rows by which a pool grows.
const SLAB: u64 = 128;
/// Values per component in the registers of a coarse-fine face. These are the coarse flux, and for each of
/// four fine faces the first flux, its change and the current step.
const FACE_VALUES: u64 = (FACE + 4 * 3 * QUARTER) as u64;
/// Values per component in the circulation registers of an octet and of the 18 coarse patches beside it.
const EDGE_VALUES: u64 = (8 * 3 * FINE_SURFACE + 18 * SURFACE) as u64;
/// Largest number of coarse-fine faces of an octet, and of those that adding or removing it creates.
const FACES: u64 = 6;

/// Sums `bytes` over the declarations of all fields, in the run's precision.
fn sum_of_fields(world: &World, bytes: impl Fn(&FieldSpec, Precision) -> usize) -> u64 {
    let precision = world.resource::<Settings>().run.precision;
    let fields = world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| bytes(field.of(world).spec(), precision) as u64;
    fields.iter().map(bytes).sum()
}

/// Returns the bytes of fields, tables and expected particles for `rows` rows. The rule is the same on every
/// device and rank, so that a capped run gives the same bits everywhere. Buffers of functions that change a
/// field in place and read neighbours count from their first use.
#[must_use]
pub fn needed(world: &World, rows: usize) -> u64 {
    field_bytes(world, rows).saturating_add(particle_bytes(world, rows, 1))
}

/// Returns the bytes of fields and tables for `rows` rows.
#[must_use]
pub fn field_bytes(world: &World, rows: usize) -> u64 {
    let rows = rows as u64;
    let fields = world.resource::<Stores>().all();
    let row: usize = fields.iter().map(|f| f.of(world).total_row_bytes()).sum();
    rows.next_multiple_of(SLAB) * row as u64 + rows * TABLES
}

/// Returns the rows of the whole hierarchy after `refined` patches get children and `coarsened` lose theirs.
/// Every patch counts once.
pub(super) fn total_rows(topology: &Topology, refined: u64, coarsened: u64) -> usize {
    let finer: usize = (1..=topology.max_level)
        .map(|level| topology.count(level))
        .sum();
    let now = topology.root_rows() + finer;
    (now + 8 * refined as usize).saturating_sub(8 * coarsened as usize)
}

/// Counts octets of the changing level: own ones, and halo copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Octets {
    pub own: u64,
    pub others: u64,
}

/// Predicts the memory of one rank after a change of a level's patches.
pub struct RegridDemand<'a> {
    world: &'a World,
    topology: &'a Topology,
    ranks: u64,
    /// Level whose patches are created or removed.
    fine: usize,
    coarsened: u64,
    /// Octets of the level at present.
    now: Octets,
    /// Bytes of registers at present.
    registers: u64,
}

impl<'a> RegridDemand<'a> {
    /// Describes a change of `level`'s children in which `coarsened` patches lose theirs.
    #[must_use]
    pub fn new(world: &'a World, level: usize, coarsened: u64) -> Self {
        let topology = world.resource::<Topology>();
        let fields = world.resource::<Stores>().all();
        let stored = topology.octets(level + 1);
        let own = stored.iter().filter(|octet| octet.owned != 0).count() as u64;
        let registers: usize = fields.iter().map(|f| f.of(world).register_bytes()).sum();
        Self {
            world,
            topology,
            ranks: world.resource::<Ranks>().size() as u64,
            fine: level + 1,
            coarsened,
            now: Octets {
                own,
                others: stored.len() as u64 - own,
            },
            registers: registers as u64,
        }
    }

    /// Predicts the rows of this rank after `refined` patches of all ranks get children.
    #[must_use]
    pub fn rows(&self, refined: u64) -> usize {
        let all = self.octets_of_all(refined);
        let imbalance = self.world.resource::<Settings>().run.imbalance;
        let after = predicted_octets(self.now, all, self.ranks, refined, imbalance);
        let levels = 0..=self.topology.max_level;
        let stored: usize = levels.map(|l| self.topology.octets(l).len()).sum();
        let same = stored as u64 - self.now.own - self.now.others;
        let rows = 8 * (same + self.parents(after) + after.own + after.others);
        (rows as usize).max(self.topology.capacity())
    }

    fn octets_of_all(&self, refined: u64) -> u64 {
        let now = (self.topology.count(self.fine) / 8) as u64;
        (now + refined).saturating_sub(self.coarsened)
    }

    /// Predicts the additional octets of the coarser level that the own octets need as parents.
    fn parents(&self, after: Octets) -> u64 {
        let coarse = self.topology.octets(self.fine - 1);
        let others = coarse.iter().filter(|octet| octet.owned == 0).count() as u64;
        let all = (self.topology.count(self.fine - 1) as u64).div_ceil(8);
        let more = match self.now.own {
            // eight parents form an octet; their neighbours come with them
            0 => after.own.div_ceil(4),
            own => (others * after.own).div_ceil(own).saturating_sub(others),
        };
        more.min(all.saturating_sub(coarse.len() as u64))
    }

    /// Predicts an upper limit on the bytes of rows, registers and patches in transit.
    #[must_use]
    pub fn bytes(&self, refined: u64) -> u64 {
        let rows = self.rows(refined);
        let more = rows.saturating_sub(self.topology.capacity()) as u64;
        // existing particles are not part of the free memory
        field_bytes(self.world, rows)
            + self.register_bytes(refined, rows)
            + more * SLOTS
            + self.moved(refined)
    }

    /// Predicts the bytes of registers: a new or removed octet creates at most six coarse-fine faces.
    fn register_bytes(&self, refined: u64, rows: usize) -> u64 {
        // buffers have a reserve of an eighth
        let octet = sum_of_fields(self.world, |spec, precision| {
            let values = match spec.correct {
                Correct::Fluxes => FACES * FACE_VALUES,
                Correct::Circulations => EDGE_VALUES,
                Correct::None => 0,
            };
            values as usize * spec.components.len() * precision.bytes()
        });
        let octet = octet * 9 / 8;
        let all = rows as u64 / 8 * octet + rows as u64 * SLOTS;
        all.min(self.registers + (refined + self.coarsened) * octet)
    }

    /// Predicts the bytes of patches in transit when the level is repartitioned: sent and received ones. A
    /// cut is displaced by the surplus of the ranks before it.
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

/// Predicts the octets of a rank for a level of `all` octets, `refined` of them new. The level is
/// repartitioned if a rank has more than `imbalance` times its part.
fn predicted_octets(now: Octets, all: u64, ranks: u64, refined: u64, imbalance: f64) -> Octets {
    let part = all.div_ceil(ranks);
    let tolerated = (imbalance * part as f64).min(all as f64) as u64;
    let own = part.max(tolerated.min(now.own + refined)).min(all);
    let like_now = match now.own {
        0 => 0,
        n => (now.others * own).div_ceil(n),
    };
    Octets {
        own,
        others: like_now.max(shell(own)).min(all - own),
    }
}

/// Returns the number of octets in the shell around a cube of `octets`.
fn shell(octets: u64) -> u64 {
    let width = (0..).find(|n: &u64| n.pow(3) >= octets).unwrap_or(0);
    match octets {
        0 => 0,
        _ => (width + 2).pow(3) - width.pow(3),
    }
}

/// Returns the bytes per rank, halo copies included, if `ranks` ranks share `rows` rows; see [`needed`].
#[must_use]
pub fn needed_per_rank(world: &World, rows: usize, ranks: usize) -> u64 {
    let part = rows_per_rank(rows, ranks);
    field_bytes(world, part).saturating_add(particle_bytes(world, part, ranks))
}

/// Returns the rows of one rank, halo copies included, if `ranks` ranks share `rows` rows.
pub(super) fn rows_per_rank(rows: usize, ranks: usize) -> usize {
    let (all, ranks) = ((rows as u64).div_ceil(8), ranks as u64);
    if ranks == 1 {
        return rows;
    }
    let own = all.div_ceil(ranks);
    (8 * (own + shell(own).min(all - own))) as usize
}

/// Describes the memory of one kind of particles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticleDemand {
    /// Path in snapshots.
    pub path: String,
    /// Upper limit on the number of particles.
    pub count: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// Holds the numbers of particles in the snapshot from which the run starts, by path. They replace the deck's
/// estimates.
#[derive(Resource, Clone, Debug, Default)]
pub struct StoredParticles(pub BTreeMap<String, u64>);

/// Estimates the memory of the initial particles on each of `ranks` ranks with `rows` rows. Particles that
/// are created or lost later are not included, so the result is the same at any time and on any rank.
#[must_use]
pub fn particle_demand(world: &World, rows: usize, ranks: usize) -> Vec<ParticleDemand> {
    let kinds = world.get_resource::<ParticleKinds>();
    let kinds = kinds
        .map(ParticleKinds::all)
        .unwrap_or_default()
        .into_iter();
    let stored = world.get_resource::<StoredParticles>();
    let stored = |path: &str| stored.and_then(|stored| stored.0.get(path).copied());
    let demand = |kind: ParticleSetRef| {
        let particles = kind.of(world);
        let all = stored(&kind.path).unwrap_or_else(|| particles.expected_count());
        let count = all.div_ceil(ranks as u64);
        let entities = match particles.are_entities() {
            true => count.saturating_mul(ENTITY_BYTES),
            false => 0,
        };
        let bytes = particles
            .memory(count, rows as u64)
            .saturating_add(entities);
        let path = kind.path;
        (count > 0).then_some(ParticleDemand { path, count, bytes })
    };
    kinds.filter_map(demand).collect()
}

/// Returns the bytes of all initial particles per rank.
pub(super) fn particle_bytes(world: &World, rows: usize, ranks: usize) -> u64 {
    let kinds = particle_demand(world, rows, ranks);
    let bytes = kinds.iter().map(|kind| kind.bytes);
    bytes.fold(0, u64::saturating_add)
}

/// Returns the bytes of particles that will be created with the root grid.
pub(super) fn pending_particle_bytes(world: &World, rows: usize, ranks: usize) -> u64 {
    match world.resource::<Topology>().patches() {
        0 => particle_bytes(world, rows, ranks),
        _ => 0,
    }
}

/// Names what needs memory: the fields and the groups of particles.
pub(super) fn consumers(world: &World) -> String {
    let kinds = particle_demand(world, 1, 1).into_iter();
    let groups = kinds.filter_map(|kind| Some(kind.path.split_once('/')?.0.to_string()));
    let mut consumers = vec![FIELDS.to_string()];
    consumers.extend(groups);
    consumers.dedup();
    consumers.join(AND)
}

#[cfg(test)]
mod tests {
    use super::{Octets, predicted_octets, rows_per_rank, shell};

    #[test]
    fn a_rank_has_its_part_or_a_tolerated_surplus() {
        let now = Octets {
            own: 100,
            others: 50,
        };
        let own =
            |refined, imbalance| predicted_octets(now, 400 + refined, 4, refined, imbalance).own;
        assert_eq!(own(0, 1.05), 100);
        // all new octets may be on this rank until the level is repartitioned
        assert_eq!(own(4, 1.05), 104);
        assert_eq!(own(40, 1.05), 115);
        assert_eq!(own(40, 1e9), 140);
        let fresh = predicted_octets(Octets::default(), 400, 4, 400, 1.05);
        assert_eq!(fresh.own, 105);
    }

    #[test]
    fn the_halo_grows_with_the_part_up_to_the_level() {
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
