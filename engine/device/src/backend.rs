//! Interface of a kind of device: memory, copies, compilation, launches and links to other ranks.

use crate::DeviceError;
use crate::counters::AtomicKernelCounters;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Free memory, bytes.
    pub free: u64,
    /// Total memory, bytes.
    pub total: u64,
}

/// Limits of kernel launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Number of multiprocessors; of CPU threads for an emulated device.
    pub multiprocessors: u32,
    /// Largest number of threads per block.
    pub threads_per_block: u32,
    /// Number of threads per multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Number of 32-bit registers per multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Shared memory per block, dynamic and static, bytes.
    pub shared_per_block: u32,
    /// Shared memory per multiprocessor, bytes.
    pub shared_per_multiprocessor: u32,
    /// Shared memory that the system reserves per block, bytes.
    pub shared_reserved_per_block: u32,
    /// Compute capability, major and minor; zeros for an emulated device.
    pub capability: [u32; 2],
}

/// Number and size of the blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Number of blocks; nothing is launched if it is 0.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// Dynamic shared memory per block, bytes.
    pub shared: u32,
    /// `true` for blocks that run at the same time, so that a kernel may use `barrier_of_grid()`. Fewer blocks are launched if
    /// not all of them fit on the device.
    pub together: bool,
}

impl LaunchShape {
    /// Creates a shape of `blocks` blocks without dynamic shared memory.
    #[must_use]
    pub fn of(blocks: usize, threads: u32) -> Self {
        Self {
            blocks: blocks as u32,
            threads,
            shared: 0,
            together: false,
        }
    }

    /// Creates a shape of at most `blocks` blocks that run at the same time.
    #[must_use]
    pub fn together(blocks: usize, threads: u32) -> Self {
        Self {
            together: true,
            ..Self::of(blocks, threads)
        }
    }
}

/// Resources of a compiled kernel. An emulated kernel knows only the size of its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread for values that do not fit into registers, bytes.
    pub local: u32,
    /// Static shared memory, bytes.
    pub shared: u32,
    /// Largest number of threads per block.
    pub threads: u32,
    /// Size of the parameters in bytes, if known.
    pub parameters: Option<u32>,
}

/// A kind of device.
///
/// All work is ordered on one stream: copies, fills and launches take effect in the order of their calls. Only a
/// [`CopyStream`] may run concurrently.
pub(super) trait Backend: Send + Sync {
    /// Returns one line that describes the device.
    fn describe(&self) -> String;
    /// Returns a unique identity of the device, if it has one.
    fn identity(&self) -> Option<[u8; 16]>;
    /// Returns the limits of launches.
    fn limits(&self) -> DeviceLimits;
    /// Returns free and total memory.
    fn memory(&self) -> Result<DeviceMemory, DeviceError>;
    /// Allocates device memory with unspecified content, aligned to 256 bytes; `bytes > 0`.
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Frees memory of `allocate` after all work that uses it.
    fn release(&self, address: u64, bytes: usize);
    /// Reserves an address range of `bytes > 0` without memory.
    fn reserve(&self, bytes: usize) -> Result<Box<dyn AddressRange>, DeviceError>;
    /// Allocates page-locked host memory, set to zero and aligned to 64 bytes; `bytes > 0`.
    fn allocate_host(&self, bytes: usize) -> Result<*mut u8, DeviceError>;
    /// Frees memory of `allocate_host`.
    fn release_host(&self, pointer: *mut u8, bytes: usize);
    /// Sets bytes to zero.
    fn zero(&self, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Copies on the device; the ranges do not overlap.
    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Creates a queue of copies to and from the host: a separate one (`beside`), or one on the main stream.
    fn copies(&self, beside: bool) -> Result<Box<dyn CopyStream>, DeviceError>;
    /// Waits for all work.
    fn synchronise(&self) -> Result<(), DeviceError>;
    /// Begins an interval of the stream's time after all work so far; its nanoseconds are added to `sum`. Does nothing on a
    /// device that does not measure.
    fn begin_interval(&self, _sum: &Arc<AtomicU64>) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Compiles a source, or loads the result of an earlier compilation.
    fn compile(&self, name: &str, source: &str) -> Result<Arc<dyn LoadedCode>, DeviceError>;

    /// Returns name and version of the library for direct links.
    fn link_library(&self) -> Result<String, DeviceError> {
        Err(no_links())
    }
    /// Creates the identity of a new link.
    fn link_id(&self) -> Result<[u8; LinkId::BYTES], DeviceError> {
        Err(no_links())
    }
    /// Joins a link with the devices of other ranks, as rank `_rank` of `_size`.
    fn join(
        &self,
        _id: &[u8; LinkId::BYTES],
        _rank: usize,
        _size: usize,
    ) -> Result<Arc<dyn LinkTransport>, DeviceError> {
        Err(no_links())
    }
}

fn no_links() -> DeviceError {
    DeviceError::Missing("an emulated device has no direct links".into())
}

/// A queue of copies between device memory and memory of `allocate_host`.
///
/// Both ends of a copy stay valid until it has ended. Until then nobody changes its source or uses its target.
pub(super) trait CopyStream: Send + Sync {
    /// Orders copies queued from now on after all work submitted to the main stream so far.
    fn wait_for_main_stream(&self) -> Result<(), DeviceError>;
    /// Queues a copy of `bytes > 0` to the host.
    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError>;
    /// Queues a copy of `bytes > 0` to the device.
    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Records a fence after all copies queued so far.
    fn record_fence(&self) -> Result<Box<dyn Fence>, DeviceError>;
    /// As `record_fence`; also orders work submitted to the main stream from now on after the fence.
    fn block_main_stream(&self) -> Result<Box<dyn Fence>, DeviceError>;
    /// Waits for all queued copies.
    fn wait(&self) -> Result<(), DeviceError>;
}

/// A fence in a queue of copies.
pub(super) trait Fence: Send + Sync {
    /// Returns `true` if all copies before the fence have ended.
    fn is_done(&self) -> Result<bool, DeviceError>;
    /// Waits for all copies before the fence.
    fn wait(&self) -> Result<(), DeviceError>;
}

/// A reserved address range whose memory is mapped from the front.
pub(super) trait AddressRange: Send + Sync {
    /// Returns the first address, which never changes.
    fn address(&self) -> u64;
    /// Returns the number of mapped bytes.
    fn mapped(&self) -> usize;
    /// Maps at least `bytes` from the front, within the reservation; new memory is zero.
    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError>;
    /// Frees as much memory beyond `bytes` as possible, after all work that uses it.
    fn shrink(&mut self, bytes: usize) -> Result<(), DeviceError>;
}

/// A compiled source, loaded on the device.
pub(super) trait LoadedCode: Send + Sync {
    /// Returns a kernel by name.
    fn function(self: Arc<Self>, name: &str) -> Result<Box<dyn BackendKernel>, DeviceError>;
}

/// A kernel, which keeps its compiled source alive.
pub(super) trait BackendKernel: Send + Sync {
    /// Returns the resources of the kernel.
    fn info(&self) -> KernelInfo;
    /// Returns the number of blocks that fit on a multiprocessor at once.
    fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError>;
    /// Launches `shape.blocks > 0` blocks; adds their time to `timer`, if given.
    fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timer: Option<&Arc<AtomicKernelCounters>>,
    ) -> Result<(), DeviceError>;
}

