//! Links the devices of all ranks, with the same kind of link on all ranks.
//!
//! GPUs are linked directly by NCCL if every rank can. Otherwise data goes through GPU-aware MPI, if the transport
//! reaches device memory, or through the hosts.
//!
//! A watchdog supervises direct links. If the link or another rank of this process fails, it aborts pending transfers,
//! and all ranks end with a message. `NESTAR_NCCL=0` in the environment of any rank disables direct links.

mod host_staging;

use super::{Message, MessageBuffer, Messages, PendingExchange, Ranks, RanksError};
use bevy_ecs::prelude::Resource;
use host_staging::HostStagedLink;
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{
    Device, DeviceError, DeviceKind, DeviceLink, LinkId, LinkTransport, Segment,
};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Environment variable; 0 disables direct links.
const CHOICE: &str = "NESTAR_NCCL";
/// Bytes of a device identity.
const IDENTITY: usize = 16;

/// Link between the device of this rank and those of the other ranks.
#[derive(Resource)]
pub struct Connection {
    // Dropped before the link.
    watch: Option<Watchdog>,
    link: DeviceLink,
    note: Option<String>,
}

impl Connection {
    /// Returns `true` if data moves between devices without passing through the hosts.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.watch.is_some()
    }

    /// Returns why GPUs are not linked directly, if that is so; the text is the same on all ranks.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

impl Deref for Connection {
    type Target = DeviceLink;
    fn deref(&self) -> &DeviceLink {
        &self.link
    }
}

/// Links the devices of all ranks; all ranks get the same kind of link. Collective.
///
/// # Errors
/// Another rank or the device has failed.
pub fn connect(ranks: &Ranks, device: &Device) -> Result<Connection, RanksError> {
    let note = match direct(ranks, device)? {
        DirectLink::Link(link) => {
            let watch = Some(Watchdog::start(ranks, link.transport())?);
            open_mailboxes(ranks, &*link.transport())?;
            return Ok(Connection {
                watch,
                link,
                note: None,
            });
        }
        DirectLink::Unwanted => None,
        DirectLink::Impossible(why) => Some(why),
    };
    let transport: Arc<dyn LinkTransport> = match transport_reaches_devices(ranks, device)? {
        true => Arc::new(GpuAwareLink::new(ranks, device)),
        false => Arc::new(HostStagedLink::new(ranks, device)?),
    };
    Ok(Connection {
        watch: None,
        link: DeviceLink::new(device, transport, ranks.rank(), ranks.size()),
        note,
    })
}

/// Opens peer-to-peer mailboxes between devices that reach each other's memory. Collective.
fn open_mailboxes(ranks: &Ranks, transport: &dyn LinkTransport) -> Result<(), RanksError> {
    let communicator = ranks.communicator();
    let offers = communicator.all_gather(&transport.export_mailbox())?;
    let reached: Vec<u8> = transport
        .import_mailboxes(&offers)?
        .iter()
        .map(|&is| is.into())
        .collect();
    let all = communicator.all_gather(&reached)?;
    let reached: Vec<bool> = all.iter().map(|one| one[ranks.rank()] == 1).collect();
    Ok(transport.keep_peers(&reached)?)
}

/// Returns `true` if the communicator reaches the memory of all devices.
fn transport_reaches_devices(ranks: &Ranks, device: &Device) -> Result<bool, RanksError> {
    let unreachable = !ranks.communicator().reaches(device.kind());
    Ok(!ranks.any(unreachable)?)
}

/// Result of an attempt to link devices directly.
enum DirectLink {
    Link(DeviceLink),
    /// There is no GPU.
    Unwanted,
    /// Direct links are impossible; holds the reason.
    Impossible(String),
}

/// Creates a direct link if all ranks support it.
fn direct(ranks: &Ranks, device: &Device) -> Result<DirectLink, RanksError> {
    if !ranks.any(device.kind() == DeviceKind::Cuda)? {
        return Ok(DirectLink::Unwanted);
    }
    let own = Readiness::of(device, std::env::var(CHOICE).ok().as_deref());
    let all = ranks.communicator().all_gather(&own.to_bytes())?;
    let all: Vec<Readiness> = all.iter().map(|bytes| Readiness::read(bytes)).collect();
    if let Err(why) = check_readiness(&all) {
        return Ok(DirectLink::Impossible(why));
    }
    let id = match share_id(ranks, device)? {
        Ok(id) => id,
        Err(why) => return Ok(DirectLink::Impossible(format!("rank 0: {why}"))),
    };
    let start = Instant::now();
    let joined = device.join(&id, ranks.rank(), ranks.size());
    let why = joined.as_ref().err().map(DeviceError::to_string);
    let answer = encode_join_result(start.elapsed(), why.as_deref());
    let failure = first_failure(&ranks.communicator().all_gather(&answer)?);
    Ok(match (joined, failure) {
        (Ok(link), None) => DirectLink::Link(link),
        (joined, failure) => {
            if let Ok(link) = joined {
                link.stop();
            }
            DirectLink::Impossible(failure.unwrap_or_default())
        }
    })
}

