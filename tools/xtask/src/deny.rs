//! Licences, duplicates and sources of dependencies, checked by cargo-deny. Its installation takes minutes, so that a record of what was
//! checked spares it until the dependencies change.

use crate::installation::{missing, provide};
use crate::{Outcome, cargo, execute};
use std::path::Path;

/// Where the hash of the files that were checked last is recorded.
const RECORD: &str = "tools/xtask/dependencies.txt";
/// Files that determine the result.
const FILES: [&str; 2] = ["Cargo.lock", "deny.toml"];

/// Runs cargo-deny, and installs it first if it is missing, unless the dependencies and the rules are those of the last check.
/// Advisories are not checked, as their database is not on crates.io.
pub fn run(root: &Path) -> Outcome {
    let hash = match hash(root) {
        Ok(hash) => hash,
        Err(why) => return Outcome::Failed(why),
    };
    let record = root.join(RECORD);
    if std::fs::read_to_string(&record).is_ok_and(|checked| checked.trim() == hash) {
        println!("the dependencies are those of the last check ({RECORD})");
        return Outcome::Passed;
    }
    if !provide(root, "cargo-deny", cargo(root, &["deny", "--version"])) {
        return Outcome::Skipped(missing("cargo-deny"));
    }
    let check = [
        "deny",
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ];
    let outcome = execute(cargo(root, &check));
    if matches!(outcome, Outcome::Passed) {
        match std::fs::write(&record, format!("{hash}\n")) {
            Ok(()) => println!("the dependencies have changed: commit {RECORD}"),
            Err(why) => return Outcome::Failed(format!("{RECORD}: {why}")),
        }
    }
    outcome
}

/// Returns the FNV-1a hash of the files (G. Fowler, L. C. Noll & K.-P. Vo, 1991) as hexadecimal digits.
fn hash(root: &Path) -> Result<String, String> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for name in FILES {
        let bytes = std::fs::read(root.join(name)).map_err(|why| format!("{name}: {why}"))?;
        for byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}
