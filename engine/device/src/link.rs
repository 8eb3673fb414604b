//! Links between devices of several ranks, which exchange halos without host synchronisation.
//!
//! [`Device::join`] connects GPUs directly through NCCL: over NVLink or PCIe inside a host, over the network between
//! hosts. The communication layer chooses for all ranks together and falls back to transfers through the hosts.

use super::backend::{LinkId, LinkTimes, LinkTransport, Segment};
use super::{Buffer, Device, DeviceError, place};
use bytemuck::Pod;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

impl LinkId {
    /// Creates the identity of a link that `device` will join.
    ///
    /// # Errors
    /// The device has no direct links, or required software is missing.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        device.backend().link_id().map(Self)
    }
}

impl Segment {
    /// Creates a segment of the elements `elements` of `memory`.
    ///
    /// # Errors
    /// The range is out of bounds.
    pub fn of<T: Pod>(
        peer: usize,
        memory: &Buffer<T>,
        elements: Range<usize>,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            peer,
            address: place(memory, elements.start, elements.len())?,
            bytes: elements.len() * size_of::<T>(),
        })
    }
}

/// Traffic between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkCounters {
    /// Number of exchanges started.
    pub exchanges: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Time that the host waited for exchanges, seconds.
    pub waited: f64,
    /// Times measured by a direct link.
    pub times: LinkTimes,
}

/// Link between the device of one rank and those of all others. All ranks start the same exchanges in the same order.
pub struct DeviceLink {
    device: Device,
    transport: Arc<dyn LinkTransport>,
    rank: usize,
    size: usize,
    in_flight: AtomicUsize,
    exchanges: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    /// In nanoseconds.
    waited: AtomicU64,
}

impl DeviceLink {
    /// Creates the link of rank `rank` of `size` from a transport.
    pub fn new(
        device: &Device,
        transport: Arc<dyn LinkTransport>,
        rank: usize,
        size: usize,
    ) -> Self {
        Self {
            device: device.clone(),
            transport,
            rank,
            size,
            in_flight: AtomicUsize::new(0),
            exchanges: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    /// Describes the transport in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        self.transport.describe()
    }

    /// Starts an exchange that runs after all work submitted so far and concurrently with later work.
    ///
    /// Segments of a peer arrive in the order in which it sends them, with equal lengths. Until [`DeviceLink::finish`],
    /// memory in use must not be changed, read or freed, and no device memory should be allocated. The host does not
    /// wait, except for a peer in the first exchange with it.
    ///
    /// # Errors
    /// A segment is for this rank, for an unknown rank or in growable memory; another rank or the connection has
    /// failed.
    pub fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.prepare(sends, receives)?;
        self.transport.start(sends, receives)?;
        self.in_flight.fetch_add(1, Relaxed);
        self.count(sends, receives);
        Ok(())
    }

    /// Starts and finishes an exchange, which is faster if no work is submitted in between.
    ///
    /// # Errors
    /// As [`DeviceLink::start`] and [`DeviceLink::finish`]; another exchange is in flight.
    pub fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.prepare(sends, receives)?;
        // The oldest exchange must be finished first.
        if self.in_flight.load(Relaxed) > 0 {
            return Err(DeviceError::Range("another exchange is in flight".into()));
        }
        let start = Instant::now();
        self.transport.exchange(sends, receives)?;
        self.count(sends, receives);
        self.has_waited(start);
        Ok(())
    }

    fn prepare(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        for segment in sends.iter().chain(receives) {
            self.check(segment)?;
        }
        self.transport
            .profile(self.device.atomic_counters().profiling());
        Ok(())
    }

    fn count(&self, sends: &[Segment], receives: &[Segment]) {
        let bytes = |segments: &[Segment]| segments.iter().map(|p| p.bytes as u64).sum();
        self.exchanges.fetch_add(1, Relaxed);
        self.bytes_sent.fetch_add(bytes(sends), Relaxed);
        self.bytes_received.fetch_add(bytes(receives), Relaxed);
    }

    fn has_waited(&self, since: Instant) {
        let waited = since.elapsed().as_nanos() as u64;
        self.waited.fetch_add(waited, Relaxed);
    }

    /// Finishes the oldest exchange: work submitted to the device from now on sees the received data.
    ///
    /// With a direct link the host does not wait.
    ///
    /// # Errors
    /// No exchange is in flight; another rank or the connection has failed.
    pub fn finish(&self) -> Result<(), DeviceError> {
        let less = |n: usize| n.checked_sub(1);
        if self.in_flight.fetch_update(Relaxed, Relaxed, less).is_err() {
            return Err(DeviceError::Range("no exchange is in flight".into()));
        }
        let start = Instant::now();
        let finished = self.transport.finish();
        self.has_waited(start);
        finished
    }

    /// Returns `true` if all exchanges have completed. With transfers through the hosts they complete when they are
    /// finished.
    ///
    /// # Errors
    /// Another rank or the connection has failed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.transport.is_done()
    }

    /// Aborts the link because this rank cannot continue: pending exchanges end with undefined data, and later ones
    /// fail.
    pub fn stop(&self) {
        self.transport.stop();
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        LinkCounters {
            exchanges: self.exchanges.load(Relaxed),
            bytes_sent: self.bytes_sent.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            waited: self.waited.load(Relaxed) as f64 * 1e-9,
            times: self.transport.times(),
        }
    }

    /// Returns the transport.
    pub fn transport(&self) -> Arc<dyn LinkTransport> {
        self.transport.clone()
    }

    fn check(&self, segment: &Segment) -> Result<(), DeviceError> {
        let Segment { peer, address, .. } = *segment;
        if peer == self.rank || peer >= self.size {
            return Err(DeviceError::Range(format!(
                "rank {} of {} cannot exchange segments with rank {peer}",
                self.rank, self.size
            )));
        }
        // GPUs of this process write directly to such memory, but mapped memory is not accessible to them.
        if self.device.reserved().holds(address) {
            return Err(DeviceError::Range(
                "segments must be in memory that does not grow".into(),
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, size, .. } = self;
        let text = format!("{}, rank {rank} of {size}", self.describe());
        f.debug_tuple("DeviceLink").field(&text).finish()
    }
}

impl Device {
    /// Returns name and version of the library for direct links; all ranks of a link need the same one.
    ///
    /// # Errors
    /// The device has no direct links, or required software is missing.
    pub fn link_library(&self) -> Result<String, DeviceError> {
        self.backend().link_library()
    }

    /// Joins a link as rank `rank` of `size`, each of which has a different device.
    ///
    /// Waits for the other ranks for at most a minute and tests the transfer. Several devices of one process join in
    /// one thread each.
    ///
    /// # Errors
    /// The device has no direct links, required software is missing, other ranks do not join, or data does not arrive.
    pub fn join(&self, id: &LinkId, rank: usize, size: usize) -> Result<DeviceLink, DeviceError> {
        if rank >= size {
            let why = format!("there is no rank {rank} of {size}");
            return Err(DeviceError::Range(why));
        }
        let transport = self.backend().join(&id.0, rank, size)?;
        Ok(DeviceLink::new(self, transport, rank, size))
    }
}
