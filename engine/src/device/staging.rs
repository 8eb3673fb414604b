//! The staging ring: page-locked buffers through which everything passes that travels between the host and a device.
//!
//! A device has one ring; all that copy draw buffers from it, and a buffer returns when it is dropped. A [`CopyQueue`] fills
//! buffers from the device and sends filled ones to it, beside the device's work and piece by piece: while one piece crosses
//! the bus, the next is filled, emptied, or on its way to another rank.

#[cfg(test)]
mod tests;

use super::backend::{Backend, CopyStream, Fence};
use super::counters::AtomicCounters;
use super::parallel::lock;
use super::{Device, DeviceError};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Smallest buffer, bytes.
const LEAST: usize = 64 << 10;
/// Buffers of up to this size are powers of two, so that lists that grow a little find one; bytes.
const ROUNDED: usize = 4 << 20;
/// Largest piece of a copy that the host waits for, bytes: small enough that the bus starts early.
const PIECE: usize = 8 << 20;
/// Pieces on their way to the device that the host runs ahead of.
const MAX_UPLOADS_AHEAD: usize = 3;
/// Pieces in a buffer start at multiples of this, bytes.
const ALIGNMENT: usize = 256;
/// Pieces of this size are worth several threads of the host, bytes.
const LARGE: usize = 4 << 20;

/// The page-locked buffers of a device that are not in use.
pub(super) struct Ring {
    backend: Arc<dyn Backend>,
    counters: Arc<AtomicCounters>,
    spare: Mutex<Vec<PinnedMemory>>,
    /// Bytes of all buffers.
    bytes: AtomicUsize,
}

/// Page-locked memory.
struct PinnedMemory {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: the memory belongs to the value alone, as a Vec's does
unsafe impl Send for PinnedMemory {}

impl Ring {
    pub(super) fn new(backend: &Arc<dyn Backend>, counters: &Arc<AtomicCounters>) -> Arc<Self> {
        Arc::new(Self {
            backend: backend.clone(),
            counters: counters.clone(),
            spare: Mutex::default(),
            bytes: AtomicUsize::new(0),
        })
    }

    /// A buffer of `bytes` bytes of any content: the smallest spare one that is not much too large, or a new one.
    fn take(self: &Arc<Self>, bytes: usize) -> Result<StagingBuffer, DeviceError> {
        let size = buffer_bytes(bytes);
        let mut spare = lock(&self.spare);
        let fits = |memory: &&PinnedMemory| (size..=4 * size).contains(&memory.bytes);
        let best = spare.iter().filter(fits).map(|memory| memory.bytes).min();
        let found = spare.iter().position(|memory| Some(memory.bytes) == best);
        let memory = match found {
            Some(n) => spare.swap_remove(n),
            None => {
                // one that has become too small goes first, to make room
                let smaller = spare.iter().enumerate().filter(|(_, m)| m.bytes < size);
                let largest = smaller.max_by_key(|(_, m)| m.bytes).map(|(n, _)| n);
                if let Some(n) = largest {
                    self.free(&spare.swap_remove(n));
                }
                drop(spare);
                let first = self.backend.allocate_host(size)?;
                self.bytes.fetch_add(size, Relaxed);
                PinnedMemory { first, bytes: size }
            }
        };
        Ok(StagingBuffer {
            memory,
            bytes,
            ring: self.clone(),
        })
    }

    fn free(&self, memory: &PinnedMemory) {
        self.bytes.fetch_sub(memory.bytes, Relaxed);
        self.backend.release_host(memory.first, memory.bytes);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let spare = std::mem::take(&mut *lock(&self.spare));
        spare.iter().for_each(|memory| self.free(memory));
    }
}

/// Bytes of host memory that a buffer of `bytes` bytes takes.
pub(crate) fn buffer_bytes(bytes: usize) -> usize {
    match bytes {
        0..=LEAST => LEAST,
        _ if bytes <= ROUNDED => bytes.next_power_of_two(),
        _ => bytes.next_multiple_of(LEAST),
    }
}

/// Page-locked memory of the host, which the ring of its device gets back on drop.
pub(crate) struct StagingBuffer {
    memory: PinnedMemory,
    bytes: usize,
    ring: Arc<Ring>,
}

impl Deref for StagingBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: so many initialised bytes stand there for as long as the value lives
        unsafe { std::slice::from_raw_parts(self.memory.first, self.bytes) }
    }
}

