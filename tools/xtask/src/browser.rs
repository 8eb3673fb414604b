//! Browser of the tests of the page of `nestar view`: a Chromium without windows.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the browser for the tests.
pub const VARIABLE: &str = "NESTAR_BROWSER";
/// Names of programs that can be it.
const NAMES: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];
/// Package of Debian with the first of them.
const PACKAGE: &str = "chromium-headless-shell";

/// Returns the browser that `NESTAR_BROWSER` names, or one that is installed; installs one by apt where we may.
pub fn prepare() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        let missing = || format!("{VARIABLE}: {} is not a file", given.display());
        return given.is_file().then(|| given.clone()).ok_or_else(missing);
    }
    if let Some(found) = installed() {
        return Ok(found);
    }
    eprintln!("installing {PACKAGE} (once)");
    let advice = format!("install {PACKAGE}, or name a Chromium by {VARIABLE}");
    apt().map_err(|why| format!("no browser ({why}); {advice}"))?;
    installed().ok_or_else(|| format!("{PACKAGE} has no program; {advice}"))
}

/// Returns the first of the programs in the search path.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let of = |name: &&str| {
        let files = folders.iter().map(|folder| folder.join(name));
        files.into_iter().find(|file| file.is_file())
    };
    NAMES.iter().find_map(of)
}

/// Installs the package, which needs root.
fn apt() -> Result<(), String> {
    if !is_root() {
        return Err("only root can install one".into());
    }
    // the lists of packages may be missing or old
    let commands: [&[&str]; 2] = [
        &["update", "-qq"],
        &["install", "-y", "-qq", "--no-install-recommends", PACKAGE],
    ];
    for arguments in commands {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = command
            .status()
            .map_err(|error| format!("apt-get: {error}"))?;
        if !status.success() {
            return Err(format!("apt-get {}: {status}", arguments[0]));
        }
    }
    Ok(())
}

/// Returns `true` if the files of this process belong to root.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| own.uid() == 0)
}
