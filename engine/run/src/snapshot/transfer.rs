//! Transfer of a snapshot from a device. If the device has enough memory, it copies the state internally, and
//! a thread transfers the copy while the run continues. Otherwise the run waits while the state is
//! transferred shard by shard. Transfers use page-locked host memory and overlap with the processing of
//! earlier shards.

use crate::snapshot::ShardRange;
use crate::snapshot::{SnapshotSink, buffer_limit, structure};
use bevy_ecs::prelude::World;
use nestar_engine_data::{DevicePieces, Piece, Precision, RowShape, StoreRef, Stores};
use nestar_engine_device::{Buffer, CopyQueue, Device, DeviceError, Download, buffer_bytes};
use nestar_engine_mesh::Topology;
use nestar_engine_step::{Engine, Error, memory};
use nestar_snapshot::{SHARD_PATCHES, Values};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::thread::JoinHandle;

#[cfg(test)]
mod tests;

/// State of the transfer of a snapshot.
pub(crate) enum TransferState<S: SnapshotSink> {
    /// A thread transfers the values and completes the sink.
    InProgress(TransferThread<S::Stored>),
    /// The sink holds all values.
    Done(S),
}

/// Starts the transfer of all levels from the device to `sink`. Later changes of fields do not affect it.
///
/// # Errors
/// The device or the sink fails.
///
/// # Panics
/// If a field is on the host.
pub(crate) fn start_transfer<S: SnapshotSink>(
    sim: &Engine,
    device: &Device,
    fields: &[StoreRef],
    mut sink: S,
) -> Result<TransferState<S>, Error> {
    let mut contents = Contents::of(sim, fields, &sink);
    if contents.rows.is_empty() {
        return Ok(TransferState::Done(sink));
    }
    let pipeline = Pipeline::new(sim, device, contents.largest())?;
    if let Some(copy) = copy(sim, device, fields, &contents)? {
        let transfer = TransferThread::start(copy, contents, sink, pipeline)?;
        return Ok(TransferState::InProgress(transfer));
    }
    transfer_by_shard(sim, device, fields, &mut contents, &mut sink, pipeline)?;
    Ok(TransferState::Done(sink))
}

