//! Wraps the CUDA driver; the only file that uses `cudarc`.
//!
//! Handles become types that may cross threads. Return codes become errors that name the failed action.

use crate::DeviceError;
pub(super) use cudarc::driver::sys;
pub(super) use cudarc::nvrtc::sys as nvrtc;
use std::ffi::CStr;
pub(super) use sys::CUdevice_attribute_enum as Attribute;
pub(super) use sys::CUresult as Code;

macro_rules! handle {
    ($(#[$text:meta])* $name:ident, $raw:ty) => {
        $(#[$text])*
        #[derive(Clone, Copy)]
        pub(super) struct $name(pub(super) $raw);
        // SAFETY: the driver's handles may be used from all threads
        unsafe impl Send for $name {}
        // SAFETY: as above
        unsafe impl Sync for $name {}
    };
}
handle!(
    /// A queue of work.
    Stream,
    sys::CUstream
);
handle!(
    /// An event in a queue of work.
    Event,
    sys::CUevent
);
handle!(
    /// A loaded module of kernels.
    ModuleHandle,
    sys::CUmodule
);
handle!(
    /// A loaded kernel.
    FunctionHandle,
    sys::CUfunction
);

/// Calls a function of the driver.
macro_rules! driver {
    ($doing:expr, $call:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: pointers refer to live memory of the expected sizes; handles and addresses come from the driver; the
        // caller of a launch guarantees the addresses inside kernel parameters
        $crate::cuda::driver::answer($doing, unsafe { $crate::cuda::driver::sys::$call($($argument),*) })
    };
}
pub(super) use driver;

/// Converts a return code to a result.
pub(super) fn answer(doing: &str, code: Code) -> Result<(), DeviceError> {
    match code {
        Code::CUDA_SUCCESS => Ok(()),
        code => Err(DeviceError::failed(doing, words(code))),
    }
}

/// Returns the text of a return code.
fn words(code: Code) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the driver stores a pointer to a static text or null
    let known = unsafe { sys::cuGetErrorString(code, &mut text) } == Code::CUDA_SUCCESS;
    if !known || text.is_null() {
        return format!("{code:?}");
    }
    // SAFETY: a static text of the driver
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    format!("{text} ({code:?})")
}

/// Returns `true` if the library of the driver is installed.
pub(super) fn present() -> bool {
    // SAFETY: loading the library runs no code of this program
    unsafe { sys::is_culib_present() }
}

/// The GPU of this process and its context.
#[derive(Clone, Copy)]
pub(super) struct Gpu {
    pub(super) device: sys::CUdevice,
    pub(super) context: sys::CUcontext,
    /// CUDA version that the driver supports: 1000 * major + 10 * minor.
    pub(super) version: u32,
}

// SAFETY: the driver's handles may be used from all threads
unsafe impl Send for Gpu {}
// SAFETY: as above
unsafe impl Sync for Gpu {}

/// Starts the driver and opens the GPU `number`, modulo the number of visible GPUs.
pub(super) fn start(number: usize) -> Result<Gpu, DeviceError> {
    let doing = "cannot start the CUDA driver";
    let mut count = 0;
    // SAFETY: no conditions
    let started = unsafe { sys::cuInit(0) };
    if started != Code::CUDA_ERROR_NO_DEVICE {
        answer(doing, started)?;
        driver!(doing, cuDeviceGetCount(&mut count))?;
    }
    if count == 0 {
        return Err(DeviceError::Missing(
            "the CUDA driver is installed but shows no GPU (CUDA_VISIBLE_DEVICES may hide them)"
                .into(),
        ));
    }
    let chosen = (number % count as usize) as i32;
    let (mut device, mut version) = (0, 0);
    driver!(doing, cuDeviceGet(&mut device, chosen))?;
    driver!(doing, cuDriverGetVersion(&mut version))?;
    open(device, version as u32)
}

/// Opens the primary context of a GPU.
fn open(device: sys::CUdevice, version: u32) -> Result<Gpu, DeviceError> {
    let mut context = std::ptr::null_mut();
    // SAFETY: the device comes from the driver; the context is stored in a live variable
    let code = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) };
    let gpu = Gpu {
        device,
        context,
        version,
    };
    let busy = |why: &str| {
        Err(DeviceError::Busy(format!(
            "the GPU {} is busy: {why}",
            gpu.name()
        )))
    };
    match code {
        Code::CUDA_ERROR_DEVICE_UNAVAILABLE => {
            busy("it serves one process at a time, and another process uses it (see nvidia-smi)")
        }
        Code::CUDA_ERROR_OUT_OF_MEMORY => {
            busy("other processes use all of its memory (see nvidia-smi)")
        }
        code => answer("cannot open the GPU", code).map(|()| gpu),
    }
}

impl Gpu {
    /// Makes the context current on this thread.
    pub(super) fn bind(&self) -> Result<(), DeviceError> {
        driver!("cannot use the GPU", cuCtxSetCurrent(self.context))
    }

    /// Releases the context.
    pub(super) fn close(&self) {
        // Errors cannot be reported here.
        let _ = driver!("", cuDevicePrimaryCtxRelease_v2(self.device));
    }

    /// Returns the product name.
    pub(super) fn name(&self) -> String {
        let mut name = [0; 256];
        let known = driver!("", cuDeviceGetName(name.as_mut_ptr(), 255, self.device)).is_ok();
        // SAFETY: the driver terminates the name with 0, and the last byte is 0 in any case
        let text = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
        if known {
            text.into_owned()
        } else {
            "GPU".into()
        }
    }

    /// Returns the UUID of the GPU.
    pub(super) fn identity(&self) -> Option<[u8; 16]> {
        let mut identity = sys::CUuuid { bytes: [0; 16] };
        driver!("", cuDeviceGetUuid_v2(&mut identity, self.device)).ok()?;
        Some(identity.bytes.map(|byte| byte as u8))
    }

    /// Returns an attribute of the GPU.
    pub(super) fn attribute(&self, attribute: Attribute) -> Result<u32, DeviceError> {
        let mut value = 0;
        let doing = "cannot read an attribute of the GPU";
        driver!(
            doing,
            cuDeviceGetAttribute(&mut value, attribute, self.device)
        )?;
        Ok(value as u32)
    }

    /// Returns free and total memory in bytes.
    pub(super) fn memory(&self) -> Result<(u64, u64), DeviceError> {
        let (mut free, mut total) = (0, 0);
        driver!(
            "cannot read the GPU's memory",
            cuMemGetInfo_v2(&mut free, &mut total)
        )?;
        Ok((free as u64, total as u64))
    }
}
