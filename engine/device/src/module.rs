//! Compiled sources and their kernels.

use super::backend::{BackendKernel, KernelInfo, LoadedCode};
use super::counters::AtomicKernelCounters;
use super::{Device, DeviceError, LaunchShape};
use std::fmt;
use std::sync::Arc;

/// A compiled source, loaded on a device.
#[derive(Clone)]
pub struct Module {
    device: Device,
    code: Arc<dyn LoadedCode>,
}

impl Module {
    pub(super) fn new(device: Device, code: Arc<dyn LoadedCode>) -> Self {
        Self { device, code }
    }

    /// Returns a kernel by name.
    ///
    /// # Errors
    /// The source has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        let function = self.code.clone().function(name)?;
        Ok(Kernel(Arc::new(KernelHandle {
            counters: self.device.atomic_counters().kernel(name),
            info: function.info(),
            function,
            name: name.to_string(),
        })))
    }
}

/// A kernel that can be launched. It keeps its module alive.
#[derive(Clone)]
pub struct Kernel(Arc<KernelHandle>);

struct KernelHandle {
    name: String,
    info: KernelInfo,
    counters: Arc<AtomicKernelCounters>,
    function: Box<dyn BackendKernel>,
}

impl Kernel {
    /// Returns the name in the source.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the resources of the kernel.
    #[must_use]
    pub fn info(&self) -> KernelInfo {
        self.0.info
    }

    /// Returns how many blocks of `threads` threads and `shared` bytes of dynamic shared memory fit on a
    /// multiprocessor.
    ///
    /// It is at least 1 for an emulated kernel.
    ///
    /// # Errors
    /// The driver reports an error.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError> {
        self.0.function.resident_blocks(threads, shared)
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
        let size = self.0.info.parameters;
        if let Some(size) = size.filter(|&size| size as usize != parameters.len()) {
            return Err(DeviceError::Kernel(format!(
                "the kernel {} takes {size} bytes of parameters, not {}",
                self.0.name,
                parameters.len()
            )));
        }
        let timer = timed.then_some(&self.0.counters);
        self.0.function.launch(shape, parameters, timer)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.0.name).finish()
    }
}
