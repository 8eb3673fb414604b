//! Long campaigns: kills, injected faults, flipped bits, decks that no person would write; and the tests of code that is `unsafe`
//! or reads what others wrote, under the sanitizer of addresses, where the toolchain has it.
use crate::Outcome;
use crate::commands::{cargo, execute, target_directory};
use std::path::Path;
use std::process::Command;

/// Crates whose own tests run under the sanitizer: those of unsafe code and of files.
const SANITIZED: [&str; 3] = ["nestar-kernels", "nestar-snapshot", "nestar-deck"];
/// The option that asks for the sanitizer in place of the campaigns.
const SANITIZE: &str = "--sanitize";

/// `--minutes N`, `--seed S`, `--only CAMPAIGN`, `--case N`; or `--sanitize`.
pub fn torture(root: &Path, arguments: &[String]) -> Outcome {
    if arguments.iter().any(|word| word == SANITIZE) {
        return sanitize(root);
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
    let nightly = Command::new("rustc")
        .args(["+nightly", "--version"])
        .output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        return Outcome::Skipped("there is no nightly toolchain, which the sanitizer needs".into());
    }
    let mut command = Command::new("cargo");
    command
        .current_dir(root)
        .args([
            "+nightly",
            "test",
            "--release",
            "--target",
            "x86_64-unknown-linux-gnu",
        ])
        .arg("--target-dir")
        .arg(target_directory(root).join("sanitized"))
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTFLAGS", "-Zsanitizer=address -Ctarget-cpu=x86-64-v3");
    for package in SANITIZED {
        command.args(["-p", package]);
    }
    execute(command)
}
