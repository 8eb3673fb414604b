//! Transfer of a snapshot from a device. If the device has enough memory, it copies the state internally, and
//! a thread transfers the copy while the run continues. Otherwise the run waits while the state is
//! transferred shard by shard. Transfers use page-locked host memory and overlap with the processing of
//! earlier shards.

mod contents;
mod pipeline;
#[cfg(test)]
mod tests;

pub(super) use pipeline::held;

use super::sink::SnapshotSink;
use crate::data::StoreRef;
use crate::data::{DevicePieces, Piece};
use crate::device::{Buffer, Device, DeviceError};
use crate::step::{Engine, Error, memory};
use contents::Contents;
use pipeline::Pipeline;
use std::thread::JoinHandle;

/// State of the transfer of a snapshot.
pub(super) enum Transfer<S: SnapshotSink> {
    /// A thread transfers the values and completes the sink.
    Draining(TransferThread<S::Stored>),
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
pub(super) fn start_transfer<S: SnapshotSink>(
    sim: &Engine,
    device: &Device,
    fields: &[StoreRef],
    mut sink: S,
) -> Result<Transfer<S>, Error> {
    let mut contents = Contents::of(sim, fields, &sink);
    if contents.rows.is_empty() {
        return Ok(Transfer::Done(sink));
    }
    let pipeline = Pipeline::new(sim, device, contents.largest())?;
    if let Some(copy) = copy(sim, device, fields, &contents)? {
        let drain = TransferThread::start(copy, contents, sink, pipeline)?;
        return Ok(Transfer::Draining(drain));
    }
    pass(sim, device, fields, &mut contents, &mut sink, pipeline)?;
    Ok(Transfer::Done(sink))
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
fn pass<S: SnapshotSink>(
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
pub(super) struct TransferThread<T>(Option<JoinHandle<Result<T, Error>>>);

impl<T: Send + 'static> TransferThread<T> {
    fn start<S: SnapshotSink<Stored = T>>(
        copy: Buffer<u8>,
        contents: Contents,
        sink: S,
        pipeline: Pipeline,
    ) -> Result<Self, Error> {
        let name = "nestar-drain".to_string();
        let thread = std::thread::Builder::new().name(name);
        let started = thread.spawn(move || drain(copy, contents, sink, pipeline));
        let failed = |error| Error::Snapshot(format!("cannot start a thread: {error}"));
        Ok(Self(Some(started.map_err(failed)?)))
    }

    /// Returns `true` if the thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread; returns the completed sink.
    ///
    /// # Errors
    /// The error of the thread.
    pub(super) fn wait(mut self) -> Result<T, Error> {
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
fn drain<S: SnapshotSink>(
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
