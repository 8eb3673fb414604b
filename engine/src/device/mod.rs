//! Devices: where kernels run. A GPU through CUDA, or an emulated device that runs the same kernel sources on the CPU.
//!
//! A device is memory ([`Buffer`], [`Growable`]), compiled sources ([`Module`], [`Kernel`]) and one stream of work: copies,
//! fills and launches take effect in the order of their calls, and the host waits only where it reads a number. Copies of
//! snapshots and of messages go on beside the work. Sources are texts in the language of `nestar_device::LAUNCH`; a kernel
//! takes one parameter, a `#[device]` structure, in which device memory stands as addresses.
//!
//! ```no_run
//! # use nestar_engine::device::{Device, DeviceError, DeviceKind, LaunchShape};
//! # use nestar_device::{Address, device};
//! # #[device] struct Twice { x: Address<f64>, n: i64 }
//! # fn main() -> Result<(), DeviceError> {
//! # let source = String::new();
//! let device = Device::open(DeviceKind::Cuda)?;
//! let kernel = device.compile("example", &source)?.kernel("twice")?;
//! let x = device.buffer::<f64>(1000)?;
//! device.upload(&x, 0, &[1.0; 1000])?;
//! let shape = LaunchShape { blocks: 8, threads: 128, shared: 0 };
//! device.launch(&kernel, shape, &Twice { x: x.address().into(), n: 1000 })?;
//! let mut result = [0.0; 1000];
//! device.download(&x, 0, &mut result)?;
//! # Ok(()) }
//! ```

mod backend;
mod bytes;
mod cache;
mod choice;
mod counters;
mod cuda;
mod emulated;
mod error;
mod link;
mod link_transport;
mod memory;
mod module;
pub mod parallel;
mod staging;
#[cfg(test)]
mod tests;
mod transient;

pub use backend::{DeviceLimits, DeviceMemory, KernelInfo, LaunchShape};
pub use bytes::format_bytes;
pub use choice::{ComputeDevice, DeviceChoice};
pub use counters::{DeviceCounters, KernelCounters};
pub use error::{DeviceError, TransportError};
pub use link::{DeviceLink, LinkCounters};
pub(crate) use link_transport::LinkTransport;
pub use link_transport::{LinkId, LinkTimes, Segment};
pub(crate) use memory::DeviceSpan;
pub use memory::{Buffer, DeviceSlice, Growable, ReusableBuffer};
pub use module::{Kernel, Module};
pub(crate) use staging::{CopyQueue, Download, StagingBuffer, buffer_bytes};

use backend::Backend;
use bytemuck::Pod;
use counters::AtomicCounters;
use memory::{Reserved, place};
use nestar_device::Parameter;
use staging::{OrderedCopies, Ring};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transient::TransientMemory;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A GPU with CUDA.
    Cuda,
    /// Kernels compiled by the C++ compiler and run on the CPU, one thread a block, to test them without a GPU.
    Emulated,
}

/// Most bytes of a launch's parameters.
const MOST_PARAMETER_BYTES: usize = 4096;

/// Where the parameters of a launch stand.
#[repr(align(16))]
struct ParameterMemory([u8; MOST_PARAMETER_BYTES]);

/// A device; clones are the same device.
#[derive(Clone)]
pub struct Device(Arc<Opened>);

struct Opened {
    kind: DeviceKind,
    backend: Arc<dyn Backend>,
    counters: Arc<AtomicCounters>,
    ring: Arc<Ring>,
    copies: Mutex<OrderedCopies>,
    transient_memory: TransientMemory,
    reserved: Reserved,
}

impl Device {
    /// Opens the device of a kind: of several GPUs the first that `CUDA_VISIBLE_DEVICES` shows.
    ///
    /// # Errors
    /// There is no such device, what it needs is not installed or too old, or others have taken it.
    pub fn open(kind: DeviceKind) -> Result<Self, DeviceError> {
        Self::open_numbered(kind, 0)
    }

