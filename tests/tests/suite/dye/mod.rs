//! A user field with a stencil, a time-step limit, a criterion and a column: few lines, bitwise equal everywhere.

mod plugin;

use crate::device_runs::places;
use nestar::engine::comm::DiagnosticColumns;
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, State, Stepper};
use plugin::Spreading;

pub const SPREADING: Spreading<f64> = Spreading {
    rate: 0.4,
    edge: 0.35,
};

#[test]
fn a_field_with_a_stencil_a_limit_a_criterion_and_a_column_takes_sixty_lines() {
    let text = include_str!("plugin.rs");
    let product = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = text.lines().filter(product).count();
    assert!(lines <= 60, "{lines} lines");
    assert!(!text.contains("unsafe") && !text.contains("KERNEL"));
}

/// State, columns and limiters of two steps.
fn end(stepper: &mut Stepper) -> (State, Vec<u64>, Vec<&'static str>) {
    let step = |_| stepper.try_step().unwrap_or_else(|e| panic!("{e}")).limiter;
    let limiters = (0..2).map(step).collect();
    let columns = stepper
        .0
        .with(|sim| DiagnosticColumns::values(&mut sim.world));
    let columns = columns.unwrap_or_else(|e| panic!("{e}")).into_iter();
    (
        stepper.state(),
        columns.map(f64::to_bits).collect(),
        limiters,
    )
}

fn run(settings: &[&str], size: usize) -> (State, Vec<u64>, Vec<&'static str>) {
    let build = |ranks| Simulation::with_ranks(deck(BLAST, settings), ranks)?.add(SPREADING);
    let mut ends = on_ranks_of(size, build, end);
    let states = ends.iter().map(|end| end.0.clone()).collect();
    let (_, columns, limiters) = ends.swap_remove(size - 1);
    (joined(states), columns, limiters)
}

#[test]
fn dye_is_identical_on_ranks_and_devices() {
    for (precision, ranks, devices) in [
        ("run.precision=double", 2, 3),
        ("run.precision=single", 4, 1),
    ] {
        let alone = run(&[HALF, precision, "time.decrease=0"], 1);
        assert_eq!(alone.2, ["ink"; 2]);
        assert!(f64::from_bits(alone.1[0]) > 0.0 && alone.0.counts()[2] > 0);
        for (device, size) in places(&[ranks], &[devices]) {
            let other = run(&[HALF, precision, "time.decrease=0", device], size);
            assert_eq!(alone.0.difference(&other.0), None, "{device}, {size} ranks");
            let found = ((&alone.1, &alone.2), (&other.1, &other.2));
            assert_eq!(found.0, found.1, "{device}, {size} ranks");
        }
    }
}

#[test]
fn dye_is_identical_after_a_restart() {
    let scratch = Scratch::new();
    let last = |name: &str, parts: &[(usize, &str)]| {
        let directory = scratch.path().join(name);
        for (n, (ranks, steps)) in parts.iter().enumerate() {
            let add = |sim: Simulation| sim.add(SPREADING);
            run_with(&directory, n > 0, *ranks, &[steps], add).unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&directory).pop().expect("there is a snapshot").1
    };
    let whole = last("whole", &[(1, "time.max_steps=2")]);
    let parts = last("parts", &[(2, "time.max_steps=1"), (1, "time.max_steps=2")]);
    assert_eq!(whole, parts);
}
