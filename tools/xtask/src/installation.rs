//! Installation of the programs that steps run.

use crate::cargo;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of the installation.
const LONGEST_INSTALL: Duration = Duration::from_mins(8);

/// Returns the message about a program that is missing.
pub fn missing(program: &str) -> String {
    format!(
        "{program} is not installed and the installation failed; try `cargo install --locked {program}`"
    )
}

/// Installs a program within the time limit unless the command `version` succeeds; returns `true` if it is installed.
pub fn provide(root: &Path, program: &str, mut version: Command) -> bool {
    let status = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) {
        return true;
    }
    println!("{program} is not installed; installing it takes minutes");
    // a debug build compiles faster
    let install = ["install", "--quiet", "--locked", "--debug", program];
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
