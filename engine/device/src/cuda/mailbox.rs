//! Peer-to-peer mailboxes for short segments between GPUs that access each other's memory.
//!
//! A kernel writes segments into slots of the receiver, where another kernel waits for them. The host queues one
//! kernel, which takes half the time of NCCL.

#[cfg(test)]
mod tests;

use super::driver::{Code, Stream, answer, driver, sys};
use super::image::CudaKernel;
use super::{Context, slabs, stream};
use crate::{DeviceError, LaunchShape, Segment};
use bytemuck::{Pod, Zeroable};
use nestar_device::Parameter;
use nestar_kernels::mailbox::{MAX_ENTRIES, MailboxEntry, MailboxExchange, SLOT, SLOTS};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Environment variable; 0 disables mailboxes, so that all segments go through NCCL.
const CHOICE: &str = "NESTAR_NEAR";
/// Environment variable of NCCL; 1 disables peer-to-peer access, which not all systems support, also here.
const NCCL_CHOICE: &str = "NCCL_P2P_DISABLE";
/// Largest number of other ranks on a host with slots on a GPU.
const MAX_PEERS: usize = 15;
/// Threads of a block. A block moves one part.
const THREADS: u32 = 256;
/// Offsets of the sequence numbers after the slots of one peer, and the size of its inbox, bytes.
const WRITTEN_NUMBERS: u64 = SLOT as u64 * SLOTS as u64;
const READ_NUMBERS: u64 = WRITTEN_NUMBERS + 8 * SLOTS as u64;
const INBOX: u64 = READ_NUMBERS + 8 * SLOTS as u64;
/// Timeout for receivers to read the last segments.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Data that other ranks need to access the mailbox of a GPU.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Offer {
    process: u64,
    /// Context and address of the slots, valid in that process.
    context: u64,
    address: u64,
    device: i64,
    /// Handle for other processes of the host.
    handle: [u8; 64],
    host: [u8; 36],
    _end: [u8; 4],
}

/// Flag in page-locked host memory that tells kernels to stop waiting.
pub(super) struct AbortFlag(*mut u8);

// SAFETY: the word is only accessed atomically
unsafe impl Send for AbortFlag {}
// SAFETY: as above
unsafe impl Sync for AbortFlag {}

impl AbortFlag {
    pub(super) fn new() -> Result<Self, DeviceError> {
        slabs::allocate_host(size_of::<AtomicU32>()).map(Self)
    }

    pub(super) fn set(&self) {
        self.word().store(1, Ordering::SeqCst);
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the memory is aligned, lives as long as this value and is only accessed atomically
        unsafe { &*self.0.cast() }
    }
}

impl Drop for AbortFlag {
    fn drop(&mut self) {
        // After a failure kernels may still read it.
        if self.word().load(Ordering::SeqCst) == 0 {
            slabs::free_host(self.0);
        }
    }
}

/// A rank whose GPU and this one access each other's memory.
#[derive(Clone, Copy)]
struct Peer {
    /// Slots on the peer for outgoing segments, and own slots for incoming ones.
    there: u64,
    here: u64,
    /// Number of parts sent and received so far.
    sent: u64,
    received: u64,
}

/// Slots of a GPU and the peers that use them.
pub(super) struct PeerMailbox {
    context: Arc<Context>,
    kernel: CudaKernel,
    slots: u64,
    /// Is `true` if other ranks may write to the slots.
    is_open: bool,
    /// Opened memory of other processes.
    opened: Vec<u64>,
    /// Peers by rank.
    peers: Vec<Option<Peer>>,
}

impl PeerMailbox {
    /// Returns `true` unless the environment disables mailboxes.
    pub(super) fn is_wanted() -> bool {
        let is = |name: &str, word: &str| std::env::var(name).is_ok_and(|set| set == word);
        !is(CHOICE, "0") && !is(NCCL_CHOICE, "1")
    }

