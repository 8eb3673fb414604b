//! Libraries of kernels: built by the C++ compiler and loaded, with functions that run the blocks of launches.

use crate::backend::{BackendKernel, LoadedCode};
use crate::counters::AtomicKernelCounters;
use crate::{DeviceError, KernelInfo, LaunchShape};
use rayon::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// Options of the compiler: IEEE 754 arithmetic as written, without contraction. `-O2` compiles half as fast as `-O1`, and most
/// runs on this device are tests of few steps.
const OPTIONS: [&str; 9] = [
    "-x",
    "c++",
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-w",
    "-shared",
    "-fPIC",
];
/// The C++ compiler.
pub(super) struct Compiler {
    command: String,
    /// First line of its `--version` output.
    pub(super) version: String,
}

impl Compiler {
    /// Finds the compiler: `$NESTAR_CXX`, or else the first of `c++`, `g++` and `clang++`.
    pub(super) fn find() -> Result<Self, DeviceError> {
        let set = std::env::var("NESTAR_CXX").ok().filter(|c| !c.is_empty());
        let candidates = match &set {
            Some(command) => vec![command.as_str()],
            None => vec!["c++", "g++", "clang++"],
        };
        for command in &candidates {
            let Ok(output) = Command::new(command).arg("--version").output() else {
                continue;
            };
            let text = String::from_utf8_lossy(&output.stdout);
            if let Some(line) = text.lines().next().filter(|_| output.status.success()) {
                return Ok(Self {
                    command: (*command).to_string(),
                    version: line.to_string(),
                });
            }
        }
        Err(DeviceError::Missing(format!(
            "the emulated device needs a C++ compiler, and {} cannot be run; install g++ or set NESTAR_CXX",
            candidates.join(", ")
        )))
    }

    /// Returns all options for this processor.
    pub(super) fn options() -> Vec<&'static str> {
        let mut options = OPTIONS.to_vec();
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            options.push("-march=x86-64-v3");
        }
        options
    }

    /// Compiles a source file to a library and returns its path.
    pub(super) fn run(&self, name: &str, folder: &Path) -> Result<PathBuf, DeviceError> {
        let (source, library) = (format!("{name}.cpp"), format!("{name}.so"));
        let output = Command::new(&self.command)
            .args(Self::options())
            .args(["-o", &library, &source])
            .current_dir(folder)
            .output()
            .map_err(|e| DeviceError::failed(format!("cannot run {}", self.command), e))?;
        if output.status.success() {
            return Ok(folder.join(library));
        }
        Err(DeviceError::Compile {
            name: name.to_string(),
            log: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        })
    }
}

/// A loaded library.
pub(super) struct Library(*mut c_void);

// SAFETY: handles of the dynamic linker may be used by all threads
unsafe impl Send for Library {}
// SAFETY: as above
unsafe impl Sync for Library {}

impl Library {
    pub(super) fn load(path: &Path) -> Result<Self, DeviceError> {
        let doing = || format!("cannot load {}", path.display());
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|e| DeviceError::failed(doing(), e))?;
        // SAFETY: the library consists of kernels and runs no code when it is loaded
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(DeviceError::failed(doing(), linker_message()));
        }
        Ok(Self(handle))
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: all kernels that use it were dropped
        unsafe { libc::dlclose(self.0) };
    }
}

/// Returns the last error message of the dynamic linker.
fn linker_message() -> String {
    // SAFETY: the text is valid until the next call of the linker on this thread
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason given".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// Signature of a compiled `KERNEL`: parameters, first block, end of blocks, blocks of the launch, shared memory.
type KernelEntry = unsafe extern "C" fn(*const c_void, c_int, c_int, c_int, *mut u8);

impl LoadedCode for Library {
    fn function(self: Arc<Self>, name: &str) -> Result<Box<dyn BackendKernel>, DeviceError> {
        let entry = self.symbol(name).ok_or_else(|| {
            DeviceError::Kernel(format!("there is no kernel {name} in the source"))
        })?;
        let size = self.symbol(&format!("{name}_parameter_bytes"));
        // SAFETY: `KERNEL` defines both functions with these signatures
        let (entry, parameters) = unsafe {
            let entry = std::mem::transmute::<*mut c_void, KernelEntry>(entry);
            let size =
                size.map(|s| std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(s));
            (entry, size.map(|size| size() as u32))
        };
        Ok(Box::new(EmulatedKernel {
            entry,
            parameters,
            _library: self,
        }))
    }
}

/// A kernel of a library.
struct EmulatedKernel {
    entry: KernelEntry,
    parameters: Option<u32>,
    _library: Arc<Library>,
}

/// A cache line, which aligns shared memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// Dynamic shared memory of the block that runs on this thread.
    static SHARED: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl EmulatedKernel {
    /// Runs the blocks `first..end` one after the other.
    fn run(&self, first: u32, end: u32, shape: LaunchShape, parameters: &[u8]) {
        let mut shared = SHARED.take();
        let lines = (shape.shared as usize).div_ceil(size_of::<Line>());
        if shared.len() < lines {
            shared.resize(lines, Line([0; 64]));
        }
        let parameters = parameters.as_ptr().cast();
        let memory = shared.as_mut_ptr().cast();
        // SAFETY: the parameters have the size that the kernel expects and outlive the call; the shared memory belongs
        // to this thread; the caller of `Device::launch` guarantees the addresses in the parameters
        unsafe {
            (self.entry)(
                parameters,
                first as c_int,
                end as c_int,
                shape.blocks as c_int,
                memory,
            );
        }
        SHARED.set(shared);
    }
}

impl BackendKernel for EmulatedKernel {
    fn info(&self) -> KernelInfo {
        KernelInfo {
            threads: 1024,
            parameters: self.parameters,
            ..KernelInfo::default()
        }
    }

    fn resident_blocks(&self, _threads: u32, _shared: u32) -> Result<u32, DeviceError> {
        Ok(1)
    }

    fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timer: Option<&Arc<AtomicKernelCounters>>,
    ) -> Result<(), DeviceError> {
        let start = Instant::now();
        // blocks run one after the other, so that only one can pass a barrier of the grid
        let shape = LaunchShape {
            blocks: if shape.together { 1 } else { shape.blocks },
            ..shape
        };
        // Several tasks per thread, because blocks take unequal times.
        let tasks = shape.blocks.min(8 * rayon::current_num_threads() as u32);
        let bound =
            |task: u32| (u64::from(shape.blocks) * u64::from(task) / u64::from(tasks)) as u32;
        (0..tasks)
            .into_par_iter()
            .for_each(|task| self.run(bound(task), bound(task + 1), shape, parameters));
        if let Some(counters) = timer {
            counters.add_time(start.elapsed().as_nanos() as u64);
        }
        Ok(())
    }
}
