//! Moves particles from patch to patch: a leaf takes those for it from its neighbours of the same level and rank.

use super::pages::{PagePool, ParticlePages, PatchParticles};
use nestar_engine::data::MigrationBatch;
use nestar_engine::mesh::{Topology, offset, parallel};
use nestar_kernels::mesh::SELF;

/// Particles that have left through the domain faces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Escaped {
    /// Number of particles.
    pub count: u64,
    /// Mass in quanta.
    pub mass: u64,
}

/// Result of the drift of a level.
#[derive(Default)]
pub(super) struct DriftResult {
    pub parcels: Vec<MigrationBatch>,
    pub lost: Escaped,
    /// Identities of particles that have left the domain.
    pub escaped: Vec<u64>,
    /// Identity of a particle without a finite position.
    pub fault: Option<u64>,
}

/// Outgoing particles of a patch, and those that have left the domain.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Direction (0 to 26) of each particle.
    directions_of: Vec<u8>,
    /// Contiguous records.
    records: Vec<u8>,
    /// Directions in use, as bits.
    directions: u32,
    /// Particles for destinations other than own leaves of the level.
    parcels: Vec<MigrationBatch>,
    pub lost: Escaped,
    pub escaped: Vec<u64>,
    /// Identity of a particle without a finite position.
    pub fault: Option<u64>,
}

impl Outgoing {
    /// Reserves memory for `number` further records.
    pub fn reserve(&mut self, number: usize, bytes: usize) {
        self.directions_of.reserve(number);
        self.records.reserve(number * bytes);
    }

    /// Removes particle `n`, which moves in a direction.
    pub fn take(&mut self, pool: &PagePool, rows: &mut ParticlePages, n: usize, direction: usize) {
        self.directions_of.push(direction as u8);
        self.directions |= 1 << direction;
        rows.take(pool, n, &mut self.records);
    }

    /// Returns the records of particles that move in a direction.
    fn to(&self, direction: usize, bytes: usize) -> impl Iterator<Item = &[u8]> {
        let is_there = self.directions >> direction & 1 == 1;
        let directions_of = if is_there {
            &self.directions_of[..]
        } else {
            &[]
        };
        let records = directions_of.iter().zip(self.records.chunks_exact(bytes));
        records.filter_map(move |(&way, record)| (way == direction as u8).then_some(record))
    }

    /// Packs particles for destinations other than own leaves of the level; `list` is their list.
    pub fn address(&mut self, topology: &Topology, level: usize, row: u32, bytes: usize, list: u8) {
        for d in (0..27).filter(|&d| self.directions >> d & 1 == 1) {
            let beside = u32::try_from(topology.neighbours(row)[d]);
            if beside.is_ok_and(|row| topology.is_owned(row) && topology.is_leaf(row)) {
                continue;
            }
            let mut records = Vec::new();
            for record in self.to(d, bytes) {
                records.extend_from_slice(record);
                records.push(list);
            }
            let place = topology.place_beside(level, topology.index(row), offset(d));
            self.parcels.extend(place.map(|index| MigrationBatch {
                level,
                index,
                records,
            }));
        }
    }
}

/// Moves outgoing particles to the own leaves next to their patches. Returns all that goes elsewhere.
pub(super) fn exchange(
    topology: &Topology,
    pool: &PagePool,
    patches: &mut [(u32, PatchParticles)],
    list: usize,
    outgoing: Vec<Outgoing>,
) -> DriftResult {
    let bytes = pool.columns.bytes();
    let mut by_row: Vec<Option<&Outgoing>> = vec![None; topology.capacity()];
    for ((row, _), outgoing) in patches.iter().zip(&outgoing) {
        by_row[*row as usize] = Some(outgoing).filter(|outgoing| outgoing.directions > 0);
    }
    parallel::for_each_mut(patches, |_, (row, patch)| {
        let around = topology.neighbours(*row).iter().enumerate();
        for (d, &beside) in around.filter(|(d, _)| *d != SELF && topology.is_leaf(*row)) {
            let from = usize::try_from(beside).ok().and_then(|row| by_row[row]);
            let records = from.into_iter().flat_map(|from| from.to(26 - d, bytes));
            records.for_each(|record| patch[list].push(pool, record));
        }
    });
    let mut all = DriftResult::default();
    for outgoing in outgoing {
        all.lost.count += outgoing.lost.count;
        all.lost.mass += outgoing.lost.mass;
        all.escaped.extend(outgoing.escaped);
        all.fault = all.fault.max(outgoing.fault);
        all.parcels.extend(outgoing.parcels);
    }
    all
}
