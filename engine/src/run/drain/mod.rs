//! How a snapshot leaves a device. Where the device has room, it copies the present state within its own memory, the run goes
//! on at once, and a thread drains the copy beside it. Where it has not, the state leaves shard by shard while the run waits.
//! Either way the values cross the bus into page-locked memory, and go on from there while the next ones cross.

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

/// What has become of a snapshot's values.
pub(super) enum Transfer<S: SnapshotSink> {
    /// A thread brings them to the sink and completes it.
    Draining(TransferThread<S::Stored>),
    /// All of them are in the sink.
    Done(S),
}

/// Sends the present state of all levels from the device to `sink`. Later changes of the fields do not touch it.
///
/// # Errors
/// The device or the sink fails.
///
/// # Panics
/// If a field lives on the host.
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

/// A copy of all levels on the device, in the order of the snapshot; `None` where there is no room for it.
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
    // so the copy's time counts as the snapshot's, and transfers need not wait for it
    device.synchronise()?;
    Ok(Some(copy))
}

/// Brings all levels to the sink shard by shard.
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
    // goes before the slots do, after a failure as well: it waits for what leaves them
    let mut pipeline = pipeline;
    contents.push_structure(sink)?;
    for (n, shard) in contents.shards().enumerate() {
        // the shard that had this slot is through then
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

/// A thread that drains a copy on the device. Dropping it waits.
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

    /// Whether the thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread; what the sink has left.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn wait(mut self) -> Result<T, Error> {
        let panicked = || Error::Snapshot("the thread that drains the device panicked".into());
        match self.0.take().map(JoinHandle::join) {
            Some(Ok(drained)) => drained,
            _ => Err(panicked()),
        }
    }
}

impl<T> Drop for TransferThread<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // of failures there is nobody to tell
            let _ = thread.join();
        }
    }
}

/// The draining thread.
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
    // others may wait for the memory
    drop(copy);
    left?;
    sink.complete()
}
