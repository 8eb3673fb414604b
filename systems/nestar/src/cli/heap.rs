//! Configuration of the heap.

/// Configures the heap to retain freed memory. Steps repeatedly allocate large vectors, up to 1 MiB per thread and a few per level. Page faults
/// after returning them to the system would cost a fifth of a step. Vectors of 1 GiB and more are still returned.
///
/// This is needed only for the GNU C library.
pub fn retain_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        (libc::M_MMAP_THRESHOLD, 1 << 30),
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
    ] {
        // SAFETY: sets a number of the allocator; no other thread runs yet.
        unsafe { libc::mallopt(option, value) };
    }
}
