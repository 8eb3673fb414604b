//! Passes the git commit to the program, for the provenance of its runs.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    // a missing file would make every build run this script again
    if Path::new(".git/logs/HEAD").exists() {
        println!("cargo::rerun-if-changed=.git/logs/HEAD");
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    if let Some(mut commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        if git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty()) {
            commit += " with changes";
        }
        println!("cargo::rustc-env=PROGRAM_COMMIT={commit}");
    }
}
