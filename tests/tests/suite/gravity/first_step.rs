//! The limits of the first step are known for initial states, and omitted where only a part of the levels is set up.

use super::LUMP;
use nestar_tests::{Stepper, build};

#[test]
fn first_step_limits_of_whole_levels_are_known_for_initial_states_and_omitted_for_parts() {
    let settings = ["gravity.constant=3e3", "time.end=1e9"];
    let parts = build(LUMP, &settings).with(|sim| sim.preview_hierarchy(|_| ()));
    let parts = parts.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parts.unknown_limits, ["gravity"]);
    let mut run = Stepper::new(LUMP, &settings);
    let known = run
        .0
        .with(|sim| sim.step_lengths())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(known.len(), parts.steps.len());
    let shorter = known
        .iter()
        .zip(&parts.steps)
        .all(|(known, part)| *known < 0.8 * part);
    assert!(shorter, "{known:?} and {:?}", parts.steps);
    let shared = ["gravity.constant=3e3", "time.end=1e9", "time.levels=shared"];
    let report = Stepper::new(LUMP, &shared).try_step();
    let report = report.unwrap_or_else(|e| panic!("{e}"));
    let smallest = known.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(report.limiter, "gravity");
    assert!(
        (report.dt / smallest - 1.0).abs() < 1e-6,
        "{} {smallest}",
        report.dt
    );
}
