//! The Python wheel with the program and the package: built for glibc 2.28, and tried in an empty environment.
use crate::{Outcome, execute, python, target_directory};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Programs that build the wheel; zig links with an old glibc.
const TOOLS: &str = "maturin==1.16.0\nziglang==0.17.1\n";
/// Tag of systems with glibc 2.28 or later.
const PLATFORM: &str = "manylinux_2_28";
/// Longest time of the three commands from the wheel to a picture.
const LONGEST: Duration = Duration::from_secs(60);

/// Builds the wheel in `target/wheels` and follows the installation page with it.
pub fn wheel(root: &Path) -> Outcome {
    match built(root).and_then(|wheel| tried(root, &wheel)) {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Failed(why),
    }
}

fn built(root: &Path) -> Result<PathBuf, String> {
    let target = target_directory(root);
    let interpreter = python::environment(&target.join("wheel-tools"), TOOLS)?;
    let folder = target.join("wheels");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut maturin = Command::new(interpreter);
    let arguments = ["-m", "maturin", "build", "--release", "--zig", "--locked"];
    maturin.args(arguments);
    maturin.args(["--compatibility", PLATFORM, "--out"]);
    maturin.arg(&folder).current_dir(root);
    maturin.env("CARGO_TARGET_DIR", &target);
    succeed(maturin)?;
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheel = entries.filter_map(Result::ok).map(|entry| entry.path());
    let wheel = wheel.into_iter().find(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".whl") && name.contains(PLATFORM)
    });
    wheel.ok_or_else(|| format!("{} has no wheel for {PLATFORM}", folder.display()))
}

/// Installs the wheel into an empty environment and makes a picture, by three commands without Rust.
fn tried(root: &Path, wheel: &Path) -> Result<(), String> {
    let folder = target_directory(root).join("wheel-try");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let begin = Instant::now();
    let interpreter = python::environment(&folder, &format!("{}\n", wheel.display()))?;
    let installed = begin.elapsed();
    let programs = folder.join("bin");
    let program = |arguments: &[&str]| {
        let mut command = Command::new(programs.join("nestar"));
        command.args(arguments).current_dir(&folder);
        command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        succeed(command)
    };
    program(&["run", "sedov"])?;
    program(&["plot", "out/sedov", "-o", "sedov.png"])?;
    let taken = begin.elapsed();
    println!(
        "installed in {:.0} s, a picture after {:.0} s",
        installed.as_secs_f64(),
        taken.as_secs_f64()
    );
    if !folder.join("sedov.png").is_file() {
        return Err("the commands have made no picture".into());
    }
    let mut package = Command::new(interpreter);
    let text =
        "import nestar; print(nestar.open('out/sedov').snapshots[-1].slice('density').shape)";
    package.args(["-c", text]).current_dir(&folder);
    succeed(package)?;
    match taken <= LONGEST {
        true => Ok(()),
        false => Err(format!("a picture took {} s", taken.as_secs())),
    }
}

fn succeed(command: Command) -> Result<(), String> {
    match execute(command) {
        Outcome::Failed(why) => Err(why),
        _ => Ok(()),
    }
}
