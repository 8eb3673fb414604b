//! From the device through page-locked memory to the sink: while the values of one shard are handed over, the next ones cross
//! the bus.

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

/// Most shards under way: enough that the bus does not wait for the host.
const MOST_SHARDS: usize = 4;
/// Fewest.
const FEWEST_SHARDS: usize = 2;
/// Values that are worth a thread of their own when they are copied.
const LARGE: usize = 1 << 16;

/// Shards of `bytes` bytes that may be under way, within a quarter of what snapshots may take of the host's memory.
fn depth(sim: &Engine, bytes: usize) -> usize {
    let most = allowance(sim);
    (most / 4 / bytes.max(1)).clamp(FEWEST_SHARDS, MOST_SHARDS)
}

/// Bytes of the host's memory that a snapshot of the present state takes on its way from a device to the sink's queue.
pub(in crate::run) fn held(sim: &Engine) -> usize {
    let topology = sim.world.resource::<Topology>();
    let patches = (0..=topology.finest()).map(|level| topology.rows(level).len());
    let largest = patches.clone().max().unwrap_or(0);
    let fields = Stores::of(&sim.world, |spec| spec.stored);
    let lists = fields.len() * size_of::<Piece>();
    let values = |field: &StoreRef| field.of(&sim.world).spec().shape().values();
    let values = fields.iter().map(values).max().unwrap_or(0);
    let shard = largest.min(SHARD_PATCHES as usize) * values * sim.precision().bytes();
    // rows, origins and leaves of all own patches; the shard that is being handed over
    (lists + 13) * patches.sum::<usize>() + (depth(sim, shard) + 1) * buffer_bytes(shard)
}

/// Shards on their way.
pub(super) struct Pipeline {
    queue: CopyQueue,
    /// Most shards under way.
    depth: usize,
    under_way: VecDeque<(TransferShard, Download)>,
}

impl Pipeline {
    /// A pipeline for shards of up to `bytes` bytes.
    pub fn new(sim: &Engine, device: &Device, bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            queue: device.copy_queue()?,
            depth: depth(sim, bytes),
            under_way: VecDeque::new(),
        })
    }

    /// Most shards under way.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Makes room for the next shard: where too many are under way, the oldest is handed over first.
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

    /// What is started from now on comes after all work of the device so far.
    pub fn follow(&self) -> Result<(), Error> {
        Ok(self.queue.follow()?)
    }

    /// Sends a shard off from where its values stand on the device.
    pub fn start(&mut self, shard: TransferShard, from: u64, bytes: usize) -> Result<(), Error> {
        let download = self.queue.download(from, bytes)?;
        self.under_way.push_back((shard, download));
        Ok(())
    }

    /// Hands over all that is still under way.
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

/// A copy of values. In a thread of the run, which waits, the others help; the draining thread leaves them to the run.
fn copied<T: Copy + Send + Sync>(values: &[T]) -> Vec<T> {
    match rayon::current_thread_index() {
        Some(_) => {
            let parts = values.par_iter().with_min_len(LARGE);
            parts.copied().collect()
        }
        None => values.to_vec(),
    }
}
