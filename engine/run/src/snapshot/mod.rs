//! Snapshots: numbering of rows, shards, transfer from devices, particles, derived fields and headers.
//!
//! This file defines the destination of snapshot values, and the arrays that describe patches.

pub(crate) mod derived;
pub(crate) mod headers;
pub(crate) mod offsets;
pub(crate) mod particles;
pub(crate) mod shard_writer;
pub(crate) mod transfer;

use bevy_ecs::prelude::World;
use nestar_engine_comm::Ranks;
use nestar_engine_data::{ParticleKinds, ParticleSetRef};
use nestar_engine_mesh::Topology;
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{LEAF, ORIGIN, ParticlesHeader, SnapshotError, Values};
use offsets::ShardRange;

/// Receives the values of a snapshot.
pub(crate) trait SnapshotSink: Send + 'static {
    /// Result after all values are safe.
    type Stored: Send + 'static;
    /// Returns the part of a level that this sink receives.
    fn range(&self, level: usize) -> ShardRange;
    /// Takes one shard of an array, or this rank's part of it, from patch `first` of the level. Blocks while
    /// the queue is full.
    fn push(
        &mut self,
        level: usize,
        array: &str,
        first: usize,
        values: Values,
    ) -> Result<(), Error>;
    /// Waits until all values of this rank are safe.
    fn complete(self) -> Result<Self::Stored, Error>;
}

/// Returns the arrays that describe patches: origins, leaves and the numbers of particles.
pub(crate) fn structure(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let topology = world.resource::<Topology>();
    let origins = rows.iter().flat_map(|&row| topology.origin(row)).collect();
    let leaf = |&row: &u32| u8::from(topology.is_leaf(row));
    let mut arrays = vec![
        (ORIGIN.into(), Values::I32(origins)),
        (LEAF.into(), Values::U8(rows.iter().map(leaf).collect())),
    ];
    arrays.extend(particle_counts(world, rows));
    arrays
}

/// Returns the host memory for buffered values of this rank, its share of the host's limit.
pub(crate) fn buffer_limit(sim: &Engine) -> usize {
    let placement = sim.world.resource::<Ranks>().communicator().placement();
    ((sim.settings.output.buffer as usize) << 20) / placement.local_size.max(1)
}

pub(crate) fn snapshot_error(error: SnapshotError) -> Error {
    Error::Snapshot(error.to_string())
}

/// Returns the numbers of particles in some patches, one array per kind.
fn particle_counts(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let kinds = world.resource::<ParticleKinds>().all().into_iter();
    let of = |kind: ParticleSetRef| {
        let set = kind.of(world);
        let counts = rows.iter().map(|&row| set.count(row) as u32).collect();
        (name(&kind), Values::U32(counts))
    };
    kinds.map(of).collect()
}

/// Returns the names of these arrays.
pub(crate) fn particle_count_names(world: &World) -> Vec<String> {
    let kinds = world.resource::<ParticleKinds>().all();
    kinds.iter().map(name).collect()
}

fn name(kind: &ParticleSetRef) -> String {
    ParticlesHeader::counts_of(&kind.path)
}
