//! The `nestar` command.

use nestar::cli::OUT_OF_MEMORY;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Write as _, stderr};

#[global_allocator]
static ALLOCATOR: ExitOnOutOfMemory = ExitOnOutOfMemory;

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| app)
}

/// System allocator that ends the program instead of returning a null pointer.
struct ExitOnOutOfMemory;

/// Alignment of zeroed memory for fields and emulated devices, whose callers handle a null pointer themselves.
const CHECKED_ALIGNMENT: usize = 64;

/// Ends the program if the pointer is null; does not allocate.
fn check(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        // an error of this message cannot be reported
        let _ = writeln!(
            stderr(),
            "error: the system refused to allocate {bytes} bytes; allow more memory (ulimit -v), or use fewer threads or a smaller \
             run.memory_limit; a run with a snapshot can be continued by --resume"
        );
        signal_hook::low_level::exit(OUT_OF_MEMORY.into());
    }
    pointer
}

// SAFETY: all calls are forwarded unchanged to the system allocator; no call unwinds.
unsafe impl GlobalAlloc for ExitOnOutOfMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwards the caller's contract.
        check(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwards the caller's contract.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        match layout.align() {
            CHECKED_ALIGNMENT.. => pointer,
            _ => check(pointer, layout.size()),
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: forwards the caller's contract.
        check(unsafe { System.realloc(pointer, layout, size) }, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: forwards the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
