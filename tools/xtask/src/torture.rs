//! Stress tests: kills, injected faults, flipped bits and random decks; and tests of `unsafe` code and of parsers under
//! AddressSanitizer or Miri, if the toolchain has them.
use crate::{Outcome, cargo, execute, target_directory};
use std::path::Path;
use std::process::Command;

/// Crates whose unit tests run under AddressSanitizer: those with unsafe code or file formats.
const SANITIZED: [&str; 3] = ["nestar-kernels", "nestar-snapshot", "nestar-deck"];
/// Option to run AddressSanitizer instead of the campaigns.
const SANITIZE: &str = "--sanitize";

/// Option to run Miri instead of the campaigns.
const INTERPRET: &str = "--miri";

/// Runs the stress tests; options are `--minutes N`, `--seed S`, `--only CAMPAIGN`, `--case N`, or `--sanitize`, or `--miri`.
pub fn torture(root: &Path, arguments: &[String]) -> Outcome {
    let has = |option: &str| arguments.iter().any(|word| word == option);
    if has(SANITIZE) {
        return sanitize(root);
    }
    if has(INTERPRET) {
        return interpret(root);
    }
    let build = [
        "build",
        "--release",
        "-p",
        "nestar-cli",
        "-p",
        "nestar-tests",
        "--bins",
    ];
    match execute(cargo(root, &build)) {
        Outcome::Passed => {}
        other => return other,
    }
    let folder = target_directory(root).join("release");
    let mut command = Command::new(folder.join("torture"));
    command
        .arg("--program")
        .arg(folder.join("nestar"))
        .args(arguments);
    execute(command)
}

/// Runs one campaign of the stress tests; options are those of `torture`.
pub fn campaign(root: &Path, name: &str, arguments: &[String]) -> Outcome {
    let only = ["--only", name].map(String::from);
    torture(root, &[&only, arguments].concat())
}

/// Runs the unit tests under AddressSanitizer.
fn sanitize(root: &Path) -> Outcome {
    let options = ["test", "--release", "--target", "x86_64-unknown-linux-gnu"];
    let flags = "-Zsanitizer=address -Ctarget-cpu=x86-64-v3";
    let Some(mut command) = nightly(root, &["--version"], "sanitized", &options) else {
        return Outcome::Skipped("AddressSanitizer needs a nightly toolchain".into());
    };
    for package in SANITIZED {
        command.args(["-p", package]);
    }
    command.env("RUSTFLAGS", flags);
    execute(command)
}

/// Runs the tests of raw pointers in the mesh kernels under Miri.
fn interpret(root: &Path) -> Outcome {
    let options = ["miri", "test", "-p", "nestar-kernels", "--lib"];
    let Some(mut command) = nightly(root, &["miri", "--version"], "miri", &options) else {
        return Outcome::Skipped("Miri needs a nightly toolchain with the component miri".into());
    };
    // make functions of the platform deterministic
    command.env(
        "MIRIFLAGS",
        "-Zmiri-disable-isolation -Zmiri-deterministic-floats",
    );
    command.args(["--", "mesh::"]);
    execute(command)
}

/// Returns the cargo command of the nightly toolchain with target folder `folder`, or `None` if the command `probe` fails.
fn nightly(root: &Path, probe: &[&str], folder: &str, options: &[&str]) -> Option<Command> {
    let cargo = |options: &[&str]| {
        let mut command = Command::new("cargo");
        command
            .current_dir(root)
            .arg("+nightly")
            .args(options)
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    let found = cargo(probe).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = cargo(options);
    command
        .arg("--target-dir")
        .arg(target_directory(root).join(folder));
    Some(command)
}