/// Encodes the time and the failure of joining.
fn encode_join_result(time: Duration, failure: Option<&str>) -> Vec<u8> {
    let time = (time.as_micros() as u64).to_le_bytes();
    [&time, failure.unwrap_or_default().as_bytes()].concat()
}

/// Returns the earliest failure: later ones may be timeouts of waiting ranks.
fn first_failure(answers: &[Vec<u8>]) -> Option<String> {
    let failed = |(rank, answer): (usize, &Vec<u8>)| {
        let (time, why) = answer.split_first_chunk()?;
        let why = String::from_utf8_lossy(why);
        (!why.is_empty()).then(|| (u64::from_le_bytes(*time), format!("rank {rank}: {why}")))
    };
    let failures = answers.iter().enumerate().filter_map(failed);
    failures.min().map(|(_, why)| why)
}

/// Creates the link identity on rank 0 and broadcasts it, or the reason why there is none.
fn share_id(ranks: &Ranks, device: &Device) -> Result<Result<LinkId, String>, RanksError> {
    let mut answer = Vec::new();
    if ranks.rank() == 0 {
        answer = match LinkId::new(device) {
            Ok(id) => [&[1], id.as_bytes()].concat(),
            Err(why) => [&[0], why.to_string().as_bytes()].concat(),
        };
    }
    ranks.communicator().broadcast(0, &mut answer)?;
    let (made, rest) = answer.split_first().unwrap_or((&0, &[]));
    let id = LinkId::from_bytes(rest).filter(|_| *made == 1);
    Ok(id.ok_or_else(|| String::from_utf8_lossy(rest).into_owned()))
}

/// Properties of a rank that direct links depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Readiness {
    identity: [u8; IDENTITY],
    /// Name of the link library, or the reason why there is none.
    library: Result<String, String>,
}

