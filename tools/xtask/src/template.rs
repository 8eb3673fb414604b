//! Test of the crate made by `nestar new`: build, check, run and test.
use crate::{Outcome, cargo, execute, target_directory};
use std::path::Path;
use std::process::Command;

/// Name of the crate and of its deck.
const NAME: &str = "template-run";

/// Creates a crate in a temporary folder, checks and runs its deck, and runs its tests. The build is kept in the target
/// directory of the checkout; the crate is kept if a step fails.
pub fn template(root: &Path) -> Outcome {
    let folder = std::env::temp_dir().join(format!("nestar-template-{}", std::process::id()));
    if let Err(e) = std::fs::create_dir(&folder) {
        return Outcome::Failed(format!("{}: {e}", folder.display()));
    }
    let krate = folder.join(NAME);
    match made(root, &krate) {
        Outcome::Passed => {}
        other => return other,
    }
    for step in steps(root, &krate) {
        if let Outcome::Failed(why) = execute(step) {
            return Outcome::Failed(format!("{why}; the crate is kept in {}", krate.display()));
        }
    }
    match results(&krate) {
        Ok(()) => {}
        Err(why) => return Outcome::Failed(why),
    }
    match std::fs::remove_dir_all(&folder) {
        Ok(()) => Outcome::Passed,
        Err(e) => Outcome::Failed(format!("{}: {e}", folder.display())),
    }
}

/// Runs `nestar new` of this checkout.
fn made(root: &Path, krate: &Path) -> Outcome {
    let new = [
        "run",
        "--quiet",
        "--release",
        "-p",
        "nestar-cli",
        "--",
        "new",
    ];
    let mut command = cargo(root, &new);
    command.arg(krate);
    execute(command)
}

/// Runs the commands of the crate's README, with a short run.
fn steps(root: &Path, krate: &Path) -> Vec<Command> {
    let deck = format!("{NAME}.toml");
    let run = ["run", "--release", "--"];
    let small = ["--set", "domain.cells=[16,16,16]"];
    let short = ["--set", "time.max_steps=3"];
    let lines = [
        [&run[..], &["check", &deck], &small].concat(),
        [&run[..], &["run", &deck], &small, &short].concat(),
        vec!["test", "--release"],
    ];
    let target = target_directory(root);
    let command = |line: &Vec<&str>| {
        let mut command = cargo(krate, line);
        command.env("CARGO_TARGET_DIR", &target);
        command
    };
    lines.iter().map(command).collect()
}

/// Checks the output of the run: rows of the diagnostics, and a snapshot.
fn results(krate: &Path) -> Result<(), String> {
    let run = krate.join("out").join(NAME);
    let table = run.join("diagnostics.csv");
    let text = std::fs::read_to_string(&table).map_err(|e| format!("{}: {e}", table.display()))?;
    if text.lines().count() != 5 {
        return Err(format!("unexpected rows in {}:\n{text}", table.display()));
    }
    let snapshots = run.join("snapshots");
    match snapshots.join("000000.zarr").is_dir() {
        true => Ok(()),
        false => Err(format!("{} has no snapshot", snapshots.display())),
    }
}
