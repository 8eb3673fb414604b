//! What a kind of device implements: memory in bytes, copies, compilation, launches.

use super::DeviceError;
use super::counters::AtomicKernelCounters;
use super::link_transport::{LinkId, LinkTransport};
use std::sync::Arc;

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes that nobody uses.
    pub free: u64,
    /// Bytes in total.
    pub total: u64,
}

/// What launches may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Multiprocessors; CPU threads of an emulated device.
    pub multiprocessors: u32,
    /// Threads of a block.
    pub threads_per_block: u32,
    /// Threads of a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory of a block, dynamic and declared together.
    pub shared_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of shared memory that every block takes beyond its own.
    pub shared_reserved_per_block: u32,
    /// Compute capability as major and minor number; zeros for an emulated device.
    pub capability: [u32; 2],
}

/// How many blocks of which size a launch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks; 0: nothing is launched.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl LaunchShape {
    /// A launch of `blocks` blocks without dynamic shared memory.
    #[must_use]
    pub fn of(blocks: usize, threads: u32) -> Self {
        Self {
            blocks: blocks as u32,
            threads,
            shared: 0,
        }
    }
}

/// What the compiler made of a kernel. An emulated kernel knows the size of its parameters only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: what does not fit into registers.
    pub local: u32,
    /// Bytes of shared memory that the source declares.
    pub shared: u32,
    /// Most threads of a block.
    pub threads: u32,
    /// Bytes of the parameters, where known.
    pub parameters: Option<u32>,
}

/// A kind of device. Everything is ordered on one stream: copies, fills and launches take effect in the order of their
/// calls; [`Copies`] alone stand beside it.
pub(super) trait Backend: Send + Sync {
    /// One line about the device.
    fn describe(&self) -> String;
    /// What tells the device from all others, if it is a thing of its own.
    fn identity(&self) -> Option<[u8; 16]>;
    /// What launches may ask for.
    fn limits(&self) -> DeviceLimits;
    /// Memory, free and in total.
    fn memory(&self) -> Result<DeviceMemory, DeviceError>;
    /// Device memory with unspecified contents; `bytes > 0`. Aligned to 256 bytes.
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Frees what `allocate` gave, after all work that uses it.
    fn release(&self, address: u64, bytes: usize);
    /// Addresses for up to `bytes > 0`, nothing behind them yet.
    fn reserve(&self, bytes: usize) -> Result<Box<dyn AddressRange>, DeviceError>;
    /// Zeroed host memory that copies reach at bus speed; `bytes > 0`. Aligned to 64 bytes.
    fn allocate_host(&self, bytes: usize) -> Result<*mut u8, DeviceError>;
    /// Frees what `allocate_host` gave.
    fn release_host(&self, pointer: *mut u8, bytes: usize);
    /// Sets bytes to zero.
    fn zero(&self, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Copies on the device; the two do not overlap.
    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Copies to and from the host: on a further queue `beside` the stream, or on the stream itself.
    fn copies(&self, beside: bool) -> Result<Box<dyn CopyStream>, DeviceError>;
    /// Waits for all work.
    fn synchronise(&self) -> Result<(), DeviceError>;
    /// Compiles a source, or takes the result of an earlier compilation.
    fn compile(&self, name: &str, source: &str) -> Result<Arc<dyn LoadedCode>, DeviceError>;

    /// What direct links are made by, with its version.
    fn link_library(&self) -> Result<String, DeviceError> {
        Err(no_links())
    }
    /// An identity for a new link.
    fn link_id(&self) -> Result<[u8; LinkId::BYTES], DeviceError> {
        Err(no_links())
    }
    /// Joins the devices of other ranks, as rank `_rank` of `_size`.
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
    DeviceError::Missing("an emulated device has no link of its own to others".into())
}

/// A queue of copies between device memory and memory of `allocate_host`. Both ends of a copy live until it has ended; until
/// then nobody changes its source or uses its target.
pub(super) trait CopyStream: Send + Sync {
    /// What is queued here from now on comes after all work on the stream so far.
    fn follow(&self) -> Result<(), DeviceError>;
    /// Queues a copy of `bytes > 0` to the host.
    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError>;
    /// Queues a copy of `bytes > 0` to the device.
    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError>;
    /// A mark behind all that was queued here.
    fn mark(&self) -> Result<Box<dyn Fence>, DeviceError>;
    /// As `mark`; what is put on the stream from now on comes after it.
    fn precede(&self) -> Result<Box<dyn Fence>, DeviceError>;
    /// Waits for all that was queued here.
    fn wait(&self) -> Result<(), DeviceError>;
}

/// A mark in such a queue.
pub(super) trait Fence: Send + Sync {
    /// Whether all before it has ended.
    fn is_done(&self) -> Result<bool, DeviceError>;
    /// Waits for the end of all before it.
    fn wait(&self) -> Result<(), DeviceError>;
}

/// Reserved addresses that memory is mapped to from the front.
pub(super) trait AddressRange: Send + Sync {
    /// The first address; it never changes.
    fn address(&self) -> u64;
    /// Bytes mapped.
    fn mapped(&self) -> usize;
    /// Maps at least `bytes` from the front; what is new is zero. Never beyond the reservation.
    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError>;
    /// Frees memory behind `bytes`, as much as can be, after all work that uses it.
    fn shrink(&mut self, bytes: usize) -> Result<(), DeviceError>;
}

/// A compiled source, loaded.
pub(super) trait LoadedCode: Send + Sync {
    /// A kernel by name.
    fn function(self: Arc<Self>, name: &str) -> Result<Box<dyn BackendKernel>, DeviceError>;
}

/// A kernel of a loaded source, which it keeps alive.
pub(super) trait BackendKernel: Send + Sync {
    /// What the compiler made of it.
    fn info(&self) -> KernelInfo;
    /// Blocks that a multiprocessor holds at once.
    fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError>;
    /// Launches `shape.blocks > 0` blocks; with `timer`, adds the time that they take to it.
    fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timer: Option<&Arc<AtomicKernelCounters>>,
    ) -> Result<(), DeviceError>;
}