impl DerefMut for StagingBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the value is borrowed alone
        unsafe { std::slice::from_raw_parts_mut(self.memory.first, self.bytes) }
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        let PinnedMemory { first, bytes } = self.memory;
        lock(&self.ring.spare).push(PinnedMemory { first, bytes });
    }
}

/// A queue of copies between a device and staging buffers. The copies take place in the order of their calls.
pub(crate) struct CopyQueue {
    // goes first: it waits for the copies
    copies: Box<dyn CopyStream>,
    sent: Mutex<UploadsInFlight>,
    ring: Arc<Ring>,
}

/// Buffers that the device reads.
#[derive(Default)]
struct UploadsInFlight {
    /// Those that no mark is behind yet.
    unmarked: Vec<StagingBuffer>,
    marked: VecDeque<(Box<dyn Fence>, Vec<StagingBuffer>)>,
}

impl Device {
    /// A queue of copies beside the device's work.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn copy_queue(&self) -> Result<CopyQueue, DeviceError> {
        let copies = self.backend().copies(true)?;
        Ok(CopyQueue::new(copies, self.ring()))
    }

    /// Bytes of the page-locked memory of the staging ring.
    #[cfg(test)]
    pub(crate) fn staging_bytes(&self) -> usize {
        self.ring().bytes.load(Relaxed)
    }
}

impl CopyQueue {
    fn new(copies: Box<dyn CopyStream>, ring: &Arc<Ring>) -> Self {
        Self {
            copies,
            sent: Mutex::default(),
            ring: ring.clone(),
        }
    }

    /// What is asked for from now on comes after all work that the device has been given so far. Work given later takes no
    /// notice of the copies.
    ///
    /// # Errors
    /// The device fails.
    pub fn follow(&self) -> Result<(), DeviceError> {
        self.copies.follow()
    }

    /// A buffer of `bytes` bytes of any content.
    ///
    /// # Errors
    /// The host's memory does not suffice; the device fails.
    pub fn buffer(&self, bytes: usize) -> Result<StagingBuffer, DeviceError> {
        self.reclaim(usize::MAX)?;
        self.ring.take(bytes)
    }

    /// Starts to copy `bytes` bytes of device memory to a buffer. They are to stay as they are until the copy has ended.
    ///
    /// # Errors
    /// The host's memory does not suffice; the device fails.
    pub fn download(&self, from: u64, bytes: usize) -> Result<Download, DeviceError> {
        let mut buffer = self.buffer(bytes)?;
        self.ring.counters.count_download(bytes);
        let pending = match bytes {
            0 => None,
            _ => {
                self.copies.download(from, buffer.as_mut_ptr(), bytes)?;
                Some(self.copies.mark()?)
            }
        };
        Ok(Download {
            pending,
            buffer: Some(buffer),
        })
    }

    /// Starts to copy a buffer to device memory, which nobody is to use until then.
    ///
    /// # Errors
    /// The device fails.
    pub fn upload(&self, buffer: StagingBuffer, to: u64) -> Result<(), DeviceError> {
        self.ring.counters.count_upload(buffer.len());
        if !buffer.is_empty() {
            self.copies.upload(buffer.as_ptr(), to, buffer.len())?;
            lock(&self.sent).unmarked.push(buffer);
        }
        Ok(())
    }

    /// What the device is given from now on comes after all that was asked for here.
    ///
    /// # Errors
    /// The device fails.
    pub fn precede(&self) -> Result<(), DeviceError> {
        let mark = self.copies.precede()?;
        let mut sent = lock(&self.sent);
        let buffers = std::mem::take(&mut sent.unmarked);
        sent.marked.push_back((mark, buffers));
        Ok(())
    }