    /// Allocates slots for `others` ranks, which do not reach them yet.
    pub(super) fn new(
        context: &Arc<Context>,
        kernel: CudaKernel,
        others: usize,
    ) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        let bytes = others.clamp(1, MAX_PEERS) * INBOX as usize;
        let slots = slabs::allocate(bytes)?.ok_or_else(|| context.out_of_memory(bytes))?;
        let mailbox = Self {
            context: context.clone(),
            kernel,
            slots,
            is_open: false,
            opened: Vec::new(),
            peers: Vec::new(),
        };
        context.zero(slots, bytes)?;
        stream::wait(context.stream)?;
        Ok(mailbox)
    }

    /// Exports the data that other ranks need to open the slots.
    pub(super) fn export_mailbox(&self) -> Vec<u8> {
        let offer = Offer {
            host: *HOST,
            process: *PROCESS,
            context: self.context.gpu.context as u64,
            address: self.slots,
            device: self.context.gpu.device.into(),
            handle: self.handle().unwrap_or([0; 64]),
            _end: [0; 4],
        };
        bytemuck::bytes_of(&offer).to_vec()
    }

    /// Returns the handle with which other processes of the host open the slots.
    fn handle(&self) -> Result<[u8; 64], DeviceError> {
        self.context.gpu.bind()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        driver!("", cuIpcGetMemHandle(&mut handle, self.slots))?;
        Ok(handle.reserved.map(|byte| byte as u8))
    }

    /// Opens the exported slots of all ranks; returns, by rank, whether it succeeded.
    pub(super) fn import_mailboxes(
        &mut self,
        rank: usize,
        offers: &[Vec<u8>],
    ) -> Result<Vec<bool>, DeviceError> {
        self.context.gpu.bind()?;
        self.is_open = true;
        let read = |(peer, bytes): (usize, &Vec<u8>)| {
            let offer: Offer = bytemuck::try_pod_read_unaligned(bytes).ok()?;
            (offer.host == *HOST).then_some((peer, offer))
        };
        let found = offers.iter().enumerate().filter_map(read);
        let peers: Vec<(usize, Offer)> = found.take(MAX_PEERS + 1).collect();
        let here: Vec<usize> = peers.iter().map(|(peer, _)| *peer).collect();
        self.peers = vec![None; offers.len()];
        for (peer, offer) in peers.iter().filter(|(peer, _)| *peer != rank) {
            let numbers = number(&here, rank, *peer).zip(number(&here, *peer, rank));
            let reached = numbers.and_then(|numbers| Some((numbers, self.reach(offer)?)));
            self.peers[*peer] = reached.map(|((there, here), slots)| Peer {
                there: slots + there * INBOX,
                here: self.slots + here * INBOX,
                sent: 0,
                received: 0,
            });
        }
        Ok(self.peers.iter().map(Option::is_some).collect())
    }

    /// Returns the address of another GPU's slots for this one, if it can access them.
    fn reach(&mut self, offer: &Offer) -> Option<u64> {
        if offer.process == *PROCESS {
            let mut can = 0;
            let (own, other) = (self.context.gpu.device, offer.device as sys::CUdevice);
            driver!("", cuDeviceCanAccessPeer(&mut can, own, other)).ok()?;
            // SAFETY: the context belongs to this process and lives as long as its rank
            let code = unsafe { sys::cuCtxEnablePeerAccess(offer.context as sys::CUcontext, 0) };
            let known = code == Code::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
            let open = can != 0 && (known || answer("", code).is_ok());
            return open.then_some(offer.address);
        }
        let handle = sys::CUipcMemHandle {
            reserved: offer.handle.map(|byte| byte as _),
        };
        let lazily = sys::CUipcMem_flags_enum::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        driver!("", cuIpcOpenMemHandle_v2(&mut address, handle, lazily)).ok()?;
        self.opened.push(address);
        Some(address)
    }

    /// Keeps the peers that reach this rank too.
    pub(super) fn keep_peers(&mut self, reached: &[bool]) {
        for (peer, both) in self.peers.iter_mut().zip(reached) {
            *peer = peer.filter(|_| *both);
        }
    }

    /// Returns the number of peers.
    pub(super) fn count(&self) -> usize {
        self.peers.iter().flatten().count()
    }

    /// Queues the short segments of an exchange with peers; returns the other segments.
    pub(super) fn exchange(
        &mut self,
        stream: Stream,
        [sends, receives]: [&[Segment]; 2],
        abort_flag: &AbortFlag,
    ) -> Result<[Vec<Segment>; 2], DeviceError> {
        let (sends, far_sends) = self.split(sends);
        let (receives, far_receives) = self.split(receives);
        let count = sends.len();
        let mut entries: Vec<MailboxEntry> = Vec::with_capacity(count + receives.len());
        for (n, segment) in sends.iter().chain(&receives).enumerate() {
            entries.extend(self.entry(segment, n < count));
        }
        for (k, entries) in entries.chunks_mut(MAX_ENTRIES).enumerate() {
            let sends = count.saturating_sub(k * MAX_ENTRIES).min(entries.len());
            self.launch(stream, entries, sends, abort_flag)?;
        }
        Ok([far_sends, far_receives])
    }

    /// Returns `true` if all segments are short and belong to peers.
    pub(super) fn carries(&self, segments: &[Segment]) -> bool {
        segments.iter().all(self.short(segments))
    }

    /// Returns a predicate: `true` for segments of peers whose slots suffice for all their segments.
    fn short(&self, all: &[Segment]) -> impl Fn(&Segment) -> bool + use<> {
        let slots = |peer: &Option<Peer>| peer.map(|_| SLOTS as usize);
        let mut left: Vec<Option<usize>> = self.peers.iter().map(slots).collect();
        for segment in all {
            if let Some(slots) = left.get_mut(segment.peer) {
                *slots = slots.and_then(|slots| slots.checked_sub(parts(segment)));
            }
        }
        move |segment| matches!(left.get(segment.peer), Some(Some(_)))
    }

    /// Splits segments into short ones and others.
    fn split(&self, segments: &[Segment]) -> (Vec<Segment>, Vec<Segment>) {
        let full = segments.iter().filter(|segment| segment.bytes > 0);
        let is_short = self.short(segments);
        full.partition(|segment| is_short(segment))
    }

    /// Creates the kernel parameters of a segment.
    fn entry(&mut self, segment: &Segment, sends: bool) -> Option<MailboxEntry> {
        let peer = self.peers[segment.peer].as_mut()?;
        let (slots, acknowledged, number) = match sends {
            true => (peer.there, peer.here, &mut peer.sent),
            false => (peer.here, peer.there, &mut peer.received),
        };
        let first = *number;
        *number += parts(segment) as u64;
        Some(MailboxEntry {
            memory: segment.address.into(),
            slots: slots.into(),
            written_numbers: (slots + WRITTEN_NUMBERS).into(),
            read_numbers: (acknowledged + READ_NUMBERS).into(),
            number: first,
            bytes: segment.bytes as i64,
            block: 0,
        })
    }

    fn launch(
        &self,
        stream: Stream,
        entries: &mut [MailboxEntry],
        sends: usize,
        abort_flag: &AbortFlag,
    ) -> Result<(), DeviceError> {
        let mut exchange = MailboxExchange {
            entries: [MailboxEntry::default(); MAX_ENTRIES],
            count: entries.len() as i32,
            sends: sends as i32,
            abort_flag: (abort_flag.0 as u64).into(),
        };
        let mut blocks = 0;
        for (to, entry) in exchange.entries.iter_mut().zip(entries) {
            entry.block = blocks as i32;
            blocks += (entry.bytes as usize).div_ceil(SLOT as usize);
            *to = *entry;
        }
        let mut parameters = [0; MailboxExchange::BYTES];
        exchange.write(&mut parameters);
        self.kernel
            .queue(stream, LaunchShape::of(blocks, THREADS), &parameters)
    }

    /// Waits briefly until the peers have read all segments; they do not write to the slots afterwards.
    pub(super) fn close(&mut self) -> Result<(), DeviceError> {
        let until = Instant::now() + DRAIN_TIMEOUT;
        while !self.is_drained()? {
            if Instant::now() > until {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        self.is_open = false;
        Ok(())
    }

    fn is_drained(&self) -> Result<bool, DeviceError> {
        let mut read_numbers = [0u64; SLOTS as usize];
        for peer in self.peers.iter().flatten() {
            let words = bytemuck::bytes_of_mut(&mut read_numbers);
            stream::copy_down(self.context.stream, peer.here + READ_NUMBERS, words)?;
            stream::wait(self.context.stream)?;
            let mut last = peer.sent.saturating_sub(SLOTS as u64)..peer.sent;
            if !last.all(|n| read_numbers[(n % SLOTS as u64) as usize] == n + 1) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for PeerMailbox {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        for address in &self.opened {
            let _ = driver!("", cuIpcCloseMemHandle(*address));
        }
        // Memory to which others may still write is leaked.
        if !self.is_open {
            slabs::free(self.slots);
        }
    }
}

/// Returns the index of rank `of` among the other ranks of the host, as seen from `whose`.
fn number(here: &[usize], of: usize, whose: usize) -> Option<u64> {
    let mut others = here.iter().filter(|peer| **peer != whose);
    let number = others.position(|peer| *peer == of)?;
    Some(number as u64)
}

/// Returns the number of parts of a segment.
fn parts(segment: &Segment) -> usize {
    segment.bytes.div_ceil(SLOT as usize)
}

/// Identity of this process.
static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));

/// Identity of the host until it reboots; of this process if the system does not report one.
static HOST: LazyLock<[u8; 36]> = LazyLock::new(|| {
    let boot_id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot_id = boot_id.first_chunk().copied();
    boot_id.unwrap_or_else(|| {
        let mut host = [0; 36];
        host[..8].copy_from_slice(&PROCESS.to_le_bytes());
        host
    })
});
