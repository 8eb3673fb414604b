//! Memory of particles, which are always in host memory.

use super::{AND, FIELDS};
use bevy_ecs::prelude::*;
use nestar_engine_data::{ENTITY_BYTES, ParticleKinds, ParticleSetRef};
use nestar_engine_mesh::Topology;
use std::collections::BTreeMap;

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
