//! Where the values of a snapshot go, and what of them is the same wherever they come from.

use super::counts::counts;
use super::layout::ShardRange;
use crate::comm::Ranks;
use crate::mesh::Topology;
use crate::step::{Engine, Error};
use bevy_ecs::prelude::World;
use nestar_snapshot::{LEAF, ORIGIN, SnapshotError, Values};

/// Where the values of a snapshot go.
pub(super) trait SnapshotSink: Send + 'static {
    /// What is left when all that was pushed is safe.
    type Stored: Send + 'static;
    /// What of a level goes here.
    fn part(&self, level: usize) -> ShardRange;
    /// Takes one shard of an array, or as much of it as this rank has, from patch `first` of the level on; waits where it has
    /// too many.
    fn push(
        &mut self,
        level: usize,
        array: &str,
        first: usize,
        values: Values,
    ) -> Result<(), Error>;
    /// Waits until all that was pushed is safe; not for other ranks.
    fn complete(self) -> Result<Self::Stored, Error>;
}

/// Where patches are, which of them are leaves, and how many items lie in them, in the arrays of a snapshot.
pub(super) fn structure(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let topology = world.resource::<Topology>();
    let origins = rows.iter().flat_map(|&row| topology.origin(row)).collect();
    let leaf = |&row: &u32| u8::from(topology.is_leaf(row));
    let mut arrays = vec![
        (ORIGIN.into(), Values::I32(origins)),
        (LEAF.into(), Values::U8(rows.iter().map(leaf).collect())),
    ];
    arrays.extend(counts(world, rows));
    arrays
}

/// Memory of the host that values of this rank may wait in: the ranks of a host share what the deck allows.
pub(super) fn allowance(sim: &Engine) -> usize {
    let placement = sim.world.resource::<Ranks>().communicator().placement();
    ((sim.settings.output.buffer as usize) << 20) / placement.local_size.max(1)
}

pub(super) fn snapshot_error(error: SnapshotError) -> Error {
    Error::Snapshot(error.to_string())
}
