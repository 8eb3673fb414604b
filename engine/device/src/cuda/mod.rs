//! The GPU backend, through the CUDA driver and NVRTC.
//!
//! Both libraries are loaded at run time, so the program starts without them.

mod driver;
mod image;
mod link;
mod mailbox;
mod nccl;
mod slabs;
mod stream;

use super::backend::{AddressRange, Backend, CopyStream, LoadedCode};
use super::counters::AtomicKernelCounters;
use super::module::Cache;
use super::parallel::lock;
use super::{DeviceError, DeviceLimits, DeviceMemory, LinkId, LinkTransport};
use crate::format_bytes;
use driver::{Attribute, Event, Gpu, Stream};
use image::CudaModule;
use link::NcclLink;
use mailbox::PeerMailbox;
use nestar_device::{LAUNCH, program};
use nestar_kernels::mailbox as mailbox_text;
use slabs::SlabRange;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use stream::EventKind;

/// Largest number of timed launches whose times are not read yet.
const MAX_PENDING_TIMINGS: usize = 4096;

/// The GPU backend.
pub(super) struct Cuda {
    context: Arc<Context>,
    limits: DeviceLimits,
    name: String,
    memory: u64,
    /// Version of NVRTC: 1000 * major + 10 * minor.
    compiler: u32,
    cache: Cache,
}

/// Context that all objects on the GPU share and keep alive.
struct Context {
    gpu: Gpu,
    stream: Stream,
    times: Mutex<PendingTimings>,
}

/// Timed launches and intervals in flight, and unused events.
#[derive(Default)]
struct PendingTimings {
    waiting: Vec<PendingTiming>,
    /// Beginning of the present interval, and the sum that it adds to.
    interval: Option<(Event, Arc<AtomicU64>)>,
    spare: Vec<Event>,
}

/// Time between two events, and what it is added to.
struct PendingTiming {
    start: Event,
    end: Event,
    to: TimingSum,
}

/// Where a time is added to.
enum TimingSum {
    /// A launch, with two events of its own.
    Launch(Arc<AtomicKernelCounters>),
    /// An interval, whose end is the start of the next one.
    Interval(Arc<AtomicU64>),
}

impl Cuda {
    /// Opens GPU `number`, modulo the number of visible GPUs.
    pub(super) fn open(number: usize) -> Result<Self, DeviceError> {
        let missing = |what: &str| Err(DeviceError::Missing(what.into()));
        if !driver::present() {
            return missing("CUDA is not available: its driver (libcuda) is not installed");
        }
        image::find_compiler();
        match image::compiler_present() {
            false => missing(
                "the compiler library of CUDA (libnvrtc) was not found: install it and set CUDA_HOME or LD_LIBRARY_PATH",
            ),
            // The bindings panic if a function is missing.
            true => catch_unwind(AssertUnwindSafe(|| Self::start(number))).unwrap_or_else(|_| {
                missing("the CUDA driver is too old: it lacks a function of CUDA 12")
            }),
        }
    }

