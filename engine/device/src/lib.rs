//! Devices that run kernels: a GPU with CUDA, or an emulated device on the CPU.
//!
//! A device has memory ([`Buffer`], [`Growable`]), compiled sources ([`Module`], [`Kernel`]) and one stream of work.
//! Copies, fills and launches take effect in the order of their calls, and the host waits only where it reads a number.
//! Copies for snapshots and messages run concurrently. Sources are texts in the language of `nestar_device::LAUNCH`. A
//! kernel takes one parameter, a `#[device]` structure, which holds device memory as addresses.
//!
//! ```no_run
//! # use nestar_engine_device::{Device, DeviceError, DeviceKind, LaunchShape};
//! # use nestar_device::{Address, device};
//! # #[device] struct Twice { x: Address<f64>, n: i64 }
//! # fn main() -> Result<(), DeviceError> {
//! # let source = String::new();
//! let device = Device::open(DeviceKind::Cuda)?;
//! let kernel = device.compile("example", &source)?.kernel("twice")?;
//! let x = device.buffer::<f64>(1000)?;
//! device.upload(&x, 0, &[1.0; 1000])?;
//! let shape = LaunchShape::of(8, 128);
//! device.launch(&kernel, shape, &Twice { x: x.address().into(), n: 1000 })?;
//! let mut result = [0.0; 1000];
//! device.download(&x, 0, &mut result)?;
//! # Ok(()) }
//! ```

mod backend;
mod counters;
mod cuda;
mod emulated;
mod error;
mod link;
mod memory;
mod module;
pub mod parallel;
mod staging;

pub use backend::{
    DeviceLimits, DeviceMemory, KernelInfo, LaunchShape, LinkId, LinkTimes, LinkTransport, Segment,
};
pub use counters::{DeviceCounters, KernelCounters};
pub use error::{DeviceError, TransportError, format_bytes};
pub use link::{DeviceLink, LinkCounters};
pub use memory::{Buffer, DeviceSlice, DeviceSpan, Growable, ReusableBuffer};
pub use module::{Kernel, Module, cache_folder};
pub use staging::{CopyQueue, Download, StagingBuffer, buffer_bytes};

use backend::Backend;
use bevy_ecs::prelude::Resource;
use bytemuck::Pod;
use counters::AtomicCounters;
use memory::{Reserved, TransientMemory, place};
use module::Compilation;
use nestar_device::Parameter;
use parallel::lock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use staging::{OrderedCopies, Ring};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A GPU with CUDA.
    Cuda,
    /// Kernels compiled by the C++ compiler and run on the CPU, one thread per block; for tests without a GPU.
    Emulated,
}

/// Largest size of the parameters of a launch, bytes.
const MAX_PARAMETER_BYTES: usize = 4096;

/// Memory for the parameters of a launch.
#[repr(align(16))]
struct ParameterMemory([u8; MAX_PARAMETER_BYTES]);

/// A device. Clones refer to the same device.
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
    /// Compilations since the last wait for all of them.
    compilations: Mutex<Vec<Arc<Compilation>>>,
    /// Sources in use, by their BLAKE3 digests.
    sources: Mutex<BTreeMap<[u8; 32], Weak<Compilation>>>,
}

impl Device {
    /// Opens a device of the given kind: the first GPU that `CUDA_VISIBLE_DEVICES` shows.
    ///
    /// # Errors
    /// There is no such device, required software is missing or too old, or other processes occupy the device.
    pub fn open(kind: DeviceKind) -> Result<Self, DeviceError> {
        Self::open_numbered(kind, 0)
    }