/// Copies all levels within the device, in snapshot order; `None` without enough memory.
fn copy(
    sim: &Engine,
    device: &Device,
    fields: &[StoreRef],
    contents: &Contents,
) -> Result<Option<Buffer<u8>>, Error> {
    let list = bytemuck::cast_slice::<Piece, u8>(&contents.rows);
    let values = contents.bytes.next_multiple_of(align_of::<Piece>());
    let bytes = values + list.len();
    if memory::headroom(&sim.world) < bytes as u64 {
        return Ok(None);
    }
    let copy = match device.transient_buffer(bytes) {
        Ok(copy) => copy,
        Err(DeviceError::Memory { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    device.upload(&copy, values, list)?;
    for block in &contents.blocks {
        let store = fields[block.field].of(&sim.world);
        let places = [values, block.offset].map(|offset| copy.address() + offset as u64);
        let list = contents.of_block(block, device, places);
        store.save_on_device(block.level, 0..contents.names[block.field].len(), &list)?;
    }
    // the time of the copy counts as output, and transfers need not wait for it
    device.synchronise()?;
    Ok(Some(copy))
}

/// Transfers all levels shard by shard while the run waits.
fn transfer_by_shard<S: SnapshotSink>(
    sim: &Engine,
    device: &Device,
    fields: &[StoreRef],
    contents: &mut Contents,
    sink: &mut S,
    pipeline: Pipeline,
) -> Result<(), Error> {
    let list = contents.rows_by_shard();
    let rows = device.buffer::<Piece>(list.len())?;
    device.upload(&rows, 0, &list)?;
    let slots = (0..pipeline.depth()).map(|_| device.buffer::<u8>(contents.largest()));
    let slots: Vec<Buffer<u8>> = slots.collect::<Result<_, _>>()?;
    // dropped before the slots, also after errors: it waits for transfers from them
    let mut pipeline = pipeline;
    contents.push_structure(sink)?;
    for (n, shard) in contents.shards().enumerate() {
        // afterwards the previous transfer from this slot is complete
        pipeline.make_room(contents, sink)?;
        let slot = slots[n % slots.len()].address();
        let store = fields[shard.field].of(&sim.world);
        let list = DevicePieces {
            entries: &list[shard.row..][..shard.patches],
            device,
            list: rows.address() + (shard.row * size_of::<Piece>()) as u64,
            memory: slot,
            stride: 0,
        };
        store.save_on_device(shard.level, shard.component..shard.component + 1, &list)?;
        let bytes = contents.bytes_of(&shard);
        pipeline.follow()?;
        pipeline.start(shard, slot, bytes)?;
    }
    pipeline.finish(contents, sink)
}

/// Thread that transfers a copy from the device. Dropping it waits for its end.
pub(crate) struct TransferThread<T>(Option<JoinHandle<Result<T, Error>>>);

impl<T: Send + 'static> TransferThread<T> {
    fn start<S: SnapshotSink<Stored = T>>(
        copy: Buffer<u8>,
        contents: Contents,
        sink: S,
        pipeline: Pipeline,
    ) -> Result<Self, Error> {
        let name = "nestar-drain".to_string();
        let thread = std::thread::Builder::new().name(name);
        let started = thread.spawn(move || run_transfer(copy, contents, sink, pipeline));
        let failed = |error| {
            Error::Snapshot(format!(
                "cannot start the thread that transfers a snapshot from the device: {error}; allow more threads (`ulimit -u`) or \
                 memory (`ulimit -v`), or use fewer (`run.threads`)"
            ))
        };
        Ok(Self(Some(started.map_err(failed)?)))
    }

    /// Returns `true` if the thread has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread; returns the completed sink.
    ///
    /// # Errors
    /// The error of the thread.
    pub(crate) fn wait(mut self) -> Result<T, Error> {
        let panicked = || {
            Error::Snapshot("the thread that transfers a snapshot from the device panicked".into())
        };
        match self.0.take().map(JoinHandle::join) {
            Some(Ok(drained)) => drained,
            _ => Err(panicked()),
        }
    }
}

impl<T> Drop for TransferThread<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // nobody can receive the error here
            let _ = thread.join();
        }
    }
}

/// Runs the transfer thread.
fn run_transfer<S: SnapshotSink>(
    copy: Buffer<u8>,
    mut contents: Contents,
    mut sink: S,
    mut pipeline: Pipeline,
) -> Result<S::Stored, Error> {
    let leave = || {
        contents.push_structure(&mut sink)?;
        for shard in contents.shards() {
            pipeline.make_room(&contents, &mut sink)?;
            let (from, bytes) = (shard.offset, contents.bytes_of(&shard));
            pipeline.start(shard, copy.address() + from as u64, bytes)?;
        }
        pipeline.finish(&contents, &mut sink)
    };
    let left = leave();
    // release device memory before errors are returned
    drop(copy);
    left?;
    sink.complete()
}

/// Describes the snapshot at the time it was taken, except the field values.
pub(crate) struct Contents {
    /// Rows of all blocks in snapshot order, without those of other ranks' shards; offsets count within a
    /// block.
    pub rows: Vec<Piece>,
    /// All fields on all levels.
    pub blocks: Vec<LevelBlock>,
    /// Names of the arrays, `[field][component]`.
    pub names: Vec<Vec<String>>,
    /// Shapes of rows, by field.
    shapes: Vec<RowShape>,
    /// Precision of all fields.
    pub precision: Precision,
    /// Bytes of all field values.
    pub bytes: usize,
    /// Shards of the structure arrays: level, name, first patch, values.
    structure: Vec<(usize, String, usize, Values)>,
}

