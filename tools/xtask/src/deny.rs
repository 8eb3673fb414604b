//! What the workspace depends on: licences, banned and doubled crates, and where crates come from, by `deny.toml`.
use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long an installation may take: the other checks wait for it.
const LONGEST_INSTALL: Duration = Duration::from_mins(8);

/// Checks by cargo-deny, which is installed where it is missing and crates.io can be reached. Advisories are left out: their
/// database is not on crates.io.
pub fn deny(root: &Path) -> Outcome {
    if !is_installed(root) {
        println!("cargo-deny is not installed: installs it, which takes minutes");
        if !installs(root) {
            let why = "cargo-deny is not installed and could not be; `cargo install --locked cargo-deny` may";
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

/// Installs cargo-deny, given time; whether it is there then.
fn installs(root: &Path) -> bool {
    // a debug build compiles in a fraction of the time
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
    // it may have ended meanwhile
    let _ = child.kill();
    let _ = child.wait();
    false
}

fn is_installed(root: &Path) -> bool {
    let mut command = cargo(root, &["deny", "--version"]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
