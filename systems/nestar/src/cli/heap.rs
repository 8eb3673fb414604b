//! Configuration of the heap.

/// Configures the heap to retain freed memory. Steps repeatedly allocate large vectors, up to 1 MiB per thread and a few per level. Page faults
/// after returning them to the system would cost a fifth of a step. Vectors of 1 GiB and more are still returned.
///
/// This is needed only for the GNU C library.
pub fn retain_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        set(libc::M_MMAP_THRESHOLD, 1 << 30);
        set(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        // a heap of its own for each thread reserves 64 MiB of addresses
        if address_space_is_limited() {
            set(libc::M_ARENA_MAX, 1);
        }
    }
}

#[cfg(target_env = "gnu")]
fn set(option: libc::c_int, value: libc::c_int) {
    // SAFETY: sets a number of the allocator; no other thread runs yet.
    unsafe { libc::mallopt(option, value) };
}

/// Returns `true` if there is a limit such as that of `ulimit -v`.
#[cfg(target_env = "gnu")]
fn address_space_is_limited() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is stored in a live variable.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    limit.rlim_cur != libc::RLIM_INFINITY
}
