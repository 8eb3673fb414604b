//! Passes the git commit and the compiler flags to the program.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../systems/nestar/build.rs");
    let commit = commit().unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=NESTAR_COMMIT={commit}");
    // for the examples
    println!("cargo::rustc-env=PROGRAM_COMMIT={commit}");
    println!("cargo::rustc-env=NESTAR_FLAGS={}", flags());
}

/// Sources of the program, relative to the root of the checkout.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "kernels",
    "engine",
    "systems",
    "scenarios",
    "tools/nestar/src",
    "tools/plot/src",
];

/// Returns the commit of the checkout and notes uncommitted changes. `None` if this is not a checkout of Nestar: the
/// sources may be part of another repository.
fn commit() -> Option<String> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        // a missing file would make every build run this script again
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|p| Path::new(p).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed=../../{source}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let status = [
        "--no-optional-locks",
        "-C",
        "../..",
        "status",
        "--porcelain",
        "--",
        ":!*.md",
        ":!scenarios/*.toml",
    ];
    let changes = git(&[&status[..], &SOURCES].concat())?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit} with changes")
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

fn flags() -> String {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let mut flags = vec![
        variable("TARGET"),
        format!("opt-level={}", variable("OPT_LEVEL")),
    ];
    flags.extend(
        variable("CARGO_ENCODED_RUSTFLAGS")
            .split('\x1f')
            .filter(|flag| !flag.is_empty())
            .map(String::from),
    );
    flags.join(" ")
}
