//! Compiles sources with NVRTC, loads modules and launches kernels.

use super::Context;
use super::driver::{FunctionHandle, ModuleHandle, Stream, driver, nvrtc, sys};
use crate::backend::{BackendKernel, LoadedCode};
use crate::counters::AtomicKernelCounters;
use crate::{DeviceError, KernelInfo, LaunchShape};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Options of NVRTC: IEEE 754 arithmetic as written, without contraction.
const OPTIONS: [&str; 5] = [
    "--std=c++17",
    "--fmad=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ftz=false",
];
/// Option that makes threads of all cores optimise the kernels of a source.
const SPLIT: &str = "--split-compile=0";
/// First version of NVRTC with which this option was tested.
const SPLIT_SINCE: u32 = 13000;
/// First CUDA version of the driver with `cuEventElapsedTime_v2`.
const TIMING_SINCE: u32 = 12080;
/// First CUDA version of the driver that reports the size of kernel parameters.
const PARAMETERS_SINCE: u32 = 12040;
/// Dynamic shared memory that kernels may use without an attribute, bytes.
const SHARED_UNASKED: u32 = 48 << 10;

/// Returns `true` if the NVRTC library is installed.
pub(super) fn compiler_present() -> bool {
    // SAFETY: loading the library runs no code of this program
    unsafe { nvrtc::is_culib_present() }
}

/// Loads NVRTC from the usual installation folders, so that it is found without LD_LIBRARY_PATH.
pub(super) fn find_compiler() {
    let set = ["CUDA_HOME", "CUDA_PATH"].map(|name| std::env::var(name).unwrap_or_default());
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(String::from);
    for folder in set.into_iter().chain(usual).filter(|f| !f.is_empty()) {
        for file in ["lib64/libnvrtc.so", "lib/libnvrtc.so"] {
            let Ok(name) = CString::new(format!("{folder}/{file}")) else {
                continue;
            };
            // SAFETY: loading the library runs no code of this program; it stays loaded
            if !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) }.is_null() {
                return;
            }
        }
    }
}

/// Returns the options for a version of NVRTC.
pub(super) fn options(version: u32) -> Vec<&'static str> {
    let split = Some(SPLIT).filter(|_| version >= SPLIT_SINCE);
    OPTIONS.into_iter().chain(split).collect()
}

/// Returns the version of NVRTC: 1000 * major + 10 * minor.
pub(super) fn version() -> Result<u32, DeviceError> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the numbers are stored in live variables
    let code = unsafe { nvrtc::nvrtcVersion(&mut major, &mut minor) };
    answer("cannot read the version of NVRTC", code)?;
    Ok((1000 * major + 10 * minor) as u32)
}

fn answer(doing: &str, code: nvrtc::nvrtcResult) -> Result<(), DeviceError> {
    match code {
        nvrtc::nvrtcResult::NVRTC_SUCCESS => Ok(()),
        code => Err(DeviceError::failed(doing, format!("{code:?}"))),
    }
}

/// An NVRTC program, destroyed on drop.
struct NvrtcProgram(nvrtc::nvrtcProgram);

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: NVRTC created the program
        unsafe { nvrtc::nvrtcDestroyProgram(&mut self.0) };
    }
}

/// Compiles a source for an architecture such as `sm_90` with some [`options`] and returns the binary for the driver.
pub(super) fn compile(
    name: &str,
    source: &str,
    architecture: &str,
    options: &[&str],
) -> Result<Vec<u8>, DeviceError> {
    let text = |text: String| CString::new(text).map_err(|e| DeviceError::failed("NVRTC", e));
    let (source, file) = (text(source.to_string())?, text(format!("{name}.cu"))?);
    let mut all = vec![text(format!("--gpu-architecture={architecture}"))?];
    for option in options {
        all.push(text(option.to_string())?);
    }
    let options: Vec<*const c_char> = all.iter().map(|option| option.as_ptr()).collect();
    compile_texts(name, &source, &file, &options)
}

