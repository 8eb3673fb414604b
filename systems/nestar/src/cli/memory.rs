//! Memory of a run, configuration of the heap, and the end of the program without memory for a thread.

use super::OUT_OF_MEMORY;
use nestar::engine::Engine;
use nestar::engine::data::{StoreRef, Stores};
pub use nestar::engine::device::format_bytes;
use nestar::engine::mesh::Topology;
use nestar::engine::step::memory::{ParticleDemand, particle_demand};
use nestar::report::print_message;
use signal_hook::low_level;
use std::panic::{PanicHookInfo, set_hook, take_hook};

/// Returns the bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Engine) -> u64 {
    let fields = sim.world.resource::<Stores>().all();
    let bytes = |field: &StoreRef| field.of(&sim.world).spec().row_bytes(sim.precision());
    fields.iter().map(bytes).sum::<usize>() as u64
}

/// Describes the initial particles of a run, one line per kind, with their memory in `patches` patches.
pub fn particle_memory(sim: &Engine, patches: usize) -> Vec<String> {
    let line = |kind: ParticleDemand| {
        let (path, count) = (kind.path, kind.count);
        format!(
            "{path}: {} for at most {count} particles",
            format_bytes(kind.bytes)
        )
    };
    particle_demand(&sim.world, patches, 1)
        .into_iter()
        .map(line)
        .collect()
}

/// Returns the number of patches of the root grid.
pub fn root_patches(sim: &Engine) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}

/// Makes the program end with a message and a status if the system has memory for the stack of a new thread, but not for the
/// small second stack on which signals are handled.
///
/// The standard library panics then, in the new thread and before any code of the program.
pub fn end_without_memory_for_threads() {
    let others = take_hook();
    set_hook(Box::new(move |panic| {
        if is_refused_signal_stack(panic) {
            print_message(
                "error: the system refused memory for a thread; allow more memory (ulimit -v), or use fewer threads; a run with a \
                 snapshot can be continued by --resume",
            );
            low_level::exit(OUT_OF_MEMORY.into());
        }
        others(panic);
    }));
}

/// Returns `true` for the panic of the standard library without memory for the stack of signals.
fn is_refused_signal_stack(panic: &PanicHookInfo) -> bool {
    let text = panic.payload_as_str().unwrap_or_default();
    text.contains("alternative stack")
}

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
