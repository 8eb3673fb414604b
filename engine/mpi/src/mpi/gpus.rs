//! Detects GPU-aware MPI.

use super::CALLS;
use std::ffi::c_int;
use std::sync::PoisonError;

/// Environment variable that overrides the library: 1 if MPI accepts addresses of CUDA devices, 0 if not.
const CHOICE: &str = "NESTAR_CUDA_AWARE";

/// Returns `true` if the library accepts addresses of CUDA devices (GPU-aware MPI).
pub fn reaches_gpus() -> bool {
    match std::env::var(CHOICE).ok().as_deref() {
        Some("0") => return false,
        Some("1") => return true,
        _ => {}
    }
    // MPICH of HPE Cray uses this variable.
    if std::env::var("MPICH_GPU_SUPPORT_ENABLED").is_ok_and(|value| value == "1") {
        return true;
    }
    let name = c"MPIX_Query_cuda_support";
    // SAFETY: a terminated name; no other library defines a function of this name
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: Open MPI and MPICH declare `int MPIX_Query_cuda_support(void)`
    let query: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
    let _one = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    query() == 1
}