/// Identity of a link. One rank creates it, and all ranks join with the same bytes, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(pub(super) [u8; LinkId::BYTES]);

impl LinkId {
    /// Length in bytes.
    pub const BYTES: usize = 128;

    /// Returns the bytes that are sent to the other ranks.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates the identity from bytes of another rank; `None` if there are not [`LinkId::BYTES`] bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// Device memory that is sent to or received from the device of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Rank at the other end.
    pub peer: usize,
    /// Address of the first byte, in a [`Buffer`](super::Buffer).
    pub address: u64,
    /// Length in bytes; empty segments are not sent.
    pub bytes: usize,
}

/// Times of exchanges on the device, measured while it is profiled; complete up to the last synchronisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkTimes {
    /// Number of timed exchanges.
    pub timed: u64,
    /// Time from the moment this rank was ready until all segments were sent and received, seconds. It includes waiting
    /// for other ranks.
    pub seconds: f64,
    /// Part of this time in which the device was otherwise idle, seconds.
    pub exposed: f64,
}

/// Moves segments between devices.
pub trait LinkTransport: Send + Sync {
    /// Describes the transport in one line.
    fn describe(&self) -> String;
    /// Exports what other ranks need to write to this device's memory directly; empty if that is impossible.
    fn export_mailbox(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Opens the mailboxes exported by all ranks; returns, by rank, whether it succeeded.
    fn import_mailboxes(&self, offers: &[Vec<u8>]) -> Result<Vec<bool>, DeviceError> {
        Ok(vec![false; offers.len()])
    }
    /// Keeps the peers that reach this rank too, after [`LinkTransport::import_mailboxes`], and tests the transfer.
    /// Collective.
    fn keep_peers(&self, _reached: &[bool]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Starts an exchange after all work submitted to the device so far.
    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError>;
    /// Orders work submitted to the device from now on after the oldest unfinished exchange.
    fn finish(&self) -> Result<(), DeviceError>;
    /// Starts and finishes an exchange, without other work in between.
    fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.start(sends, receives)?;
        self.finish()
    }
    /// Turns timing of later exchanges on or off.
    fn profile(&self, _on: bool) {}
    /// Returns the times measured so far.
    fn times(&self) -> LinkTimes {
        LinkTimes::default()
    }
    /// Returns `true` if all exchanges have completed.
    fn is_done(&self) -> Result<bool, DeviceError>;
    /// Returns an error if the link has failed. May be called by any thread.
    fn check(&self) -> Result<(), DeviceError>;
    /// Aborts the link: pending exchanges end at once with undefined data, and later calls fail. May be called by any
    /// thread.
    fn stop(&self);
}