    /// Opens a device by number, counted from 0 and modulo the number of GPUs that `CUDA_VISIBLE_DEVICES` shows.
    ///
    /// The number is ignored for an emulated device.
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
            compilations: Mutex::default(),
            sources: Mutex::default(),
        })))
    }

    /// Returns one line with name, size and driver of the device.
    #[must_use]
    pub fn describe(&self) -> String {
        self.0.backend.describe()
    }

    /// Returns a globally unique identity of the device, or `None` for an emulated device.
    #[must_use]
    pub fn identity(&self) -> Option<[u8; 16]> {
        self.0.backend.identity()
    }

    /// Returns the kind of device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// Returns the limits of kernel launches.
    #[must_use]
    pub fn limits(&self) -> DeviceLimits {
        self.0.backend.limits()
    }

    /// Starts to compile a kernel source, or to load the result of an earlier run from the cache on disk. A source in use is
    /// shared.
    ///
    /// `name` is used in messages and file names: letters, digits, `-` and `_`. If `NESTAR_KERNEL_SOURCES` names a
    /// folder, the source is written to it.
    ///
    /// A source that does not compile is reported by the first use of its kernels, or by
    /// [`Device::finish_compilations`].
    ///
    /// # Errors
    /// The source cannot be written to that folder.
    pub fn compile(&self, name: &str, source: &str) -> Result<Module, DeviceError> {
        module::keep_source(name, source)?;
        let digest = *blake3::hash(source.as_bytes()).as_bytes();
        let mut sources = lock(&self.0.sources);
        let code = match sources.get(&digest).and_then(Weak::upgrade) {
            Some(shared) => shared,
            None => self.start_compilation(name.to_string(), source.to_string()),
        };
        sources.insert(digest, Arc::downgrade(&code));
        Ok(Module::new(self.clone(), code))
    }

    fn start_compilation(&self, name: String, source: String) -> Arc<Compilation> {
        self.0.counters.count_compilation();
        let backend = self.0.backend.clone();
        let code = Compilation::start(move || backend.compile(&name, &source));
        let mut compilations = lock(&self.0.compilations);
        compilations.retain(|compilation| compilation.is_running());
        compilations.push(code.clone());
        code
    }

    /// Returns the number of compilations that have not ended.
    #[must_use]
    pub fn running_compilations(&self) -> usize {
        let compilations = lock(&self.0.compilations);
        compilations
            .iter()
            .filter(|compilation| compilation.is_running())
            .count()
    }

    /// Waits for all compilations.
    ///
    /// # Errors
    /// A source does not compile (with the compiler's log), or the compiler cannot be used.
    pub fn finish_compilations(&self) -> Result<(), DeviceError> {
        let compilations = std::mem::take(&mut *lock(&self.0.compilations));
        compilations
            .iter()
            .try_for_each(|compilation| compilation.wait().map(|_| ()))
    }

    /// Allocates device memory for `length` elements, set to zero.
    ///
    /// # Errors
    /// The memory of the device does not suffice.
    pub fn buffer<T: Pod>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        Buffer::new(self, length)
    }

    /// Reserves device memory that can grow to `most` elements without moving. It is empty at first.
    ///
    /// # Errors
    /// The address range cannot be reserved.
    pub fn growable<T: Pod>(&self, most: usize) -> Result<Growable<T>, DeviceError> {
        Growable::new(self, most)
    }

    /// Copies `values` to the elements of `to` starting at `offset`. On return `values` may be reused.
    ///
    /// # Errors
    /// The range is out of bounds; earlier work failed.
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

    /// Copies elements of `from` starting at `offset` to `values`, after waiting for all earlier work.
    ///
    /// # Errors
    /// The range is out of bounds; earlier work failed.
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

    /// Sets the bytes of the elements in `range` to zero.
    ///
    /// # Errors
    /// The range is out of bounds; earlier work failed.
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

    /// Copies `length` elements on the device. The two ranges must not overlap.
    ///
    /// # Errors
    /// A range is out of bounds; earlier work failed.
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

    /// Launches a kernel without waiting for it.
    ///
    /// The caller guarantees that addresses and counts in `parameters` are valid: a kernel that accesses other memory
    /// ends the run or corrupts it.
    ///
    /// # Errors
    /// The shape exceeds the limits of the device; the size of the parameters differs from that of the kernel; earlier
    /// work failed.
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
        const { assert!(P::BYTES <= MAX_PARAMETER_BYTES, "parameters of a launch") };
        let mut memory = ParameterMemory([0; MAX_PARAMETER_BYTES]);
        let bytes = &mut memory.0[..P::BYTES];
        parameters.write(bytes);
        kernel.launch(shape, bytes, self.0.counters.profiling())
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// Earlier work failed.
    pub fn synchronise(&self) -> Result<(), DeviceError> {
        self.0.counters.count_synchronisation();
        self.0.backend.synchronise()
    }

    /// Turns timing of launches for [`DeviceCounters`] on or off. Timed launches are slightly slower.
    pub fn profile(&self, on: bool) {
        self.0.counters.profile(on);
    }

    /// Creates a timeline of the device for a number of owners; `None` for an emulated device, which works while the host
    /// waits. A device has one timeline at a time.
    #[must_use]
    pub fn timeline(&self, owners: usize) -> Option<Timeline> {
        (self.kind() == DeviceKind::Cuda).then(|| Timeline::new(&self.0.backend, owners))
    }

    /// Returns the counters of the device. Times are complete up to the last synchronisation.
    #[must_use]
    pub fn counters(&self) -> DeviceCounters {
        self.0.counters.read()
    }

    fn check(&self, kernel: &Kernel, shape: LaunchShape) -> Result<(), DeviceError> {
        let (limits, info) = (self.limits(), kernel.info()?);
        let threads = limits.threads_per_block.min(info.threads);
        if shape.threads == 0 || shape.threads > threads {
            return Err(DeviceError::Range(format!(
                "the kernel {} cannot run with {} threads per block; 1 to {threads} are possible",
                kernel.name(),
                shape.threads
            )));
        }
        let shared = limits.shared_per_block.saturating_sub(info.shared);
        if shape.shared > shared {
            return Err(DeviceError::Range(format!(
                "the kernel {} needs {} bytes of shared memory per block; {shared} are available",
                kernel.name(),
                shape.shared
            )));
        }
        if shape.blocks > i32::MAX as u32 {
            return Err(DeviceError::Range(format!(
                "{} blocks of the kernel {} exceed the limit of a launch",
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

    /// Returns the queue of copies that are ordered with other work, for one thread at a time.
    fn copies(&self) -> MutexGuard<'_, OrderedCopies> {
        // Each copy is complete in itself, even if another thread has panicked.
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

/// Device that the run computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// A GPU if there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU with CUDA; the run does not start without one.
    Cuda,
    /// Kernels of the GPU, compiled by the C++ compiler and run on the CPU. For tests without a GPU; slower than `cpu`.
    Emulated,
}

/// Is `true` if `auto` uses a GPU where there is one.
const AUTO_TAKES_A_GPU: bool = true;

/// Device of a run.
#[derive(Resource, Clone, Debug, Default)]
pub struct ComputeDevice {
    /// The device, or `None` for the CPU.
    pub device: Option<Device>,
    /// Reason why `auto` uses the CPU.
    pub note: Option<String>,
}

impl ComputeDevice {
    /// Opens the device that a deck asks for, by its number among several ones. `auto` falls back to the CPU.
    ///
    /// # Errors
    /// A device that the deck names cannot be opened.
    pub fn choose(choice: DeviceChoice, number: usize) -> Result<Self, DeviceError> {
        let open = |kind, name| Self::open(kind, number, name);
        match choice {
            DeviceChoice::Auto if AUTO_TAKES_A_GPU => Ok(Self::gpu_or_cpu(number)),
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self::default()),
            DeviceChoice::Cuda => open(DeviceKind::Cuda, "cuda"),
            DeviceChoice::Emulated => open(DeviceKind::Emulated, "emulated"),
        }
    }

    /// Opens a GPU, or falls back to the CPU.
    fn gpu_or_cpu(number: usize) -> Self {
        match Device::open_numbered(DeviceKind::Cuda, number) {
            Ok(device) => Self::on(device),
            Err(why) => Self {
                device: None,
                note: Some(why.to_string()),
            },
        }
    }

    fn on(device: Device) -> Self {
        Self {
            device: Some(device),
            note: None,
        }
    }

    fn open(kind: DeviceKind, number: usize, name: &str) -> Result<Self, DeviceError> {
        let device = Device::open_numbered(kind, number);
        device
            .map(Self::on)
            .map_err(|why| DeviceError::Setup(format!("run.device = \"{name}\": {why}")))
    }
}

/// Divides the time of a device's stream into intervals of numbered owners. An interval includes the time in which the
/// device waits for the host.
pub struct Timeline {
    backend: Arc<dyn Backend>,
    /// Nanoseconds per owner.
    owners: Vec<Arc<AtomicU64>>,
}

impl Timeline {
    fn new(backend: &Arc<dyn Backend>, owners: usize) -> Self {
        Self {
            backend: backend.clone(),
            owners: (0..owners).map(|_| Arc::default()).collect(),
        }
    }

    /// Begins an interval of `owner` after all work so far, and ends the previous interval.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn begin(&self, owner: usize) -> Result<(), DeviceError> {
        self.backend.begin_interval(&self.owners[owner])
    }

    /// Ends the interval of `owner` at the end of all work so far, waits for that work, and continues with a new interval
    /// of `owner`.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn synchronise(&self, owner: usize) -> Result<(), DeviceError> {
        self.begin(owner)?;
        self.backend.synchronise()
    }

    /// Sets all times to zero; intervals that have not been [synchronised](Timeline::synchronise) are counted from their beginning.
    pub fn reset(&self) {
        self.owners.iter().for_each(|sum| sum.store(0, Relaxed));
    }

    /// Returns the seconds of all intervals of `owner` that ended before the last synchronisation.
    ///
    /// # Panics
    /// If there is no such owner.
    #[must_use]
    pub fn seconds(&self, owner: usize) -> f64 {
        self.owners[owner].load(Relaxed) as f64 * 1e-9
    }
}

#[cfg(test)]
mod tests;