    fn start(number: usize) -> Result<Self, DeviceError> {
        let (gpu, compiler) = (driver::start(number)?, image::version()?);
        let context = Context::open(gpu)?;
        if compiler / 1000 > gpu.version / 1000 {
            return Err(DeviceError::Missing(format!(
                "the driver supports CUDA {}, but the compiler library (libnvrtc) is of CUDA {}: update the driver or install an older libnvrtc",
                version(gpu.version),
                version(compiler)
            )));
        }
        if gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)? == 0
        {
            return Err(DeviceError::Missing(format!(
                "the GPU {} cannot map memory to reserved addresses",
                gpu.name()
            )));
        }
        Ok(Self {
            limits: limits(&gpu)?,
            name: gpu.name(),
            memory: gpu.memory()?.1,
            context: Arc::new(context),
            compiler,
            cache: Cache::open(),
        })
    }

    fn bind(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()
    }

    /// Compiles and loads a source, or loads it from the cache.
    fn load_module(&self, name: &str, source: &str) -> Result<Arc<CudaModule>, DeviceError> {
        let [major, minor] = self.limits.capability;
        let architecture = format!("sm_{major}{minor}");
        let options = image::options(self.compiler);
        let made_by = format!("NVRTC {} {}", version(self.compiler), options.join(" "));
        let file = Cache::file(name, &[source, &architecture, &made_by], "cubin");
        let known = self.cache.load(&file);
        if let Some(Ok(loaded)) = known.map(|binary| CudaModule::load(&self.context, &binary)) {
            return Ok(Arc::new(loaded));
        }
        let binary = image::compile(name, source, &architecture, &options).map_err(|error| {
            let stored = self
                .cache
                .write(&format!("{name}-failed.cu"), source.as_bytes());
            error.with_source(stored.as_deref())
        })?;
        self.cache.store(&file, &binary);
        Ok(Arc::new(CudaModule::load(&self.context, &binary)?))
    }

    /// Creates a mailbox for `others` ranks, unless the environment disables it.
    fn mailbox(&self, others: usize) -> Result<Option<PeerMailbox>, DeviceError> {
        if !PeerMailbox::is_wanted() {
            return Ok(None);
        }
        let source = [
            &program(&mailbox_text::items()),
            LAUNCH,
            mailbox_text::MAILBOX,
        ]
        .concat();
        let kernel = self
            .load_module("mailbox", &source)?
            .kernel("mailbox_exchange")?;
        PeerMailbox::new(&self.context, kernel, others).map(Some)
    }
}

