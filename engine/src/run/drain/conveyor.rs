//! From the device through page-locked memory to the sink: while the values of one piece are handed over, the next ones cross
//! the bus.

use super::Sink;
use super::freight::{Freight, Piece, patch_bytes};
use crate::device::{Buffer, CopyStream, Device, Pinned, Transfer};
use crate::field::Precision;
use crate::mesh::Topology;
use crate::run::output::allowance;
use crate::step::{Error, Simulation};
use nestar_snapshot::{SHARD_PATCHES, Values};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most buffers of a ring: enough that the bus does not wait for the host.
const MOST_BUFFERS: usize = 4;
/// Fewest.
const FEWEST_BUFFERS: usize = 2;
/// Values that are worth a thread of their own when they are copied.
const LARGE: usize = 1 << 16;

/// Page-locked buffers and the stream that fills them. They are kept from one snapshot to the next, because locking takes
/// longer than filling.
pub(in crate::run) struct Ring {
    stream: CopyStream,
    spare: Vec<Pinned<u8>>,
    bytes: usize,
}

impl Ring {
    /// A ring of buffers of `bytes` bytes.
    pub(super) fn new(sim: &Simulation, device: &Device, bytes: usize) -> Result<Self, Error> {
        let buffers = (0..buffers(sim, bytes)).map(|_| device.pinned(bytes));
        Ok(Self {
            stream: device.copy_stream()?,
            spare: buffers.collect::<Result<_, _>>()?,
            bytes,
        })
    }

    /// Whether pieces of `bytes` bytes fit.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    /// Buffers that are not in use.
    pub(super) fn len(&self) -> usize {
        self.spare.len()
    }
}

/// Buffers for pieces of `bytes` bytes within a quarter of what snapshots may take of the host's memory.
fn buffers(sim: &Simulation, bytes: usize) -> usize {
    let most = allowance(sim);
    (most / 4 / bytes.max(1)).clamp(FEWEST_BUFFERS, MOST_BUFFERS)
}

/// Bytes of the host's memory that a snapshot of the present state takes on its way from a device to the sink's queue.
pub(in crate::run) fn held(sim: &Simulation) -> usize {
    let topology = sim.world.resource::<Topology>();
    let patches = (0..=topology.finest()).map(|level| topology.rows(level).len());
    let largest = patches.clone().max().unwrap_or(0);
    let piece = largest.min(SHARD_PATCHES as usize) * patch_bytes(sim.precision());
    // rows, origins and leaves of all own patches; the piece that is being handed over
    17 * patches.sum::<usize>() + (buffers(sim, piece) + 1) * piece
}

/// Pieces on their way.
pub(super) struct Conveyor<'a, S> {
    ring: &'a mut Ring,
    freight: &'a Freight,
    sink: &'a mut S,
    flying: VecDeque<(Piece, Transfer<u8>)>,
}

impl<'a, S: Sink> Conveyor<'a, S> {
    pub(super) fn new(ring: &'a mut Ring, freight: &'a Freight, sink: &'a mut S) -> Self {
        Self {
            ring,
            freight,
            sink,
            flying: VecDeque::new(),
        }
    }

    /// A buffer for the next piece. Where all are taken, the piece that has been under way for longest is handed over first.
    pub(super) fn buffer(&mut self) -> Result<Pinned<u8>, Error> {
        loop {
            if let Some(buffer) = self.ring.spare.pop() {
                return Ok(buffer);
            }
            self.hand_over()?;
        }
    }

    /// What is started from now on comes after all work of the device so far.
    pub(super) fn follow(&self) -> Result<(), Error> {
        Ok(self.ring.stream.follow()?)
    }

    /// Sends a piece off from where its values stand on the device.
    pub(super) fn start(
        &mut self,
        piece: Piece,
        from: &Arc<Buffer<u8>>,
        offset: usize,
        buffer: Pinned<u8>,
    ) -> Result<(), Error> {
        let bytes = self.freight.bytes_of(&piece);
        let transfer = self.ring.stream.start(from, offset, bytes, buffer)?;
        self.flying.push_back((piece, transfer));
        Ok(())
    }

    /// Hands over all that is still under way.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        while !self.flying.is_empty() {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        let Some((piece, transfer)) = self.flying.pop_front() else {
            return Err(Error::Snapshot(
                "a ring without buffers moves nothing".into(),
            ));
        };
        let buffer = transfer.wait()?;
        let bytes = &buffer[..self.freight.bytes_of(&piece)];
        let values = match self.freight.precision {
            Precision::Single => Values::F32(copied(bytemuck::cast_slice(bytes))),
            Precision::Double => Values::F64(copied(bytemuck::cast_slice(bytes))),
        };
        self.ring.spare.push(buffer);
        let name = &self.freight.names[piece.field][piece.component];
        self.sink.push(piece.level, name, piece.first, values)
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
