//! The same deck gives the same bits on any number of threads.

use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::{State, Stepper};

fn state(threads: usize, settings: &[&str]) -> State {
    let threads = format!("run.threads={threads}");
    let settings = [&[HALF, &threads], settings].concat();
    Stepper::new(BLAST, &settings).steps(6).state()
}

fn same_for(counts: &[usize], settings: &[&str]) {
    let one = state(1, settings);
    assert!(
        one.counts()[2] > 8,
        "no refinement to speak of: {:?}",
        one.counts()
    );
    for &threads in counts {
        if let Some(difference) = one.difference(&state(threads, settings)) {
            panic!("1 and {threads} threads differ under {settings:?}: {difference}");
        }
    }
}

#[test]
fn threads_do_not_matter_in_double_precision() {
    // a second run of the process with one thread, and others
    same_for(&[1, 2, 5], &[]);
}

#[test]
fn threads_do_not_matter_in_single_precision() {
    same_for(
        &[3],
        &[
            "run.precision=single",
            "hydro.scheme=vl",
            "hydro.reconstruction=ppm",
        ],
    );
}

#[test]
fn threads_do_not_matter_with_halved_steps() {
    same_for(&[3], &["time.levels=halved"]);
}

#[test]
fn threads_do_not_matter_with_shared_steps() {
    same_for(&[3], &["time.levels=shared"]);
}

/// The comparison detects a flow that differs by one part in 10^15.
#[test]
fn the_comparison_sees_the_last_bit() {
    let mut changed = Stepper::new(BLAST, &[HALF]).state();
    let other = changed.clone();
    let patch = changed.levels[1]
        .values_mut()
        .next()
        .expect("level 1 has patches");
    patch.values[700] = f64::from_bits(patch.values[700].to_bits() ^ 1);
    let difference = changed.difference(&other).expect("a bit differs");
    assert!(
        difference.contains("level 1") && difference.contains("component 1"),
        "{difference}"
    );
}