/// A field on a level; its copy on the device has the order `[component][patch][k][j][i]`.
pub(crate) struct LevelBlock {
    pub level: usize,
    pub field: usize,
    /// Start of its rows in [`Contents::rows`].
    pub row: usize,
    /// Number of its first patch on the level.
    pub first: usize,
    pub patches: usize,
    /// Patches per shard.
    pub shard: usize,
    /// Byte offset of the block in the copy.
    pub offset: usize,
}

/// One shard of one component.
pub(crate) struct TransferShard {
    pub level: usize,
    pub field: usize,
    pub component: usize,
    /// Number of the first patch on the level.
    pub first: usize,
    pub patches: usize,
    /// Start of its rows in [`Contents::rows`].
    pub row: usize,
    /// Byte offset in the copy.
    pub offset: usize,
}

impl Contents {
    /// Describes the present state of all levels.
    pub fn of(sim: &Engine, fields: &[StoreRef], sink: &impl SnapshotSink) -> Self {
        let topology = sim.world.resource::<Topology>();
        let names = |field: &StoreRef| {
            let components = field.of(&sim.world).spec().components.iter();
            components.map(|component| component.name.clone()).collect()
        };
        let shape = |field: &StoreRef| field.of(&sim.world).shape();
        let mut contents = Self {
            rows: Vec::with_capacity(fields.len() * topology.patches()),
            blocks: Vec::new(),
            names: fields.iter().map(names).collect(),
            shapes: fields.iter().map(shape).collect(),
            precision: sim.precision(),
            bytes: 0,
            structure: Vec::new(),
        };
        for level in 0..=topology.finest() {
            contents.add(&sim.world, level, sink.range(level));
        }
        contents
    }

    fn add(&mut self, world: &World, level: usize, part: ShardRange) {
        let rows = &world.resource::<Topology>().rows(level)[part.sent..];
        for (n, rows) in rows.chunks(part.shard).enumerate() {
            let first = part.first + n * part.shard;
            for (name, values) in structure(world, rows) {
                self.structure.push((level, name, first, values));
            }
        }
        for (field, names) in self.names.iter().enumerate() {
            self.blocks.push(LevelBlock {
                level,
                field,
                row: self.rows.len(),
                first: part.first,
                patches: rows.len(),
                shard: part.shard,
                offset: self.bytes,
            });
            self.bytes += rows.len() * names.len() * self.patch_bytes(field);
            self.rows
                .extend(Piece::whole_rows(rows, self.shapes[field]));
        }
    }

    /// Returns the bytes of one component of a patch.
    fn patch_bytes(&self, field: usize) -> usize {
        self.shapes[field].values() * self.precision.bytes()
    }

    /// Returns the bytes of a shard.
    pub fn bytes_of(&self, shard: &TransferShard) -> usize {
        shard.patches * self.patch_bytes(shard.field)
    }

    /// Returns the bytes of the largest shard.
    pub fn largest(&self) -> usize {
        let bytes =
            |block: &LevelBlock| block.patches.min(block.shard) * self.patch_bytes(block.field);
        self.blocks.iter().map(bytes).max().unwrap_or(0)
    }