impl Readiness {
    fn of(device: &Device, choice: Option<&str>) -> Self {
        let library = match choice {
            Some("0") => Err(format!("{CHOICE}=0")),
            _ => device.link_library().map_err(|why| why.to_string()),
        };
        Self {
            identity: device.identity().unwrap_or_default(),
            library,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (Ok(words) | Err(words)) = &self.library;
        let is_available = u8::from(self.library.is_ok());
        [&self.identity, &[is_available][..], words.as_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Self {
        let (identity, rest) = bytes.split_first_chunk().unwrap_or((&[0; IDENTITY], &[]));
        let (is_available, words) = rest.split_first().unwrap_or((&0, &[]));
        let words = String::from_utf8_lossy(words).into_owned();
        Self {
            identity: *identity,
            library: if *is_available == 1 {
                Ok(words)
            } else {
                Err(words)
            },
        }
    }
}

/// Returns an error with the reason if the ranks cannot all be linked directly. `all` is ordered by rank.
fn check_readiness(all: &[Readiness]) -> Result<(), String> {
    for (rank, one) in all.iter().enumerate() {
        let library = one.library.as_ref();
        let library = library.map_err(|why| format!("rank {rank}: {why}"))?;
        let first = all[0].library.as_deref().unwrap_or_default();
        if library != first {
            return Err(format!("rank 0 has {first}, rank {rank} has {library}"));
        }
        let same = |other: &Readiness| other.identity == one.identity;
        if let Some(other) = all[..rank].iter().position(same) {
            return Err(format!("ranks {other} and {rank} share a GPU"));
        }
    }
    Ok(())
}

/// A link through the communicator.
struct GpuAwareLink {
    ranks: Ranks,
    device: Device,
    in_flight: Mutex<VecDeque<Box<dyn PendingExchange>>>,
}

impl GpuAwareLink {
    fn new(ranks: &Ranks, device: &Device) -> Self {
        Self {
            ranks: ranks.clone(),
            device: device.clone(),
            in_flight: Mutex::default(),
        }
    }
}

impl LinkTransport for GpuAwareLink {
    fn describe(&self) -> String {
        "by GPU-aware MPI".into()
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        // The communicator does not wait for work of the device.
        self.device.synchronise()?;
        let messages = |segments: &[Segment]| {
            let message = |segment: &Segment| Message {
                peer: segment.peer,
                // SAFETY: device memory that the caller of the link keeps valid and unused until the exchange is
                // finished
                bytes: unsafe { MessageBuffer::borrowed(*segment) },
            };
            segments.iter().map(message).collect()
        };
        let started = self.ranks.communicator().start(Messages {
            sends: messages(sends),
            receives: messages(receives),
        })?;
        lock(&self.in_flight).push_back(started);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = lock(&self.in_flight).pop_front();
        oldest.map(PendingExchange::finish).transpose()?;
        Ok(())
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(lock(&self.in_flight).is_empty())
    }

    fn check(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stop(&self) {
        // The communicator may still use the memory: leak the exchanges until the ranks end.
        lock(&self.in_flight).drain(..).for_each(std::mem::forget);
    }
}

/// A message from or to the device of another rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMessage {
    /// Rank at the other end.
    pub peer: usize,
    /// Information about the content for the receiver; sent through the hosts.
    pub header: Vec<u8>,
    /// Address of the content on the device. Received contents are aligned to 8 bytes in the receive buffer.
    pub address: u64,
    /// Length of the content in bytes.
    pub bytes: usize,
}

/// Alignment of received contents, bytes.
const ALIGNMENT: usize = 8;

/// Exchanges messages, at most one to each peer, and returns the received ones in rank order. Collective.
///
/// `room` returns the address of a buffer with the given number of bytes.
pub(super) fn exchange_messages(
    ranks: &Ranks,
    link: Option<&DeviceLink>,
    sends: &[DeviceMessage],
    room: impl FnOnce(usize) -> Result<u64, DeviceError>,
) -> Result<Vec<DeviceMessage>, DeviceError> {
    let announcement = |message: &DeviceMessage| Message {
        peer: message.peer,
        bytes: [&(message.bytes as u64).to_le_bytes()[..], &message.header].concat(),
    };
    let sent = sends.iter().map(announcement).collect();
    let mut headers = ranks.communicator().exchange(sent)?;
    if sends.is_empty() && headers.is_empty() {
        return Ok(Vec::new());
    }
    headers.sort_by_key(|message| message.peer);
    let (mut received, mut all) = (Vec::with_capacity(headers.len()), 0);
    for Message { peer, bytes } in headers {
        let cut = || RanksError::Transport("the header of a device message is truncated".into());
        let (length, header) = bytes.split_first_chunk().ok_or_else(cut)?;
        let length = u64::from_le_bytes(*length) as usize;
        received.push(DeviceMessage {
            peer,
            header: header.to_vec(),
            address: all as u64,
            bytes: length,
        });
        all += length.next_multiple_of(ALIGNMENT);
    }
    let first = room(all.max(ALIGNMENT))?;
    received
        .iter_mut()
        .for_each(|message| message.address += first);
    if let Some(link) = link {
        link.exchange(&segments(sends), &segments(&received))?;
    }
    Ok(received)
}

/// Returns the non-empty contents of messages as segments.
fn segments(messages: &[DeviceMessage]) -> Vec<Segment> {
    let full = messages.iter().filter(|message| message.bytes > 0);
    let segment = |message: &DeviceMessage| Segment {
        peer: message.peer,
        address: message.address,
        bytes: message.bytes,
    };
    full.map(segment).collect()
}

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Supervises a link until it is dropped.
struct Watchdog {
    end: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

/// Signal that ends the watchdog.
#[derive(Default)]
struct StopSignal {
    reached: Mutex<bool>,
    changed: Condvar,
}

impl Watchdog {
    fn start(ranks: &Ranks, link: Arc<dyn LinkTransport>) -> Result<Self, DeviceError> {
        let (ranks, end) = (ranks.clone(), Arc::new(StopSignal::default()));
        let own = end.clone();
        let work = move || watch(&ranks, &*link, &own);
        let thread = std::thread::Builder::new().name("watch".into()).spawn(work);
        let thread = thread.map_err(|why| DeviceError::Failed {
            doing: "cannot start a thread".into(),
            why: why.to_string(),
        })?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.end.reached) = true;
        self.end.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

/// Checks the link until the signal is set or something has failed.
fn watch(ranks: &Ranks, link: &dyn LinkTransport, end: &StopSignal) {
    while !end.wait_for(INTERVAL) {
        if ranks.communicator().failure().is_some() {
            return link.stop();
        }
        if let Err(why) = link.check() {
            // Stop the ranks first, so that none continues with missing data.
            ranks.communicator().abort(&why.to_string());
            return link.stop();
        }
    }
}

impl StopSignal {
    /// Waits for the signal; returns `true` if it was set.
    fn wait_for(&self, time: Duration) -> bool {
        let reached = lock(&self.reached);
        let waited = self
            .changed
            .wait_timeout_while(reached, time, |reached| !*reached);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests;