fn compile_texts(
    name: &str,
    source: &CString,
    file: &CString,
    options: &[*const c_char],
) -> Result<Vec<u8>, DeviceError> {
    let mut program = NvrtcProgram(std::ptr::null_mut());
    let none = std::ptr::null();
    // SAFETY: the texts are terminated by 0 and outlive the program; there are no headers
    let code = unsafe {
        nvrtc::nvrtcCreateProgram(
            &mut program.0,
            source.as_ptr(),
            file.as_ptr(),
            0,
            none,
            none,
        )
    };
    answer("NVRTC rejects the source", code)?;
    // SAFETY: the program comes from NVRTC; the options are terminated by 0
    let code =
        unsafe { nvrtc::nvrtcCompileProgram(program.0, options.len() as i32, options.as_ptr()) };
    if code != nvrtc::nvrtcResult::NVRTC_SUCCESS {
        return Err(DeviceError::Compile {
            name: name.to_string(),
            log: format!("{code:?}\n{}", log(&program)).trim().to_string(),
        });
    }
    binary(&program)
}

/// Returns the binary of a successful compilation.
fn binary(program: &NvrtcProgram) -> Result<Vec<u8>, DeviceError> {
    let doing = "NVRTC returns no binary";
    let mut size = 0;
    // SAFETY: the size is stored in a live variable
    answer(doing, unsafe {
        nvrtc::nvrtcGetCUBINSize(program.0, &mut size)
    })?;
    let mut binary = vec![0u8; size];
    // SAFETY: the buffer has the size that NVRTC reported
    answer(doing, unsafe {
        nvrtc::nvrtcGetCUBIN(program.0, binary.as_mut_ptr().cast())
    })?;
    Ok(binary)
}

/// Returns the log of a compilation.
fn log(program: &NvrtcProgram) -> String {
    let mut size = 0;
    // SAFETY: the size is stored in a live variable
    let code = unsafe { nvrtc::nvrtcGetProgramLogSize(program.0, &mut size) };
    let mut text = vec![0u8; size];
    // SAFETY: the buffer has the size that NVRTC reported
    let known = code == nvrtc::nvrtcResult::NVRTC_SUCCESS
        && unsafe { nvrtc::nvrtcGetProgramLog(program.0, text.as_mut_ptr().cast()) }
            == nvrtc::nvrtcResult::NVRTC_SUCCESS;
    match known {
        true => String::from_utf8_lossy(&text)
            .trim_end_matches('\0')
            .to_string(),
        false => "no log".into(),
    }
}

/// A loaded module.
pub(super) struct CudaModule {
    context: Arc<Context>,
    image: ModuleHandle,
}

impl CudaModule {
    /// Loads a binary.
    pub(super) fn load(context: &Arc<Context>, binary: &[u8]) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        let mut image = std::ptr::null_mut();
        driver!(
            "the driver cannot load compiled kernels",
            cuModuleLoadData(&mut image, binary.as_ptr().cast())
        )?;
        Ok(Self {
            context: context.clone(),
            image: ModuleHandle(image),
        })
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        // Work that uses the code may still be running. Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        let _ = self.context.wait();
        let _ = driver!("", cuModuleUnload(self.image.0));
    }
}

impl LoadedCode for CudaModule {
    fn function(self: Arc<Self>, name: &str) -> Result<Box<dyn BackendKernel>, DeviceError> {
        Ok(Box::new(self.kernel(name)?))
    }
}

impl CudaModule {
    /// Returns a kernel by name.
    pub(super) fn kernel(self: Arc<Self>, name: &str) -> Result<CudaKernel, DeviceError> {
        let gpu = self.context.gpu;
        gpu.bind()?;
        let missing = || DeviceError::Kernel(format!("there is no kernel {name} in the source"));
        let text = CString::new(name).map_err(|_| missing())?;
        let mut entry = std::ptr::null_mut();
        driver!(
            "",
            cuModuleGetFunction(&mut entry, self.image.0, text.as_ptr())
        )
        .map_err(|_| missing())?;
        let entry = FunctionHandle(entry);
        Ok(CudaKernel {
            info: info(entry, gpu.version)?,
            entry,
            shared: AtomicU32::new(SHARED_UNASKED),
            code: self,
        })
    }
}

