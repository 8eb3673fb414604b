//! The memory of the program itself: where the system refuses it, the program ends with a message and a status of the table.

use nestar::cli::OUT_OF_MEMORY;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Write as _, stderr};

/// The system's allocator, which ends the program in place of giving nothing.
pub struct ExitOnOutOfMemory;

/// Alignment of zeros for fields and emulated devices: who asks for them looks at the answer and ends well.
const CHECKED_ALIGNMENT: usize = 64;

/// Ends the program if there is no memory. Nothing here takes any.
fn check(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        // nobody is left to hear of a failure
        let _ = writeln!(
            stderr(),
            "error: the system refuses the program {bytes} bytes of memory; give it more (ulimit -v, fewer threads, a smaller \
             run.memory_limit); a run that has a snapshot goes on from there by --resume"
        );
        signal_hook::low_level::exit(OUT_OF_MEMORY.into());
    }
    pointer
}

// SAFETY: all memory is the system allocator's, which gets what was asked for here; no call unwinds.
unsafe impl GlobalAlloc for ExitOnOutOfMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        check(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        match layout.align() {
            CHECKED_ALIGNMENT.. => pointer,
            _ => check(pointer, layout.size()),
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        check(unsafe { System.realloc(pointer, layout, size) }, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
