//! Compiled sources and their kernels.

use super::backend::{BackendKernel, KernelInfo, LoadedCode};
use super::counters::AtomicKernelCounters;
use super::parallel::lock;
use super::{Device, DeviceError, LaunchShape};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Result of a compilation.
type Compiled = Result<Arc<dyn LoadedCode>, DeviceError>;

/// A source that a thread of its own compiles and loads, so that the compilations of a run overlap.
pub(super) struct Compilation {
    thread: Mutex<Option<JoinHandle<Compiled>>>,
    result: OnceLock<Compiled>,
}

impl Compilation {
    /// Starts to compile; without another thread, compiles at once.
    pub(super) fn start(compile: impl FnOnce() -> Compiled + Clone + Send + 'static) -> Arc<Self> {
        let thread = std::thread::Builder::new().name("nestar-compile".into());
        let (thread, result) = match thread.spawn(compile.clone()) {
            Ok(thread) => (Some(thread), OnceLock::new()),
            Err(_) => (None, OnceLock::from(compile())),
        };
        Arc::new(Self {
            thread: Mutex::new(thread),
            result,
        })
    }

    /// Returns `true` if the compilation has not ended.
    pub(super) fn is_running(&self) -> bool {
        let thread = lock(&self.thread);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The source does not compile or cannot be loaded.
    pub(super) fn wait(&self) -> Result<&Arc<dyn LoadedCode>, DeviceError> {
        let join = || {
            // the lock is free while this thread waits
            let thread = lock(&self.thread).take();
            match thread.map(JoinHandle::join) {
                Some(Ok(compiled)) => compiled,
                _ => Err(DeviceError::failed(
                    "compiling kernels",
                    "a thread panicked",
                )),
            }
        };
        self.result.get_or_init(join).as_ref().map_err(Clone::clone)
    }
}

/// A source that is compiled for a device, or being compiled.
#[derive(Clone)]
pub struct Module {
    device: Device,
    code: Arc<Compilation>,
}

impl Module {
    pub(super) fn new(device: Device, code: Arc<Compilation>) -> Self {
        Self { device, code }
    }

    /// Returns a kernel by name. Its first use waits for the compilation and reports later errors.
    ///
    /// # Errors
    /// The source is already known not to compile.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        if let Some(Err(error)) = self.code.result.get() {
            return Err(error.clone());
        }
        Ok(Kernel(Arc::new(KernelHandle {
            counters: self.device.atomic_counters().kernel(name),
            code: self.code.clone(),
            loaded: OnceLock::new(),
            name: name.to_string(),
        })))
    }
}

/// A kernel that can be launched. It keeps its module alive.
#[derive(Clone)]
pub struct Kernel(Arc<KernelHandle>);

struct KernelHandle {
    name: String,
    counters: Arc<AtomicKernelCounters>,
    code: Arc<Compilation>,
    loaded: OnceLock<Result<LoadedKernel, DeviceError>>,
}

/// A kernel on the device.
struct LoadedKernel {
    info: KernelInfo,
    function: Box<dyn BackendKernel>,
}

impl Kernel {
    /// Returns the name in the source.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Waits for the compilation.
    fn loaded(&self) -> Result<&LoadedKernel, DeviceError> {
        let load = || {
            let function = self.0.code.wait()?.clone().function(&self.0.name)?;
            Ok(LoadedKernel {
                info: function.info(),
                function,
            })
        };
        self.0
            .loaded
            .get_or_init(load)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Returns the resources of the kernel.
    ///
    /// # Errors
    /// The source does not compile, or has no such kernel.
    pub fn info(&self) -> Result<KernelInfo, DeviceError> {
        Ok(self.loaded()?.info)
    }

    /// Returns how many blocks of `threads` threads and `shared` bytes of dynamic shared memory fit on a
    /// multiprocessor.
    ///
    /// It is at least 1 for an emulated kernel.
    ///
    /// # Errors
    /// As [`Kernel::info`]; the driver reports an error.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError> {
        self.loaded()?.function.resident_blocks(threads, shared)
    }

    /// Adds the work of a launch to the counters: cells, and the minimum number of bytes read and written.
    pub fn count_work(&self, cells: usize, bytes: usize) {
        self.0.counters.count_work(cells as u64, bytes as u64);
    }

    pub(super) fn atomic_counters(&self) -> &Arc<AtomicKernelCounters> {
        &self.0.counters
    }

    pub(super) fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timed: bool,
    ) -> Result<(), DeviceError> {
        let loaded = self.loaded()?;
        let size = loaded.info.parameters;
        if let Some(size) = size.filter(|&size| size as usize != parameters.len()) {
            return Err(DeviceError::Kernel(format!(
                "the kernel {} takes {size} bytes of parameters, not {}",
                self.0.name,
                parameters.len()
            )));
        }
        let timer = timed.then_some(&self.0.counters);
        loaded.function.launch(shape, parameters, timer)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.0.name).finish()
    }
}
