//! Python environment of the tests, with zarr, xarray, yt, the package `nestar` and NVRTC.
use crate::target_directory;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the path of the interpreter for the tests.
pub const VARIABLE: &str = "NESTAR_PYTHON";
const REQUIREMENTS: &str = "tools/python/requirements.txt";
/// The package `nestar`.
const PACKAGE: &str = "tools/python";
/// Compiler from CUDA to PTX; needs no GPU.
const NVRTC: &str = "nvidia-cuda-nvrtc==13.0.*";
/// File with the list of packages, written last to mark a complete environment.
const STAMP: &str = "nestar-packages.txt";

/// Creates `target/python` unless it exists with the same packages, and returns its interpreter. If `NESTAR_PYTHON` is set,
/// returns that interpreter.
pub fn prepare(root: &Path) -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        let given = PathBuf::from(given);
        let missing = || format!("{VARIABLE}: {} is not a file", given.display());
        return given.is_file().then(|| given.clone()).ok_or_else(missing);
    }
    let requirements = root.join(REQUIREMENTS);
    let text = std::fs::read_to_string(&requirements);
    let mut packages = packages(&text.map_err(|e| format!("{}: {e}", requirements.display()))?);
    // its entry points, such as the frontend of yt; the modules stay where they are
    packages += &format!("--editable={}\n", root.join(PACKAGE).display());
    environment(&target_directory(root).join("python"), &packages)
}

/// Creates a Python environment unless it exists with the same packages (one per line); returns its interpreter.
pub fn environment(folder: &Path, packages: &str) -> Result<PathBuf, String> {
    let interpreter = folder.join("bin/python");
    let stamp = folder.join(STAMP);
    if interpreter.exists() && std::fs::read_to_string(&stamp).is_ok_and(|s| s == packages) {
        return Ok(interpreter);
    }
    eprintln!("preparing {} (once)", folder.display());
    create(folder)?;
    install(&interpreter, packages)?;
    std::fs::write(&stamp, packages).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(interpreter)
}

/// Returns the packages of a requirements file and NVRTC, one per line.
fn packages(requirements: &str) -> String {
    let named = requirements
        .lines()
        .map(|l| l.split('#').next().unwrap_or_default().trim())
        .filter(|l| !l.is_empty());
    named.chain([NVRTC]).map(|l| format!("{l}\n")).collect()
}

fn create(folder: &Path) -> Result<(), String> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(folder);
    quiet(venv).map_err(|e| {
        format!("no Python environment ({e}); install python3 and python3-venv, or set {VARIABLE}")
    })
}

fn install(interpreter: &Path, packages: &str) -> Result<(), String> {
    let mut pip = Command::new(interpreter);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--only-binary=:all:",
    ]);
    pip.args(packages.lines());
    quiet(pip).map_err(|e| format!("cannot install Python packages from PyPI: {e}"))
}

/// Runs a program silently; the error is its last line of output.
fn quiet(mut command: Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let last = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("no output");
    Err(format!("{program}: {}", last.trim()))
}

#[cfg(test)]
mod tests {
    use super::{NVRTC, packages};

    #[test]
    fn requirements_lose_their_comments_and_gain_nvrtc() {
        assert_eq!(
            packages("# pinned\nzarr==3.1.6  # v3\n\nnumpy\n"),
            format!("zarr==3.1.6\nnumpy\n{NVRTC}\n")
        );
    }
}
