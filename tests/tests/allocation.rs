//! Nothing is allocated inside a level step once the pools have grown: a counting allocator watches.

use nestar_tests::Stepper;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts every allocation of the process.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DECK: &str = r#"
scenario = "formula"

[initial]
density    = "1"
pressure   = "if(r < 0.2, 10, 0.1)"
scalars    = { dye = "r < 0.3" }

[domain]
cells      = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]
boundary   = { x = ["reflecting", "outflow"], y = "diode", z = "periodic" }

[time]
end = 1.0

[mesh]
max_level       = 2
regrid_interval = 1000

[[mesh.refine]]
criterion = "gradient"
field     = "pressure"
threshold = 0.3

[hydro]
scalars = ["dye"]

[run]
threads = 2
"#;

#[test]
fn level_steps_between_regrids_allocate_nothing() {
    for settings in [
        &["run.precision=double"][..],
        &[
            "run.precision=single",
            "hydro.scheme=vl",
            "hydro.reconstruction=ppm",
        ],
        &["time.levels=halved"],
        &["time.levels=shared"],
    ] {
        let mut run = Stepper::new(DECK, settings);
        // the first steps fill the threads' queues and working spaces
        run.steps(3);
        let steps = 5;
        let counted = run.0.with(|sim| {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for _ in 0..steps {
                sim.root_step(f64::INFINITY).expect("the step stands");
            }
            ALLOCATIONS.load(Ordering::Relaxed) - before
        });
        assert_eq!(
            counted, 0,
            "{counted} allocations in {steps} root steps with {settings:?}"
        );
    }
}
