//! Long campaigns: kills, injected faults, flipped bits, decks that no person would write; and the tests of code that is `unsafe`
//! or reads what others wrote, under the sanitizer of addresses or in Miri, where the toolchain has them.
use crate::Outcome;
use crate::commands::{cargo, execute, target_directory};
use std::path::Path;
use std::process::Command;

/// Crates whose own tests run under the sanitizer: those of unsafe code and of files.
const SANITIZED: [&str; 3] = ["nestar-kernels", "nestar-snapshot", "nestar-deck"];
/// The option that asks for the sanitizer in place of the campaigns.
const SANITIZE: &str = "--sanitize";

/// The option that asks for Miri.
const INTERPRET: &str = "--miri";

/// `--minutes N`, `--seed S`, `--only CAMPAIGN`, `--case N`; or `--sanitize`, or `--miri`.
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
        "nestar",
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

/// Tests with every access to memory checked.
fn sanitize(root: &Path) -> Outcome {
    let options = ["test", "--release", "--target", "x86_64-unknown-linux-gnu"];
    let flags = "-Zsanitizer=address -Ctarget-cpu=x86-64-v3";
    let Some(mut command) = nightly(root, &["--version"], "sanitized", &options) else {
        return Outcome::Skipped("there is no nightly toolchain, which the sanitizer needs".into());
    };
    for package in SANITIZED {
        command.args(["-p", package]);
    }
    command.env("RUSTFLAGS", flags);
    execute(command)
}

/// Tests of what the mesh kernels do by raw pointers, interpreted: every rule of the language is checked.
fn interpret(root: &Path) -> Outcome {
    let options = ["miri", "test", "-p", "nestar-kernels", "--lib"];
    let Some(mut command) = nightly(root, &["miri", "--version"], "miri", &options) else {
        return Outcome::Skipped("there is no nightly toolchain with Miri".into());
    };
    // functions of the platform give one result each time
    command.env(
        "MIRIFLAGS",
        "-Zmiri-disable-isolation -Zmiri-deterministic-floats",
    );
    command.args(["--", "mesh::"]);
    execute(command)
}

/// A command of cargo's in the nightly toolchain, if `probe` shows that this has what is needed; what it builds goes into `folder`.
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
