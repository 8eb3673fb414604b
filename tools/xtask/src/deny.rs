//! Check of the dependencies by cargo-deny: licences, banned and duplicate crates, and sources, see `deny.toml`.
use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time limit of the installation.
const LONGEST_INSTALL: Duration = Duration::from_mins(8);

/// Runs cargo-deny, and installs it first if it is missing. Advisories are not checked, as their database is not on
/// crates.io.
pub fn deny(root: &Path) -> Outcome {
    if !is_installed(root) {
        println!("cargo-deny is not installed; installing it takes minutes");
        if !installs(root) {
            let why = "cargo-deny is not installed and the installation failed; try `cargo install --locked cargo-deny`";
            return Outcome::Skipped(why.into());
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

/// Installs cargo-deny within the time limit; returns `true` on success.
fn installs(root: &Path) -> bool {
    // a debug build compiles faster
    let install = ["install", "--quiet", "--locked", "--debug", "cargo-deny"];
    let Ok(mut child) = cargo(root, &install).spawn() else {
        return false;
    };
    let end = Instant::now() + LONGEST_INSTALL;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(200)),
            _ => break,
        }
    }
    // it may have ended in the meantime
    let _ = child.kill();
    let _ = child.wait();
    false
}

fn is_installed(root: &Path) -> bool {
    let mut command = cargo(root, &["deny", "--version"]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
