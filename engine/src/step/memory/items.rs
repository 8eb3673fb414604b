//! What items take. They live in the host's memory, wherever the fields do.

use super::{AND, FIELDS};
use crate::data::{ENTITY_BYTES, ParticleKinds, ParticleSetRef};
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;

/// A kind of items that a run begins with, or the part of it that a rank has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticleDemand {
    /// Its place in snapshots.
    pub path: String,
    /// How many they are at most.
    pub count: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// How many items of each kind the state has that a run begins with, by their places in snapshots, where that is a snapshot's: what the deck says
/// of the beginning of a run is not asked then.
#[derive(Resource, Clone, Debug, Default)]
pub struct StoredParticles(pub BTreeMap<String, u64>);

/// What the items take that are expected before they are made, on each of `ranks` ranks with `rows` rows each; nothing for kinds of
/// which none are expected. Of an item that is made later, or lost, this knows nothing: it is the same at any time and on any rank.
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
        let items = kind.of(world);
        let all = stored(&kind.path).unwrap_or_else(|| items.expected_count());
        let count = all.div_ceil(ranks as u64);
        let entities = match items.are_entities() {
            true => count.saturating_mul(ENTITY_BYTES),
            false => 0,
        };
        let bytes = items.memory(count, rows as u64).saturating_add(entities);
        let path = kind.path;
        (count > 0).then_some(ParticleDemand { path, count, bytes })
    };
    kinds.filter_map(demand).collect()
}

/// The bytes of all of them.
pub(super) fn particle_bytes(world: &World, rows: usize, ranks: usize) -> u64 {
    let kinds = particle_demand(world, rows, ranks);
    let bytes = kinds.iter().map(|kind| kind.bytes);
    bytes.fold(0, u64::saturating_add)
}

/// Bytes of items that are not made yet, which they are together with the root grid.
pub(super) fn pending_particle_bytes(world: &World, rows: usize, ranks: usize) -> u64 {
    match world.resource::<Topology>().patches() {
        0 => particle_bytes(world, rows, ranks),
        _ => 0,
    }
}

/// What takes memory: the fields, and groups of items.
pub(super) fn consumers(world: &World) -> String {
    let kinds = particle_demand(world, 1, 1).into_iter();
    let groups = kinds.filter_map(|kind| Some(kind.path.split_once('/')?.0.to_string()));
    let mut consumers = vec![FIELDS.to_string()];
    consumers.extend(groups);
    consumers.dedup();
    consumers.join(AND)
}
