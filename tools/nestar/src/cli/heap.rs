//! The heap of the process.

/// Has the heap keep what is freed. Steps take and free large vectors again and again, up to a megabyte for each thread and a few for each level;
/// given back to the system they would come anew each time, page by page: a fifth of a step's time. Vectors of a gibibyte and more go back.
///
/// Only the C library of GNU has to be told.
pub fn retain_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        // the heaps of threads give back what is free whatever they are told
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, 1 << 30),
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
    ] {
        // SAFETY: sets a number of the allocator; no other thread runs yet.
        unsafe { libc::mallopt(option, value) };
    }
}
