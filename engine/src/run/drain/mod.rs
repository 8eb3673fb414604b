//! How a snapshot leaves a device. Where the device has room, it copies the present state within its own memory, the run goes
//! on at once, and a thread drains the copy beside it. Where it has not, the state leaves piece by piece while the run waits.
//! Either way the values cross the bus into page-locked memory, and go on from there while the next ones cross.

mod conveyor;
mod freight;
#[cfg(test)]
mod tests;

pub(super) use conveyor::{Ring, held};
pub(super) use freight::patch_bytes;

use super::layout::Part;
use crate::device::{Buffer, Device, DeviceError};
use crate::field::FieldOperations;
use crate::field::device::Packing;
use crate::step::{Error, Simulation, memory};
use conveyor::Conveyor;
use freight::Freight;
use nestar_snapshot::Values;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Where the values of a snapshot go.
pub(super) trait Sink: Send + 'static {
    /// What is left when all that was pushed is safe.
    type Stored: Send + 'static;
    /// What of a level goes here.
    fn part(&self, level: usize) -> Part;
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

/// What has become of a snapshot's values.
pub(super) enum Departure<S: Sink> {
    /// A thread brings them to the sink and completes it.
    Draining(Drain<S::Stored>),
    /// All of them are in the sink.
    Done(S),
}

/// Sends the present state of all levels from the device to `sink`. Later changes of the fields do not touch it. `ring` is
/// made where there is none, and a thread that drains takes it along.
///
/// # Errors
/// The device or the sink fails.
///
/// # Panics
/// If a field lives on the host.
pub(super) fn depart<S: Sink>(
    sim: &Simulation,
    device: &Device,
    fields: &[FieldOperations],
    mut sink: S,
    ring: &mut Option<Ring>,
) -> Result<Departure<S>, Error> {
    let mut freight = Freight::of(sim, fields, &sink);
    if freight.rows.is_empty() {
        return Ok(Departure::Done(sink));
    }
    let mut own = match ring.take() {
        Some(ring) if ring.fits(freight.largest()) => ring,
        _ => Ring::new(sim, device, freight.largest())?,
    };
    if let Some(copy) = copy(sim, device, fields, &freight)? {
        let drain = Drain::start(copy, freight, sink, own)?;
        return Ok(Departure::Draining(drain));
    }
    pass(sim, device, fields, &mut freight, &mut sink, &mut own)?;
    *ring = Some(own);
    Ok(Departure::Done(sink))
}

/// A copy of all levels on the device, in the order of the snapshot; `None` where there is no room for it.
fn copy(
    sim: &Simulation,
    device: &Device,
    fields: &[FieldOperations],
    freight: &Freight,
) -> Result<Option<Arc<Buffer<u8>>>, Error> {
    let rows = bytemuck::cast_slice::<u32, u8>(&freight.rows);
    let bytes = freight.bytes + rows.len();
    if memory::spare(&sim.world) < bytes as u64 {
        return Ok(None);
    }
    let copy = match device.lend(bytes) {
        Ok(copy) => copy,
        Err(DeviceError::Memory { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    device.upload(&copy, freight.bytes, rows)?;
    for block in &freight.blocks {
        let packing = Packing {
            components: 0..freight.names[block.field].len(),
            rows: copy.address() + (freight.bytes + 4 * block.row) as u64,
            count: block.patches,
            group: block.shard,
            to: copy.address() + block.offset as u64,
        };
        (fields[block.field].pack)(&sim.world, block.level, &packing)?;
    }
    // so the copy's time counts as the snapshot's, and transfers need not wait for it
    device.synchronise()?;
    Ok(Some(Arc::new(copy)))
}

/// Brings all levels to the sink piece by piece.
fn pass<S: Sink>(
    sim: &Simulation,
    device: &Device,
    fields: &[FieldOperations],
    freight: &mut Freight,
    sink: &mut S,
    ring: &mut Ring,
) -> Result<(), Error> {
    let rows = device.buffer::<u32>(freight.rows.len())?;
    device.upload(&rows, 0, &freight.rows)?;
    let slot = || device.buffer::<u8>(freight.largest()).map(Arc::new);
    let slots: Vec<_> = (0..ring.len()).map(|_| slot()).collect::<Result<_, _>>()?;
    freight.push_structure(sink)?;
    let mut conveyor = Conveyor::new(ring, freight, sink);
    for (n, piece) in freight.pieces().enumerate() {
        // with a free buffer, the piece that had this slot is through
        let buffer = conveyor.buffer()?;
        let slot = &slots[n % slots.len()];
        let packing = Packing {
            components: piece.component..piece.component + 1,
            rows: rows.address() + 4 * piece.row as u64,
            count: piece.patches,
            group: piece.patches,
            to: slot.address(),
        };
        (fields[piece.field].pack)(&sim.world, piece.level, &packing)?;
        conveyor.follow()?;
        conveyor.start(piece, slot, 0, buffer)?;
    }
    conveyor.finish()
}

/// A thread that drains a copy on the device. Dropping it waits.
pub(super) struct Drain<T>(Option<JoinHandle<Drained<T>>>);

/// What a draining thread leaves: the ring, unless it broke, and what the sink does.
type Drained<T> = (Option<Ring>, Result<T, Error>);

impl<T: Send + 'static> Drain<T> {
    fn start<S: Sink<Stored = T>>(
        copy: Arc<Buffer<u8>>,
        freight: Freight,
        sink: S,
        ring: Ring,
    ) -> Result<Self, Error> {
        let name = "nestar-drain".to_string();
        let thread = std::thread::Builder::new().name(name);
        let started = thread.spawn(move || drain(copy, freight, sink, ring));
        let failed = |error| Error::Snapshot(format!("cannot start a thread: {error}"));
        Ok(Self(Some(started.map_err(failed)?)))
    }

    /// Whether the thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread; gives the ring back.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn wait(mut self) -> Drained<T> {
        let panicked = || Error::Snapshot("the thread that drains the device panicked".into());
        match self.0.take().map(JoinHandle::join) {
            Some(Ok(drained)) => drained,
            _ => (None, Err(panicked())),
        }
    }
}

impl<T> Drop for Drain<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // of failures there is nobody to tell
            let _ = thread.join();
        }
    }
}

/// The draining thread.
fn drain<S: Sink>(
    copy: Arc<Buffer<u8>>,
    mut freight: Freight,
    mut sink: S,
    mut ring: Ring,
) -> Drained<S::Stored> {
    let moved = freight.push_structure(&mut sink).and_then(|()| {
        let mut conveyor = Conveyor::new(&mut ring, &freight, &mut sink);
        for piece in freight.pieces() {
            let buffer = conveyor.buffer()?;
            let offset = piece.offset;
            conveyor.start(piece, &copy, offset, buffer)?;
        }
        conveyor.finish()
    });
    // others may wait for the memory
    drop(copy);
    match moved {
        Ok(()) => (Some(ring), sink.complete()),
        Err(error) => (None, Err(error)),
    }
}
