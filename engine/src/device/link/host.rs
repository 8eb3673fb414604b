//! Segments between a device and its host: half of the way of halos where devices have no direct link.

use super::Segment;
use crate::device::backend::{Copies, Pending};
use crate::device::{Device, DeviceError, Pinned};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smallest page-locked memory, bytes.
const LEAST: usize = 64 << 10;
/// Largest piece of a segment, bytes: while one is on its way between the hosts, others are on theirs to and from the devices.
const PIECE: usize = 4 << 20;

/// Pieces of segments start at multiples of this, bytes.
const ALIGNMENT: usize = 64;

/// The way between a device and page-locked memory, both ways beside the device's work and each other.
pub(crate) struct HostWay {
    device: Device,
    down: Box<dyn Copies>,
    up: Box<dyn Copies>,
    /// Places of exchanges that are over, to use again.
    spare: Mutex<Vec<Berth>>,
}

/// The page-locked memory of one exchange. Dropping it waits for copies to the host; copies to the device must have ended.
#[derive(Default)]
pub(crate) struct Berth {
    leaving: Quay,
    arriving: Quay,
    /// Copies to the host of what leaves whose end is not known, the last piece first.
    fetching: Vec<Box<dyn Pending>>,
    /// Copies to the device of what arrived in the exchange before.
    delivered: Option<Box<dyn Pending>>,
}

/// What goes one way, in pieces.
#[derive(Default)]
struct Quay {
    memory: Option<Pinned<u8>>,
    /// Address of the memory.
    base: usize,
    pieces: Vec<Piece>,
}

/// A piece of a segment.
#[derive(Clone, Copy)]
struct Piece {
    peer: usize,
    /// Where it is on the device.
    there: u64,
    /// Where it is in page-locked memory.
    here: usize,
    bytes: usize,
}

impl HostWay {
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            device: device.clone(),
            down: device.backend().copies()?,
            up: device.backend().copies()?,
            spare: Mutex::default(),
        })
    }

    /// Starts to bring what leaves to the host, and makes room for what arrives: both after the work that the device has been
    /// given so far.
    pub(crate) fn fetch(
        &self,
        sends: &[Segment],
        receives: &[Segment],
    ) -> Result<Berth, DeviceError> {
        let mut berth = self.spare().pop().unwrap_or_default();
        // the memory may be exchanged for more
        berth.settle()?;
        berth.leaving.prepare(&self.device, sends)?;
        berth.arriving.prepare(&self.device, receives)?;
        if !receives.is_empty() {
            self.up.follow()?;
        }
        if !sends.is_empty() {
            self.down.follow()?;
        }
        for piece in &berth.leaving.pieces {
            let to = std::ptr::with_exposed_provenance_mut(piece.here);
            let copy = self.down.start(piece.there, to, piece.bytes)?;
            berth.fetching.push(copy);
            self.device.tally().downloaded(piece.bytes);
        }
        berth.fetching.reverse();
        Ok(berth)
    }

    /// Starts to bring a piece that has arrived to the device.
    pub(crate) fn deliver(&self, berth: &Berth, piece: usize) -> Result<(), DeviceError> {
        let Piece {
            there, here, bytes, ..
        } = berth.arriving.pieces[piece];
        self.device.tally().uploaded(bytes);
        let from = std::ptr::with_exposed_provenance(here);
        self.up.upload(from, there, bytes)
    }

    /// Lets what the device is given from now on come after what was delivered, all of it.
    pub(crate) fn conclude(&self, mut berth: Berth) -> Result<(), DeviceError> {
        if !berth.arriving.pieces.is_empty() {
            match self.up.precede() {
                Ok(delivered) => berth.delivered = Some(delivered),
                Err(why) => {
                    berth.abandon();
                    return Err(why);
                }
            }
        }
        self.spare().push(berth);
        Ok(())
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Berth>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Berth {
    /// Room in the host's memory for the pieces that arrive, as segments.
    pub(crate) fn room(&self) -> impl Iterator<Item = Segment> {
        self.arriving.pieces.iter().map(Piece::segment)
    }

    /// Waits until the next piece that leaves is in the host's memory; nothing once all have been asked for.
    pub(crate) fn fetched(&mut self) -> Result<Option<Segment>, DeviceError> {
        let Some(copy) = self.fetching.pop() else {
            return Ok(None);
        };
        copy.wait()?;
        let known = self.leaving.pieces.len() - self.fetching.len();
        Ok(Some(self.leaving.pieces[known - 1].segment()))
    }

    /// Gives the memory up without freeing it, because others may use it still.
    pub(crate) fn abandon(self) {
        std::mem::forget(self);
    }

    /// Waits for all copies.
    fn settle(&mut self) -> Result<(), DeviceError> {
        let mut result = Ok(());
        for copy in self.fetching.drain(..).chain(self.delivered.take()) {
            // all of them, so that the memory is free also after a failure
            result = result.and(copy.wait());
        }
        result
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        // of failures there is nobody to tell
        let _ = self.settle();
    }
}

impl Quay {
    /// Cuts segments to pieces and finds places for them. Nothing may be under way.
    fn prepare(&mut self, device: &Device, segments: &[Segment]) -> Result<(), DeviceError> {
        self.pieces.clear();
        let mut end = 0;
        for segment in segments.iter().filter(|segment| segment.bytes > 0) {
            let number = segment.bytes.div_ceil(PIECE);
            let most = segment.bytes.div_ceil(number);
            for start in (0..segment.bytes).step_by(most) {
                let bytes = most.min(segment.bytes - start);
                self.pieces.push(Piece {
                    peer: segment.peer,
                    there: segment.address + start as u64,
                    here: end,
                    bytes,
                });
                end = (end + bytes).next_multiple_of(ALIGNMENT);
            }
        }
        if self.memory.as_ref().map_or(0, |memory| memory.len()) < end {
            // the old one goes first, to make room
            self.memory = None;
            let mut memory = device.pinned::<u8>(end.next_power_of_two().max(LEAST))?;
            self.base = memory.as_mut_ptr().expose_provenance();
            self.memory = Some(memory);
        }
        self.pieces.iter_mut().for_each(|p| p.here += self.base);
        Ok(())
    }
}

impl Piece {
    /// The piece in the host's memory.
    fn segment(&self) -> Segment {
        Segment {
            peer: self.peer,
            address: self.here as u64,
            bytes: self.bytes,
        }
    }
}