fn info(entry: FunctionHandle, version: u32) -> Result<KernelInfo, DeviceError> {
    use sys::CUfunction_attribute_enum as A;
    let attribute = |attribute: A| -> Result<u32, DeviceError> {
        let mut value = 0;
        let doing = "cannot read an attribute of a kernel";
        driver!(doing, cuFuncGetAttribute(&mut value, attribute, entry.0))?;
        Ok(value as u32)
    };
    let mut parameters = None;
    if version >= PARAMETERS_SINCE {
        let (mut offset, mut size) = (0, 0);
        let known = driver!("", cuFuncGetParamInfo(entry.0, 0, &mut offset, &mut size));
        parameters = known.ok().map(|()| size as u32);
    }
    Ok(KernelInfo {
        registers: attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local: attribute(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        shared: attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        threads: attribute(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        parameters,
    })
}

/// A kernel of a loaded module.
pub(super) struct CudaKernel {
    code: Arc<CudaModule>,
    entry: FunctionHandle,
    info: KernelInfo,
    /// Dynamic shared memory that launches may use at present, bytes.
    shared: AtomicU32,
}

impl CudaKernel {
    /// Allows launches with `shared` bytes of dynamic shared memory.
    fn allow(&self, shared: u32) -> Result<(), DeviceError> {
        // Static shared memory counts too.
        if shared + self.info.shared <= self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let attribute =
            sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        driver!(
            "a kernel needs more shared memory than the GPU has",
            cuFuncSetAttribute(self.entry.0, attribute, shared as i32)
        )?;
        self.shared
            .fetch_max(shared + self.info.shared, Ordering::Relaxed);
        Ok(())
    }

    /// Returns how many blocks run at the same time.
    fn blocks_at_once(&self, shape: LaunchShape) -> Result<u32, DeviceError> {
        let resident = self.resident_blocks(shape.threads, shape.shared)?;
        let count = sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        Ok(resident * self.code.context.gpu.attribute(count)?)
    }

    /// Queues a launch on a stream of the context, which must be current.
    pub(super) fn queue(
        &self,
        stream: Stream,
        shape: LaunchShape,
        parameters: &[u8],
    ) -> Result<(), DeviceError> {
        let mut parameters: [*mut c_void; 1] = [parameters.as_ptr().cast_mut().cast()];
        if shape.together {
            return driver!(
                "cannot launch a kernel whose blocks run at the same time",
                cuLaunchCooperativeKernel(
                    self.entry.0,
                    shape.blocks.min(self.blocks_at_once(shape)?),
                    1,
                    1,
                    shape.threads,
                    1,
                    1,
                    shape.shared,
                    stream.0,
                    parameters.as_mut_ptr(),
                )
            );
        }
        driver!(
            "cannot launch a kernel",
            cuLaunchKernel(
                self.entry.0,
                shape.blocks,
                1,
                1,
                shape.threads,
                1,
                1,
                shape.shared,
                stream.0,
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        )
    }
}

impl BackendKernel for CudaKernel {
    fn info(&self) -> KernelInfo {
        self.info
    }

    fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError> {
        self.code.context.gpu.bind()?;
        self.allow(shared)?;
        let mut blocks = 0;
        driver!(
            "cannot compute the occupancy of a kernel",
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.entry.0,
                threads as i32,
                shared as usize,
            )
        )?;
        Ok(blocks as u32)
    }

    fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timer: Option<&Arc<AtomicKernelCounters>>,
    ) -> Result<(), DeviceError> {
        let context = &self.code.context;
        context.gpu.bind()?;
        self.allow(shape.shared)?;
        let timer = timer.filter(|_| context.gpu.version >= TIMING_SINCE);
        let start = timer.map(|_| context.record_time()).transpose()?;
        self.queue(context.stream, shape, parameters)?;
        if let (Some(start), Some(counters)) = (start, timer) {
            let end = context.record_time()?;
            context.time(start, end, counters.clone())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{compile, compiler_present, find_compiler, options, version};
    use nestar_device::{LAUNCH, program};

    /// NVRTC needs no GPU.
    #[test]
    fn skeletons_compile_to_binaries_and_errors_have_lines() {
        find_compiler();
        if !compiler_present() {
            println!("skipped: there is no NVRTC");
            return;
        }
        assert!(version().unwrap() >= 12000);
        let kernel =
            "struct P { rs::u64 x; };\nKERNEL(fill, P) {\n  EACH(i, 8) ((double*)p.x)[i] = i;\n}\n";
        let source = format!("{}\n{LAUNCH}\n{kernel}", program(&[]));
        let all = options(version().unwrap());
        let binary = compile("fill", &source, "sm_90", &all).unwrap();
        assert_eq!(&binary[..4], b"\x7fELF");
        let broken = source.replace("[i] = i", "[i] = j");
        let line = 1 + broken
            .lines()
            .take_while(|l| !l.contains("[i] = j"))
            .count();
        let text = compile("fill", &broken, "sm_90", &all)
            .unwrap_err()
            .to_string();
        assert!(text.contains(&format!("skeletons({line})")), "{text}");
    }
}