    /// Opens a device of a kind: of several GPUs that `CUDA_VISIBLE_DEVICES` shows the one with this number, from 0, counted
    /// round. An emulated device has no number.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open_numbered(kind: DeviceKind, number: usize) -> Result<Self, DeviceError> {
        let backend: Arc<dyn Backend> = match kind {
            DeviceKind::Cuda => Arc::new(cuda::Cuda::open(number)?),
            DeviceKind::Emulated => Arc::new(emulated::Emulated::open()?),
        };
        Self::with(kind, backend)
    }

    fn with(kind: DeviceKind, backend: Arc<dyn Backend>) -> Result<Self, DeviceError> {
        let counters = Arc::new(AtomicCounters::default());
        let ring = Ring::new(&backend, &counters);
        let copies = Mutex::new(OrderedCopies::new(&ring)?);
        Ok(Self(Arc::new(Opened {
            kind,
            backend,
            counters,
            ring,
            copies,
            transient_memory: TransientMemory::default(),
            reserved: Reserved::default(),
        })))
    }

    /// One line for people: name, size, driver.
    #[must_use]
    pub fn describe(&self) -> String {
        self.0.backend.describe()
    }

    /// What tells this device from all others, on any host; none where it is no thing of its own, as an emulated one.
    #[must_use]
    pub fn identity(&self) -> Option<[u8; 16]> {
        self.0.backend.identity()
    }

    /// The kind of device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// What launches may ask for.
    #[must_use]
    pub fn limits(&self) -> DeviceLimits {
        self.0.backend.limits()
    }

    /// Compiles a kernel source for this device, or takes what an earlier run compiled from the cache on disk. `name` is
    /// for messages and file names: letters, digits, `-` and `_`. Where `NESTAR_KERNEL_SOURCES` names a folder, the source is
    /// kept there.
    ///
    /// # Errors
    /// The compiler's log; what stands in the way of compiling; the source cannot be kept.
    pub fn compile(&self, name: &str, source: &str) -> Result<Module, DeviceError> {
        cache::keep_source(name, source)?;
        let code = self.0.backend.compile(name, source)?;
        Ok(Module::new(self.clone(), code))
    }

    /// Device memory of `length` zeroed elements.
    ///
    /// # Errors
    /// The device's memory does not suffice.
    pub fn buffer<T: Pod>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        Buffer::new(self, length)
    }

    /// Device memory that grows to `most` elements without moving, empty at first.
    ///
    /// # Errors
    /// So many addresses cannot be reserved.
    pub fn growable<T: Pod>(&self, most: usize) -> Result<Growable<T>, DeviceError> {
        Growable::new(self, most)
    }

    /// Copies `values` to the elements of `to` from `offset` on. On return `values` may be reused.
    ///
    /// # Errors
    /// Elements beyond the end; a failure of earlier work.
    pub fn upload<T: Pod>(
        &self,
        to: impl DeviceSlice<T>,
        offset: usize,
        values: &[T],
    ) -> Result<(), DeviceError> {
        let address = place(&to, offset, values.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if bytes.is_empty() {
            return Ok(());
        }
        self.copies().upload(address, bytes)
    }

    /// Copies the elements of `from` from `offset` on to `values`, waiting for all work before.
    ///
    /// # Errors
    /// Elements beyond the end; a failure of earlier work.
    pub fn download<T: Pod>(
        &self,
        from: impl DeviceSlice<T>,
        offset: usize,
        values: &mut [T],
    ) -> Result<(), DeviceError> {
        let address = place(&from, offset, values.len())?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        if bytes.is_empty() {
            return Ok(());
        }
        self.copies().download(address, bytes)?;
        self.synchronise()
    }

    /// Sets the bytes of the elements of `range` to zero.
    ///
    /// # Errors
    /// Elements beyond the end; a failure of earlier work.
    pub fn fill_zero<T: Pod>(
        &self,
        to: impl DeviceSlice<T>,
        range: Range<usize>,
    ) -> Result<(), DeviceError> {
        let address = place(&to, range.start, range.len())?;
        match range.len() * size_of::<T>() {
            0 => Ok(()),
            bytes => self.0.backend.zero(address, bytes),
        }
    }

    /// Copies `length` elements on the device. Within one memory, the two stretches must not overlap.
    ///
    /// # Errors
    /// Elements beyond an end; a failure of earlier work.
    pub fn copy<T: Pod>(
        &self,
        from: impl DeviceSlice<T>,
        from_offset: usize,
        to: impl DeviceSlice<T>,
        to_offset: usize,
        length: usize,
    ) -> Result<(), DeviceError> {
        let source = place(&from, from_offset, length)?;
        let target = place(&to, to_offset, length)?;
        match length * size_of::<T>() {
            0 => Ok(()),
            bytes => self.0.backend.copy(source, target, bytes),
        }
    }

    /// Launches a kernel; the call does not wait for it. What `parameters` says about addresses and counts is the
    /// caller's word: a kernel that reaches beyond device memory ends the run or spoils it.
    ///
    /// # Errors
    /// A shape beyond the device's limits; parameters of another size than the kernel's; a failure of earlier work.
    pub fn launch<P: Parameter>(
        &self,
        kernel: &Kernel,
        shape: LaunchShape,
        parameters: &P,
    ) -> Result<(), DeviceError> {
        if shape.blocks == 0 {
            return Ok(());
        }
        self.check(kernel, shape)?;
        self.0.counters.count_launch(kernel.atomic_counters());
        const { assert!(P::BYTES <= MOST_PARAMETER_BYTES, "parameters of a launch") };
        let mut memory = ParameterMemory([0; MOST_PARAMETER_BYTES]);
        let bytes = &mut memory.0[..P::BYTES];
        parameters.write(bytes);
        kernel.launch(shape, bytes, self.0.counters.profiling())
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// A failure of earlier work.
    pub fn synchronise(&self) -> Result<(), DeviceError> {
        self.0.counters.count_synchronisation();
        self.0.backend.synchronise()
    }

    /// Whether the time of each launch is taken from now on, for [`DeviceCounters`]. Launches become a little slower.
    pub fn profile(&self, on: bool) {
        self.0.counters.profile(on);
    }

    /// What the device has done. Times are complete up to the last wait.
    #[must_use]
    pub fn counters(&self) -> DeviceCounters {
        self.0.counters.read()
    }

    fn check(&self, kernel: &Kernel, shape: LaunchShape) -> Result<(), DeviceError> {
        let (limits, info) = (self.limits(), kernel.info());
        let threads = limits.threads_per_block.min(info.threads);
        if shape.threads == 0 || shape.threads > threads {
            return Err(DeviceError::Range(format!(
                "the kernel {} cannot have {} threads a block, 1 to {threads} are possible",
                kernel.name(),
                shape.threads
            )));
        }
        let shared = limits.shared_per_block.saturating_sub(info.shared);
        if shape.shared > shared {
            return Err(DeviceError::Range(format!(
                "the kernel {} asks for {} bytes of shared memory a block, {shared} are there",
                kernel.name(),
                shape.shared
            )));
        }
        if shape.blocks > i32::MAX as u32 {
            return Err(DeviceError::Range(format!(
                "{} blocks of the kernel {} are more than a launch may have",
                shape.blocks,
                kernel.name()
            )));
        }
        Ok(())
    }

    fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    fn ring(&self) -> &Arc<Ring> {
        &self.0.ring
    }

    /// Copies in the order of the work, by one thread at a time.
    fn copies(&self) -> MutexGuard<'_, OrderedCopies> {
        // every copy is complete in itself, also after a panic elsewhere
        let copies = self.0.copies.lock();
        copies.unwrap_or_else(PoisonError::into_inner)
    }

    fn atomic_counters(&self) -> &AtomicCounters {
        &self.0.counters
    }

    fn transient_memory(&self) -> &TransientMemory {
        &self.0.transient_memory
    }

    fn reserved(&self) -> &Reserved {
        &self.0.reserved
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.describe()).finish()
    }
}
