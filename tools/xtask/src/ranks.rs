//! MPI for the tests of ranks: PyPI's MPICH, or the system's where `MPICC` names its compiler.
use crate::python;
use crate::{Outcome, cargo, execute, target_directory};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that tells the tests how to start ranks.
const LAUNCHER: &str = "NESTAR_MPIEXEC";
/// An MPI, and the library by which its header is read when the program is built.
const PACKAGES: &str = "mpich==5.0.2\nlibclang==18.1.1\n";

/// Environment variables for building and running with MPI.
type Variables = Vec<(&'static str, OsString)>;

/// Builds the program with MPI and runs the tests of ranks; skipped where no MPI can be had.
pub fn test(root: &Path, arguments: &[String]) -> Outcome {
    // the same packages as the other tests, so that what they have in common is built once
    let tests = [
        "test",
        "--release",
        "--workspace",
        "--features",
        "nestar-cli/mpi",
    ];
    with_mpi(root, &[&tests[..], &["--test", "mpi"]].concat(), arguments)
}

/// Lints the code that only builds with MPI; skipped where no MPI can be had.
pub fn clippy(root: &Path) -> Outcome {
    let lints = [
        "clippy",
        "--release",
        "--workspace",
        "--features",
        "nestar-cli/mpi",
    ];
    let targets = ["--lib", "--bins", "--test", "mpi", "--", "-D", "warnings"];
    with_mpi(root, &[&lints[..], &targets[..]].concat(), &[])
}

fn with_mpi(root: &Path, command: &[&str], arguments: &[String]) -> Outcome {
    let variables = match prepare(root) {
        Ok(variables) => variables,
        Err(why) => return Outcome::Skipped(format!("no MPI: {why}")),
    };
    let mut command = cargo(root, command);
    command.args(arguments).envs(variables);
    execute(command)
}

/// Makes `target/mpi` unless it is there or `MPICC` names an MPI of the user's.
fn prepare(root: &Path) -> Result<Variables, String> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = target_directory(root).join("mpi");
    python::environment(&folder, PACKAGES)?;
    let mut variables = Vec::new();
    if given("LIBCLANG_PATH").is_none() {
        variables.push(("LIBCLANG_PATH", libclang(&folder)?.into()));
        variables.push(("BINDGEN_EXTRA_CLANG_ARGS", headers()));
    }
    if given("MPICC").is_none() {
        let path = [folder.join("lib").into_os_string()];
        let path = path.into_iter().chain(given("LD_LIBRARY_PATH"));
        let path: Vec<OsString> = path.collect();
        variables.push(("MPICC", folder.join("bin/mpicc").into()));
        variables.push((LAUNCHER, folder.join("bin/mpiexec").into()));
        variables.push(("LD_LIBRARY_PATH", path.join(OsStr::new(":"))));
    }
    Ok(variables)
}

/// Returns the folder in which the package has the library.
fn libclang(folder: &Path) -> Result<PathBuf, String> {
    let versions = std::fs::read_dir(folder.join("lib"));
    let mut versions = versions.map_err(|e| format!("{}: {e}", folder.display()))?;
    versions
        .find_map(|entry| {
            let native = entry.ok()?.path().join("site-packages/clang/native");
            native.is_dir().then_some(native)
        })
        .ok_or_else(|| format!("no libclang in {}", folder.display()))
}

/// The C compiler's own headers: the package has none.
fn headers() -> OsString {
    let told = Command::new("cc").arg("-print-file-name=include").output();
    let folder = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    format!("-I{}", folder.unwrap_or_default()).into()
}
