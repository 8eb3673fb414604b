//! A level step allocates nothing once the pools have grown, and the pools are most of the memory: checked by a counting
//! allocator.

use nestar::engine::data::Pool;
use nestar::engine::{Engine, Error};
use nestar::systems::fields::Gas;
use nestar_tests::{Stepper, build};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts every allocation of the process.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
/// Bytes in use, and the most there were since it was last set.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
/// The tests of this program share the counters.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn count(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    MOST.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
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

/// Allocations in some root steps, behind the first ones, which fill the threads' queues and working spaces.
fn allocations(settings: &[&str]) -> usize {
    let _guard = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut run = Stepper::new(DECK, settings);
    run.steps(3);
    run.0.with(|sim| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..2 {
            sim.root_step(f64::INFINITY).expect("the step stands");
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    })
}

#[test]
fn level_steps_between_regrids_allocate_nothing() {
    let other = [
        "run.precision=single",
        "hydro.scheme=vl",
        "hydro.reconstruction=ppm",
    ];
    for settings in [
        &["run.threads=2"][..],
        &["run.threads=3", "time.levels=halved"],
        &["time.levels=shared"],
        &other,
    ] {
        assert_eq!(allocations(settings), 0, "allocations with {settings:?}");
    }
}

/// The counter itself: a regrid does allocate.
#[test]
fn regrids_are_counted() {
    assert!(allocations(&["mesh.regrid_interval=1"]) > 0);
}

/// The most memory that a run had in use over the bytes of the two banks of its fields, from the deck to the last step.
fn memory_over_banks(settings: &[&str]) -> f64 {
    let _guard = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut stepper = Stepper::new(DECK, settings);
    stepper.steps(2);
    let banks = Pool::<Gas>::of(&stepper.0.engine().world).bytes();
    let most = MOST.load(Ordering::Relaxed) - before;
    println!("{settings:?}: {most} bytes in use, {banks} in the banks");
    most as f64 / banks as f64
}

#[test]
fn memory_is_mostly_the_banks() {
    let adaptive = memory_over_banks(&[
        "run.audit=false",
        "mesh.regrid_interval=2",
        "domain.cells=[32,32,32]",
    ]);
    let uniform = memory_over_banks(&[
        "run.audit=false",
        "domain.cells=[64,64,64]",
        "mesh.max_level=0",
    ]);
    assert!(
        uniform <= 1.5 && adaptive <= 1.5,
        "uniform {uniform:.3}, adaptive {adaptive:.3}"
    );
}

/// The most memory in use while `work` goes on with a simulation whose fields take hundreds of megabytes.
fn most_memory(work: impl FnOnce(&mut Engine) -> Result<(), Error> + Send) -> usize {
    let _guard = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let settings = [
        "run.audit=false",
        "run.precision=single",
        "domain.cells=[64, 64, 64]",
        "mesh.max_level=3",
    ];
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut sim = build(DECK, &settings);
    sim.with(work).unwrap_or_else(|e| panic!("{e}"));
    MOST.load(Ordering::Relaxed) - before
}

#[test]
fn initial_states_are_predicted_within_a_part_of_the_memory() {
    let run = most_memory(Engine::initialise);
    let foreseen = most_memory(|sim| sim.preview_hierarchy(|_| ()).map(|_| ()));
    println!("{run} bytes with fields, {foreseen} foreseen");
    assert!(run > 3 * foreseen, "{foreseen} of {run} bytes");
}
