//! Speed: the patch solver alone, then whole programs.

use crate::Outcome;
use crate::steps::{cargo, execute, target_directory};
use std::path::Path;

/// Name of a case, its deck, and what is changed in it.
type Case = (&'static str, &'static str, &'static [&'static str]);

const UNIFORM: &[&str] = &[
    "domain.cells=[128,128,128]",
    "time.end=1",
    "time.max_steps=24",
    "output.initial=false",
    "output.final=false",
];

/// The whole-program cases of BENCHMARKS.md.
const CASES: [Case; 4] = [
    (
        "uniform-double",
        "scenarios/blast-uniform.toml",
        &["run.precision=double"],
    ),
    (
        "uniform-single",
        "scenarios/blast-uniform.toml",
        &["run.precision=single"],
    ),
    (
        "adaptive-double",
        "scenarios/sedov.toml",
        &["run.precision=double"],
    ),
    (
        "adaptive-single",
        "scenarios/sedov.toml",
        &["run.precision=single"],
    ),
];

/// Runs the patch solver's example and every case; the last line of each run shows its rate.
pub fn bench(root: &Path) -> Outcome {
    let patch = [
        "run",
        "--release",
        "-p",
        "nestar-kernels",
        "--example",
        "patch_speed",
    ];
    let mut outcomes = vec![execute(cargo(root, &patch))];
    let folder = target_directory(root).join("bench");
    if let Err(e) = std::fs::create_dir_all(&folder) {
        return Outcome::Failed(format!("{}: {e}", folder.display()));
    }
    for (name, deck, sets) in CASES {
        let output = folder.join(name);
        // an earlier bench's output is not worth keeping
        if output.exists()
            && let Err(e) = std::fs::remove_dir_all(&output)
        {
            return Outcome::Failed(format!("{}: {e}", output.display()));
        }
        let mut command = cargo(
            root,
            &[
                "run",
                "--quiet",
                "--release",
                "-p",
                "nestar",
                "--",
                "run",
                deck,
            ],
        );
        let uniform = if name.starts_with("uniform") {
            UNIFORM
        } else {
            &[]
        };
        for set in uniform.iter().chain(sets) {
            command.args(["--set", set]);
        }
        command.arg("--output").arg(&output);
        outcomes.push(execute(command));
    }
    let failed = outcomes
        .into_iter()
        .find(|o| matches!(o, Outcome::Failed(_)));
    failed.unwrap_or(Outcome::Passed)
}
