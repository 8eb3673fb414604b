//! Benchmarks of the patch solver and of complete runs.

use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;

/// Benchmark of the patch solver, by method and SIMD type.
const PATCH: [&str; 6] = [
    "run",
    "--release",
    "-p",
    "nestar-kernels",
    "--example",
    "patch_speed",
];
/// Cases of `nestar bench`.
const PROGRAM: [&str; 7] = [
    "run",
    "--quiet",
    "--release",
    "-p",
    "nestar-cli",
    "--",
    "bench",
];

/// Runs the benchmark of the patch solver, and `nestar bench` with `--device auto`.
pub fn bench(root: &Path) -> Outcome {
    let outcomes = [&PATCH[..], &PROGRAM].map(|arguments| execute(cargo(root, arguments)));
    let failed = outcomes
        .into_iter()
        .find(|outcome| matches!(outcome, Outcome::Failed(_)));
    failed.unwrap_or(Outcome::Passed)
}
