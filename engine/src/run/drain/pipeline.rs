//! Pipeline of transfers through page-locked memory: a shard is processed while the next ones are
//! transferred.

use super::contents::{Contents, TransferShard};
use crate::data::Piece;
use crate::data::{Precision, StoreRef, Stores};
use crate::device::{CopyQueue, Device, Download, buffer_bytes};
use crate::mesh::Topology;
use crate::run::sink::{SnapshotSink, allowance};
use crate::step::{Engine, Error};
use nestar_snapshot::{SHARD_PATCHES, Values};
use rayon::prelude::*;
use std::collections::VecDeque;

/// Largest number of shards in transfer: enough to keep the bus busy.
const MOST_SHARDS: usize = 4;
/// Smallest number of shards in transfer.
const FEWEST_SHARDS: usize = 2;
/// Minimum number of values per thread in parallel copies.
const LARGE: usize = 1 << 16;

/// Returns the number of shards of `bytes` bytes in transfer, within a quarter of the snapshot memory of the
/// host.
fn depth(sim: &Engine, bytes: usize) -> usize {
    let most = allowance(sim);
    (most / 4 / bytes.max(1)).clamp(FEWEST_SHARDS, MOST_SHARDS)
}

/// Returns the host memory in bytes that a snapshot of the present state uses between device and queue.
pub(in crate::run) fn held(sim: &Engine) -> usize {
    let topology = sim.world.resource::<Topology>();
    let patches = (0..=topology.finest()).map(|level| topology.rows(level).len());
    let largest = patches.clone().max().unwrap_or(0);
    let fields = Stores::of(&sim.world, |spec| spec.stored);
    let lists = fields.len() * size_of::<Piece>();
    let values = |field: &StoreRef| field.of(&sim.world).spec().shape().values();
    let values = fields.iter().map(values).max().unwrap_or(0);
    let shard = largest.min(SHARD_PATCHES as usize) * values * sim.precision().bytes();
    // rows, origins and leaves of all own patches; the shard being processed
    (lists + 13) * patches.sum::<usize>() + (depth(sim, shard) + 1) * buffer_bytes(shard)
}

/// Queue of shards in transfer.
pub(super) struct Pipeline {
    queue: CopyQueue,
    /// Largest number of shards in transfer.
    depth: usize,
    under_way: VecDeque<(TransferShard, Download)>,
}

impl Pipeline {
    /// Creates a pipeline for shards of up to `bytes` bytes.
    pub fn new(sim: &Engine, device: &Device, bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            queue: device.copy_queue()?,
            depth: depth(sim, bytes),
            under_way: VecDeque::new(),
        })
    }

    /// Returns the largest number of shards in transfer.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Processes the oldest shards until another one can be started.
    pub fn make_room<S: SnapshotSink>(
        &mut self,
        contents: &Contents,
        sink: &mut S,
    ) -> Result<(), Error> {
        while self.under_way.len() >= self.depth {
            self.hand_over(contents, sink)?;
        }
        Ok(())
    }

    /// Makes later transfers wait for all previous work of the device.
    pub fn follow(&self) -> Result<(), Error> {
        Ok(self.queue.follow()?)
    }

    /// Starts the transfer of a shard from device address `from`.
    pub fn start(&mut self, shard: TransferShard, from: u64, bytes: usize) -> Result<(), Error> {
        let download = self.queue.download(from, bytes)?;
        self.under_way.push_back((shard, download));
        Ok(())
    }

    /// Processes all shards in transfer.
    pub fn finish<S: SnapshotSink>(
        mut self,
        contents: &Contents,
        sink: &mut S,
    ) -> Result<(), Error> {
        while !self.under_way.is_empty() {
            self.hand_over(contents, sink)?;
        }
        Ok(())
    }

    fn hand_over<S: SnapshotSink>(
        &mut self,
        contents: &Contents,
        sink: &mut S,
    ) -> Result<(), Error> {
        let Some((shard, download)) = self.under_way.pop_front() else {
            return Ok(());
        };
        let buffer = download.wait()?;
        let values = match contents.precision {
            Precision::Single => Values::F32(copied(bytemuck::cast_slice(&buffer))),
            Precision::Double => Values::F64(copied(bytemuck::cast_slice(&buffer))),
        };
        drop(buffer);
        let name = &contents.names[shard.field][shard.component];
        sink.push(shard.level, name, shard.first, values)
    }
}

/// Copies values. Threads of the run use the thread pool; the transfer thread leaves it to the run.
fn copied<T: Copy + Send + Sync>(values: &[T]) -> Vec<T> {
    match rayon::current_thread_index() {
        Some(_) => {
            let parts = values.par_iter().with_min_len(LARGE);
            parts.copied().collect()
        }
        None => values.to_vec(),
    }
}
