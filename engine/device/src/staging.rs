//! Staging ring: page-locked buffers for all copies between the host and a device.
//!
//! A device has one ring. Copies take buffers from it, and buffers return when they are dropped. A [`CopyQueue`] copies
//! between buffers and the device in pieces, concurrently with other work of the device. While one piece crosses the
//! bus, the next one is filled, emptied or sent to another rank.

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
const MIN_BUFFER: usize = 64 << 10;
/// Buffers up to this size have power-of-two sizes, so that slowly growing lists reuse them; bytes.
const MAX_ROUNDED: usize = 4 << 20;
/// Largest piece of a blocking copy, bytes: small enough for an early start of the transfer.
const PIECE: usize = 8 << 20;
/// Number of pieces in flight to the device before the host waits.
const MAX_UPLOADS_AHEAD: usize = 3;
/// Alignment of pieces in a buffer, bytes.
const ALIGNMENT: usize = 256;
/// Pieces of at least this size are copied by several threads, bytes.
const LARGE: usize = 4 << 20;

/// Unused page-locked buffers of a device.
pub(super) struct Ring {
    backend: Arc<dyn Backend>,
    counters: Arc<AtomicCounters>,
    spare: Mutex<Vec<PinnedMemory>>,
    /// Total size of all buffers, bytes.
    bytes: AtomicUsize,
}

/// Page-locked memory.
struct PinnedMemory {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: the value owns the memory exclusively
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

    /// Returns a buffer of `bytes` bytes with unspecified content: the smallest unused one of suitable size, or a new
    /// one.
    fn take(self: &Arc<Self>, bytes: usize) -> Result<StagingBuffer, DeviceError> {
        let size = buffer_bytes(bytes);
        let mut spare = lock(&self.spare);
        let fits = |memory: &&PinnedMemory| (size..=4 * size).contains(&memory.bytes);
        let best = spare.iter().filter(fits).map(|memory| memory.bytes).min();
        let found = spare.iter().position(|memory| Some(memory.bytes) == best);
        let memory = match found {
            Some(n) => spare.swap_remove(n),
            None => {
                // Free a buffer that has become too small first.
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

/// Returns the host memory that a buffer of `bytes` bytes takes, in bytes.
pub fn buffer_bytes(bytes: usize) -> usize {
    match bytes {
        0..=MIN_BUFFER => MIN_BUFFER,
        _ if bytes <= MAX_ROUNDED => bytes.next_power_of_two(),
        _ => bytes.next_multiple_of(MIN_BUFFER),
    }
}

/// Page-locked host memory that returns to the ring of its device on drop.
pub struct StagingBuffer {
    memory: PinnedMemory,
    bytes: usize,
    ring: Arc<Ring>,
}

impl Deref for StagingBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the memory holds this many initialised bytes as long as the value lives
        unsafe { std::slice::from_raw_parts(self.memory.first, self.bytes) }
    }
}

impl DerefMut for StagingBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the value is borrowed exclusively
        unsafe { std::slice::from_raw_parts_mut(self.memory.first, self.bytes) }
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        let PinnedMemory { first, bytes } = self.memory;
        lock(&self.ring.spare).push(PinnedMemory { first, bytes });
    }
}

/// A queue of copies between a device and staging buffers, executed in the order of their calls.
pub struct CopyQueue {
    // Dropped first, since it waits for the copies.
    copies: Box<dyn CopyStream>,
    sent: Mutex<UploadsInFlight>,
    ring: Arc<Ring>,
}

/// Buffers that the device is reading.
#[derive(Default)]
struct UploadsInFlight {
    /// Buffers without a fence after them.
    unmarked: Vec<StagingBuffer>,
    marked: VecDeque<(Box<dyn Fence>, Vec<StagingBuffer>)>,
}

impl Device {
    /// Creates a queue of copies that run concurrently with other work of the device.
    ///
    /// # Errors
    /// The device fails.
    pub fn copy_queue(&self) -> Result<CopyQueue, DeviceError> {
        let copies = self.backend().copies(true)?;
        Ok(CopyQueue::new(copies, self.ring()))
    }

    /// Returns the size of the staging ring in bytes.
    #[must_use]
    pub fn staging_bytes(&self) -> usize {
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

    /// Orders copies queued from now on after all work submitted to the device so far. Later work is not ordered with
    /// them.
    ///
    /// # Errors
    /// The device fails.
    pub fn follow(&self) -> Result<(), DeviceError> {
        self.copies.wait_for_main_stream()
    }

    /// Returns a buffer of `bytes` bytes with unspecified content.
    ///
    /// # Errors
    /// The memory of the host does not suffice; the device fails.
    pub fn buffer(&self, bytes: usize) -> Result<StagingBuffer, DeviceError> {
        self.reclaim(usize::MAX)?;
        self.ring.take(bytes)
    }

    /// Starts copying `bytes` bytes of device memory to a buffer. They must not change until the copy has ended.
    ///
    /// # Errors
    /// The memory of the host does not suffice; the device fails.
    pub fn download(&self, from: u64, bytes: usize) -> Result<Download, DeviceError> {
        let mut buffer = self.buffer(bytes)?;
        self.ring.counters.count_download(bytes);
        let pending = match bytes {
            0 => None,
            _ => {
                self.copies.download(from, buffer.as_mut_ptr(), bytes)?;
                Some(self.copies.record_fence()?)
            }
        };
        Ok(Download {
            pending,
            buffer: Some(buffer),
        })
    }

    /// Starts copying a buffer to device memory, which nobody may use until the copy has ended.
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

    /// Orders work submitted to the device from now on after all copies queued here.
    ///
    /// # Errors
    /// The device fails.
    pub fn precede(&self) -> Result<(), DeviceError> {
        let mark = self.copies.block_main_stream()?;
        let mut sent = lock(&self.sent);
        let buffers = std::mem::take(&mut sent.unmarked);
        sent.marked.push_back((mark, buffers));
        Ok(())
    }

    /// Returns buffers that the device has read to the ring, and waits until at most `most` fences remain.
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

/// A copy to the host in flight. Dropping it waits.
pub struct Download {
    /// The fence, until the copy is known to have ended.
    pending: Option<Box<dyn Fence>>,
    /// `None` after the caller has taken it.
    buffer: Option<StagingBuffer>,
}

impl Download {
    /// Waits for the copy and returns its buffer.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(mut self) -> Result<StagingBuffer, DeviceError> {
        if let Some(copy) = self.pending.take() {
            copy.wait()?;
        }
        let buffer = self.buffer.take();
        buffer.ok_or_else(|| DeviceError::Range("the copy was already waited for".into()))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(copy) = self.pending.take() {
            // Errors cannot be reported here.
            let _ = copy.wait();
        }
    }
}

/// Copies between the device and any host memory, ordered with other work of the device.
pub(super) struct OrderedCopies {
    queue: CopyQueue,
    /// The buffer that is being filled, and its filled length.
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

    /// Copies to the host, after all earlier work.
    pub(super) fn download(&mut self, from: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        if to.len() <= MIN_BUFFER {
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
            // The device fills one buffer while the host empties the other.
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

/// Copies host memory; large pieces by several threads.
///
/// It starts threads of its own: a task of the pool could be one that waits for this copy.
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
            // If a thread cannot be started, the others do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}