fn limits(gpu: &Gpu) -> Result<DeviceLimits, DeviceError> {
    use Attribute as A;
    Ok(DeviceLimits {
        multiprocessors: gpu.attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads_per_block: gpu.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        threads_per_multiprocessor: gpu
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        registers_per_multiprocessor: gpu
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared_per_block: gpu
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: gpu
            .attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        shared_reserved_per_block: gpu
            .attribute(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        capability: [
            gpu.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            gpu.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ],
    })
}

/// Formats a version number: `13.0` for 13000.
fn version(number: u32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}
impl Context {
    fn open(gpu: Gpu) -> Result<Self, DeviceError> {
        gpu.bind()?;
        Ok(Self {
            gpu,
            stream: stream::open()?,
            times: Mutex::default(),
        })
    }

    /// Waits for all work and reads the times of launches.
    fn wait(&self) -> Result<(), DeviceError> {
        stream::wait(self.stream)?;
        let mut times = lock(&self.times);
        for PendingTiming { start, end, to } in std::mem::take(&mut times.waiting) {
            let nanoseconds = stream::between(start, end)?;
            times.spare.push(start);
            match to {
                TimingSum::Launch(counters) => {
                    counters.add_time(nanoseconds);
                    times.spare.push(end);
                }
                TimingSum::Interval(sum) => {
                    sum.fetch_add(nanoseconds, Relaxed);
                }
            }
        }
        Ok(())
    }

    fn zero(&self, to: u64, bytes: usize) -> Result<(), DeviceError> {
        stream::zero(self.stream, to, bytes)
    }

    /// Records an event after all work so far.
    fn record_time(&self) -> Result<Event, DeviceError> {
        self.record_time_on(self.stream)
    }

    /// Records a timing event on a stream after all work so far.
    fn record_time_on(&self, stream: Stream) -> Result<Event, DeviceError> {
        let spare = lock(&self.times).spare.pop();
        let event = spare.map_or_else(|| stream::event(EventKind::Time), Ok)?;
        stream::record(event, stream)?;
        Ok(event)
    }

    /// Adds the time between two events to counters as soon as it is known.
    fn time(
        &self,
        start: Event,
        end: Event,
        counters: Arc<AtomicKernelCounters>,
    ) -> Result<(), DeviceError> {
        let to = TimingSum::Launch(counters);
        self.add_pending(PendingTiming { start, end, to })
    }

    /// Reads a time once it is known; waits for it if too many are pending.
    fn add_pending(&self, timing: PendingTiming) -> Result<(), DeviceError> {
        let mut times = lock(&self.times);
        times.waiting.push(timing);
        let full = times.waiting.len() >= MAX_PENDING_TIMINGS;
        drop(times);
        if full { self.wait() } else { Ok(()) }
    }

    /// Ends the present interval after all work so far, and begins one whose time is added to `sum`.
    fn begin_interval(&self, sum: &Arc<AtomicU64>) -> Result<(), DeviceError> {
        let end = self.record_time()?;
        let previous = lock(&self.times).interval.replace((end, sum.clone()));
        let Some((start, sum)) = previous else {
            return Ok(());
        };
        let to = TimingSum::Interval(sum);
        self.add_pending(PendingTiming { start, end, to })
    }

    /// Creates the error for insufficient memory.
    fn out_of_memory(&self, asked: usize) -> DeviceError {
        let (free, total) = self.gpu.memory().unwrap_or_default();
        DeviceError::Memory {
            asked: asked as u64,
            free,
            total,
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.gpu.bind();
        let _ = stream::wait(self.stream);
        let times = std::mem::take(&mut *lock(&self.times));
        let waiting = times.waiting.iter().flat_map(|timing| {
            let own_end = matches!(timing.to, TimingSum::Launch(_)).then_some(timing.end);
            [Some(timing.start), own_end]
        });
        let interval = times.interval.iter().map(|(start, _)| *start);
        waiting
            .flatten()
            .chain(interval)
            .chain(times.spare.iter().copied())
            .for_each(stream::drop_event);
        stream::close(self.stream);
        self.gpu.close();
    }
}

impl Backend for Cuda {
    fn describe(&self) -> String {
        format!(
            "{} ({} multiprocessors, {}, driver {}){}",
            self.name,
            self.limits.multiprocessors,
            format_bytes(self.memory),
            version(self.context.gpu.version),
            self.cache.described()
        )
    }

    fn identity(&self) -> Option<[u8; 16]> {
        self.context.gpu.identity()
    }

    fn limits(&self) -> DeviceLimits {
        self.limits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.bind()?;
        let (free, total) = self.context.gpu.memory()?;
        Ok(DeviceMemory { free, total })
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.bind()?;
        let address = slabs::allocate(bytes)?;
        address.ok_or_else(|| self.context.out_of_memory(bytes))
    }

    fn release(&self, address: u64, _bytes: usize) {
        // Errors cannot be reported here.
        let _ = self.bind();
        // The launching thread reads the times of launches.
        let _ = stream::wait(self.context.stream);
        slabs::free(address);
    }

    fn reserve(&self, bytes: usize) -> Result<Box<dyn AddressRange>, DeviceError> {
        Ok(Box::new(SlabRange::reserve(&self.context, bytes)?))
    }

    fn allocate_host(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        self.bind()?;
        slabs::allocate_host(bytes)
    }

    fn release_host(&self, pointer: *mut u8, _bytes: usize) {
        // Errors cannot be reported here.
        let _ = self.bind();
        slabs::free_host(pointer);
    }

    fn zero(&self, to: u64, bytes: usize) -> Result<(), DeviceError> {
        self.bind()?;
        self.context.zero(to, bytes)
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        self.bind()?;
        stream::copy_within(self.context.stream, from, to, bytes)
    }

    fn copies(&self, beside: bool) -> Result<Box<dyn CopyStream>, DeviceError> {
        Ok(Box::new(stream::CudaCopyStream::open(
            &self.context,
            beside,
        )?))
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        self.bind()?;
        self.context.wait()
    }

    fn begin_interval(&self, sum: &Arc<AtomicU64>) -> Result<(), DeviceError> {
        self.bind()?;
        self.context.begin_interval(sum)
    }

    fn compile(&self, name: &str, source: &str) -> Result<Arc<dyn LoadedCode>, DeviceError> {
        Ok(self.load_module(name, source)?)
    }

    fn link_library(&self) -> Result<String, DeviceError> {
        nccl::library().map(nccl::Nccl::name)
    }

    fn link_id(&self) -> Result<[u8; LinkId::BYTES], DeviceError> {
        self.bind()?;
        nccl::library()?.id()
    }

    fn join(
        &self,
        id: &[u8; LinkId::BYTES],
        rank: usize,
        size: usize,
    ) -> Result<Arc<dyn LinkTransport>, DeviceError> {
        // A GPU without mailbox (older than Volta, or without free memory) uses NCCL alone.
        let mailbox = self.mailbox(size.saturating_sub(1)).unwrap_or_default();
        Ok(Arc::new(NcclLink::join(
            &self.context,
            mailbox,
            id,
            rank,
            size,
        )?))
    }
}
