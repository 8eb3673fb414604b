//! What the workspace depends on: licences, banned and doubled crates, and where crates come from, by `deny.toml`.
use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;
use std::process::Stdio;

/// Checks by cargo-deny, which is installed where it is missing and crates.io can be reached. Advisories are left out: their
/// database is not on crates.io.
pub fn deny(root: &Path) -> Outcome {
    if !is_installed(root) {
        println!("cargo-deny is not installed: installs it, which takes minutes");
        // a debug build compiles in a fraction of the time
        let install = cargo(
            root,
            &["install", "--quiet", "--locked", "--debug", "cargo-deny"],
        );
        if !matches!(execute(install), Outcome::Passed) {
            return Outcome::Skipped("cargo-deny is not installed and cannot be".into());
        }
    }
    execute(cargo(
        root,
        &[
            "deny",
            "--all-features",
            "check",
            "bans",
            "licenses",
            "sources",
        ],
    ))
}

fn is_installed(root: &Path) -> bool {
    let mut command = cargo(root, &["deny", "--version"]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
