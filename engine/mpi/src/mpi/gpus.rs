//! Whether MPI reads and writes the memory of GPUs itself.

use super::CALLS;
use std::ffi::c_int;
use std::sync::PoisonError;

/// Set to 1 or 0: whether MPI takes addresses of CUDA devices, whatever the library says.
const CHOICE: &str = "NESTAR_CUDA_AWARE";

/// Whether the library says that it takes addresses of CUDA devices (CUDA-aware MPI).
pub fn reaches_gpus() -> bool {
    match std::env::var(CHOICE).ok().as_deref() {
        Some("0") => return false,
        Some("1") => return true,
        _ => {}
    }
    // MPICH of HPE Cray is told so by this variable
    if std::env::var("MPICH_GPU_SUPPORT_ENABLED").is_ok_and(|value| value == "1") {
        return true;
    }
    let name = c"MPIX_Query_cuda_support";
    // SAFETY: a name that ends; the library that is loaded has no other function of this name
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: `int MPIX_Query_cuda_support(void)` in Open MPI and MPICH alike
    let query: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
    let _one = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    query() == 1
}