    /// Gives back buffers that the device has read, and waits until at most `most` marks are left.
    fn reclaim(&self, most: usize) -> Result<(), DeviceError> {
        let mut sent = lock(&self.sent);
        while let Some((mark, _)) = sent.marked.front() {
            if sent.marked.len() > most {
                mark.wait()?;
            } else if !mark.is_done()? {
                break;
            }
            sent.marked.pop_front();
        }
        Ok(())
    }
}

/// A copy to the host under way. Dropping it waits.
pub(crate) struct Download {
    /// The copy, until its end is known.
    pending: Option<Box<dyn Fence>>,
    /// None once the caller has it.
    buffer: Option<StagingBuffer>,
}

impl Download {
    /// Waits for the values.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(mut self) -> Result<StagingBuffer, DeviceError> {
        if let Some(copy) = self.pending.take() {
            copy.wait()?;
        }
        let buffer = self.buffer.take();
        buffer.ok_or_else(|| DeviceError::Range("the copy was waited for before".into()))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(copy) = self.pending.take() {
            // of failures there is nobody to tell
            let _ = copy.wait();
        }
    }
}

/// Copies that are ordered with the device's work, between it and any memory of the host.
pub(super) struct OrderedCopies {
    queue: CopyQueue,
    /// The buffer that is being filled, and how far.
    filling: Option<(StagingBuffer, usize)>,
}

impl OrderedCopies {
    pub(super) fn new(ring: &Arc<Ring>) -> Result<Self, DeviceError> {
        Ok(Self {
            queue: CopyQueue::new(ring.backend.copies(false)?, ring),
            filling: None,
        })
    }

    /// Copies to the device; on return `from` may be reused.
    pub(super) fn upload(&mut self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.queue.ring.counters.count_upload(from.len());
        let mut done = 0;
        while done < from.len() {
            let (mut buffer, start) = match self.filling.take() {
                Some(filling) => filling,
                None => (self.queue.buffer(PIECE)?, 0),
            };
            let bytes = (from.len() - done).min(PIECE - start);
            let place = &mut buffer[start..start + bytes];
            copy(&from[done..done + bytes], place);
            let copies = &self.queue.copies;
            copies.upload(place.as_ptr(), to + done as u64, bytes)?;
            done += bytes;
            let end = (start + bytes).next_multiple_of(ALIGNMENT);
            if end < PIECE {
                self.filling = Some((buffer, end));
            } else {
                lock(&self.queue.sent).unmarked.push(buffer);
                self.queue.precede()?;
                self.queue.reclaim(MAX_UPLOADS_AHEAD)?;
            }
        }
        Ok(())
    }

    /// Copies to the host, after all work before.
    pub(super) fn download(&mut self, from: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        if to.len() <= LEAST {
            let mut buffer = self.queue.ring.take(to.len())?;
            self.queue.ring.counters.count_download(to.len());
            let copies = &self.queue.copies;
            copies.download(from, buffer.as_mut_ptr(), to.len())?;
            copies.wait()?;
            to.copy_from_slice(&buffer);
            return Ok(());
        }
        let total = to.len();
        let mut asked = 0;
        let mut in_flight = VecDeque::new();
        for place in to.chunks_mut(PIECE) {
            // the device fills one buffer while the host empties the other
            while asked < total && in_flight.len() < 2 {
                let bytes = PIECE.min(total - asked);
                in_flight.push_back(self.queue.download(from + asked as u64, bytes)?);
                asked += bytes;
            }
            let arrived = in_flight.pop_front().map(Download::wait).transpose()?;
            arrived.iter().for_each(|buffer| copy(buffer, place));
        }
        Ok(())
    }
}

/// Copies in the host's memory, large pieces by several threads. Threads of their own: a task of the pool could be one
/// that waits for this very copy.
fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() < LARGE {
        to.copy_from_slice(from);
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let share = from.len().div_ceil(threads);
    let pieces = Mutex::new(from.chunks(share).zip(to.chunks_mut(share)));
    let next = || lock(&pieces).next();
    let work = || {
        while let Some((from, to)) = next() {
            to.copy_from_slice(from);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // where there are no threads to be had, the others do it all
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}
