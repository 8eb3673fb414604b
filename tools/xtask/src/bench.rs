//! Speed: the patch solver alone, then whole programs.

use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;

/// The patch solver by method and lane type.
const PATCH: [&str; 6] = [
    "run",
    "--release",
    "-p",
    "nestar-kernels",
    "--example",
    "patch_speed",
];
/// The cases of `nestar bench`.
const PROGRAM: [&str; 7] = ["run", "--quiet", "--release", "-p", "nestar", "--", "bench"];

/// Runs the patch solver's example, and `nestar bench` on what `--device auto` finds.
pub fn bench(root: &Path) -> Outcome {
    let outcomes = [&PATCH[..], &PROGRAM].map(|arguments| execute(cargo(root, arguments)));
    let failed = outcomes
        .into_iter()
        .find(|outcome| matches!(outcome, Outcome::Failed(_)));
    failed.unwrap_or(Outcome::Passed)
}
