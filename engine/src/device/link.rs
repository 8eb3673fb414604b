//! Links between the devices of several ranks, over which halos travel without a stop.
//!
//! [`Device::join`] connects GPUs directly, through NCCL: over NVLink or PCIe inside a host, over the network between hosts.
//! [`connect`](crate::comm::device_link::connect) chooses for all ranks together and has a way through the hosts where there is no
//! direct one.

use super::link_transport::{LinkId, LinkTimes, LinkTransport, Segment};
use super::{Buffer, Device, DeviceError, place};
use bytemuck::Pod;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

impl LinkId {
    /// An identity for a link that `device` will belong to.
    ///
    /// # Errors
    /// The device has no direct links, or what they need is not installed.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        device.backend().link_id().map(Self)
    }
}

impl Segment {
    /// The elements `elements` of `memory`.
    ///
    /// # Errors
    /// Elements beyond the end.
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

/// What has travelled between ranks, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkCounters {
    /// Exchanges started.
    pub exchanges: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Seconds that the host has waited in order to finish exchanges.
    pub waited: f64,
    /// What a direct link has measured.
    pub times: LinkTimes,
}

/// The link of one rank's device with those of all other ranks. All ranks start the same exchanges in the same order.
pub struct DeviceLink {
    device: Device,
    transport: Arc<dyn LinkTransport>,
    rank: usize,
    size: usize,
    in_flight: AtomicUsize,
    exchanges: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    /// Nanoseconds.
    waited: AtomicU64,
}

impl DeviceLink {
    /// The link of rank `rank` of `size` that `carrier` makes.
    pub(crate) fn new(
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

    /// One line for people: the way that segments take.
    #[must_use]
    pub fn describe(&self) -> String {
        self.transport.describe()
    }

    /// Starts an exchange: `sends` are read and `receives` written after all work that the device has been given so far,
    /// beside what it is given from now on. The segments for a peer arrive in the order of its segments from here, each with as
    /// many bytes. What is under way must neither be changed nor read nor freed before [`DeviceLink::finish`], and until then
    /// the device should not be asked for memory. The host does not wait, except in the first exchange with a peer, until that
    /// has come as well.
    ///
    /// # Errors
    /// A segment for oneself, for nobody, or in memory that grows; another rank or the connection has failed.
    pub fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.prepare(sends, receives)?;
        self.transport.start(sends, receives)?;
        self.in_flight.fetch_add(1, Relaxed);
        self.count(sends, receives);
        Ok(())
    }

    /// As [`DeviceLink::start`] and [`DeviceLink::finish`] together, which takes less time where nothing is to be done in between.
    ///
    /// # Errors
    /// As there; another exchange is under way.
    pub fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.prepare(sends, receives)?;
        // the oldest one is finished first
        if self.in_flight.load(Relaxed) > 0 {
            return Err(DeviceError::Range("another exchange is under way".into()));
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

    /// Finishes the oldest exchange that was not: what the device is given from now on finds the values there. The host does
    /// not wait where the link is direct.
    ///
    /// # Errors
    /// No exchange is under way; another rank or the connection has failed.
    pub fn finish(&self) -> Result<(), DeviceError> {
        let less = |n: usize| n.checked_sub(1);
        if self.in_flight.fetch_update(Relaxed, Relaxed, less).is_err() {
            return Err(DeviceError::Range("no exchange is under way".into()));
        }
        let start = Instant::now();
        let finished = self.transport.finish();
        self.has_waited(start);
        finished
    }

    /// Whether all segments of all exchanges have left and arrived; on the way through the hosts they do when an exchange is
    /// finished.
    ///
    /// # Errors
    /// Another rank or the connection has failed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.transport.is_done()
    }

    /// Gives the link up because this rank cannot go on: what is under way here ends at once and leaves any values, and later
    /// exchanges fail.
    pub fn stop(&self) {
        self.transport.stop();
    }

    /// What has travelled so far.
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

    /// How the segments travel.
    pub(crate) fn transport(&self) -> Arc<dyn LinkTransport> {
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
        // another GPU of this process writes right into such memory, and mapped memory is not open to it
        if self.device.reserved().holds(address) {
            return Err(DeviceError::Range(
                "segments have to be in memory that does not grow".into(),
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
    /// What direct links of this device are made by, with its version: all ranks of a link need the same.
    ///
    /// # Errors
    /// The device has no direct links, or what they need is not installed.
    pub fn link_library(&self) -> Result<String, DeviceError> {
        self.backend().link_library()
    }

    /// Joins this device, as that of rank `rank` of `size`, with those of all other ranks, no two of which are the same. Waits
    /// for the others, a minute at most, and makes sure that data arrive. Several devices of one process join in a thread
    /// each.
    ///
    /// # Errors
    /// The device has no direct links, or what they need is not installed; other ranks do not come, or data do not arrive.
    pub fn join(&self, id: &LinkId, rank: usize, size: usize) -> Result<DeviceLink, DeviceError> {
        if rank >= size {
            let why = format!("there is no rank {rank} of {size}");
            return Err(DeviceError::Range(why));
        }
        let transport = self.backend().join(&id.0, rank, size)?;
        Ok(DeviceLink::new(self, transport, rank, size))
    }
}