    /// Returns the device list of a block's rows for a copy to address `memory`.
    pub fn of_block<'a>(
        &'a self,
        block: &LevelBlock,
        device: &'a Device,
        [list, memory]: [u64; 2],
    ) -> DevicePieces<'a> {
        DevicePieces {
            entries: &self.rows[block.row..][..block.patches],
            device,
            list: list + (block.row * size_of::<Piece>()) as u64,
            memory,
            stride: block.patches * self.shapes[block.field].values(),
        }
    }

    /// Returns the rows with offsets that count within a shard.
    pub fn rows_by_shard(&self) -> Vec<Piece> {
        let mut rows = self.rows.clone();
        for block in &self.blocks {
            let rows = &mut rows[block.row..][..block.patches];
            for shard in rows.chunks_mut(block.shard) {
                let first = shard[0].before;
                shard.iter_mut().for_each(|piece| piece.before -= first);
            }
        }
        rows
    }

    /// Returns all shards in the order of transfer.
    pub fn shards(&self) -> impl Iterator<Item = TransferShard> + '_ {
        self.blocks.iter().flat_map(move |block| {
            let patch = self.patch_bytes(block.field);
            let components = self.names[block.field].len();
            let shards = (0..block.patches).step_by(block.shard);
            shards.flat_map(move |begin| {
                let patches = block.shard.min(block.patches - begin);
                (0..components).map(move |component| TransferShard {
                    level: block.level,
                    field: block.field,
                    component,
                    first: block.first + begin,
                    patches,
                    row: block.row + begin,
                    offset: block.offset + (component * block.patches + begin) * patch,
                })
            })
        })
    }

    /// Pushes the arrays that describe the patches.
    pub fn push_structure(&mut self, sink: &mut impl SnapshotSink) -> Result<(), Error> {
        for (level, name, first, values) in self.structure.drain(..) {
            sink.push(level, &name, first, values)?;
        }
        Ok(())
    }
}

/// Largest number of shards in transfer: enough to keep the bus busy.
const MAX_SHARDS: usize = 4;
/// Smallest number of shards in transfer.
const MIN_SHARDS: usize = 2;
/// Minimum number of values per thread in parallel copies.
const LARGE: usize = 1 << 16;

/// Returns the number of shards of `bytes` bytes in transfer, within a quarter of the snapshot memory of the
/// host.
fn depth(sim: &Engine, bytes: usize) -> usize {
    let most = buffer_limit(sim);
    (most / 4 / bytes.max(1)).clamp(MIN_SHARDS, MAX_SHARDS)
}

/// Returns the host memory in bytes that a snapshot of the present state uses between device and queue.
pub(crate) fn staging_bytes(sim: &Engine) -> usize {
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
pub(crate) struct Pipeline {
    queue: CopyQueue,
    /// Largest number of shards in transfer.
    depth: usize,
    in_transfer: VecDeque<(TransferShard, Download)>,
}

impl Pipeline {
    /// Creates a pipeline for shards of up to `bytes` bytes.
    pub fn new(sim: &Engine, device: &Device, bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            queue: device.copy_queue()?,
            depth: depth(sim, bytes),
            in_transfer: VecDeque::new(),
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
        while self.in_transfer.len() >= self.depth {
            self.process_next(contents, sink)?;
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
        self.in_transfer.push_back((shard, download));
        Ok(())
    }

    /// Processes all shards in transfer.
    pub fn finish<S: SnapshotSink>(
        mut self,
        contents: &Contents,
        sink: &mut S,
    ) -> Result<(), Error> {
        while !self.in_transfer.is_empty() {
            self.process_next(contents, sink)?;
        }
        Ok(())
    }

    fn process_next<S: SnapshotSink>(
        &mut self,
        contents: &Contents,
        sink: &mut S,
    ) -> Result<(), Error> {
        let Some((shard, download)) = self.in_transfer.pop_front() else {
            return Ok(());
        };
        let buffer = download.wait()?;
        let values = match contents.precision {
            Precision::Single => Values::F32(copy_values(bytemuck::cast_slice(&buffer))),
            Precision::Double => Values::F64(copy_values(bytemuck::cast_slice(&buffer))),
        };
        drop(buffer);
        let name = &contents.names[shard.field][shard.component];
        sink.push(shard.level, name, shard.first, values)
    }
}

/// Copies values. Threads of the run use the thread pool; the transfer thread leaves it to the run.
fn copy_values<T: Copy + Send + Sync>(values: &[T]) -> Vec<T> {
    match rayon::current_thread_index() {
        Some(_) => {
            let parts = values.par_iter().with_min_len(LARGE);
            parts.copied().collect()
        }
        None => values.to_vec(),
    }
}
