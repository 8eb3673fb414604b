//! The C++ compiler that builds libraries from kernel sources.

use crate::DeviceError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of the compiler: IEEE 754 arithmetic as written, without contraction. `-O2` compiles half as fast as `-O1`, and most
/// runs on this device are tests of few steps.
const OPTIONS: [&str; 9] = [
    "-x",
    "c++",
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-w",
    "-shared",
    "-fPIC",
];
/// The C++ compiler.
pub(super) struct Compiler {
    command: String,
    /// First line of its `--version` output.
    pub(super) version: String,
}

impl Compiler {
    /// Finds the compiler: `$NESTAR_CXX`, or else the first of `c++`, `g++` and `clang++`.
    pub(super) fn find() -> Result<Self, DeviceError> {
        let set = std::env::var("NESTAR_CXX").ok().filter(|c| !c.is_empty());
        let candidates = match &set {
            Some(command) => vec![command.as_str()],
            None => vec!["c++", "g++", "clang++"],
        };
        for command in &candidates {
            let Ok(output) = Command::new(command).arg("--version").output() else {
                continue;
            };
            let text = String::from_utf8_lossy(&output.stdout);
            if let Some(line) = text.lines().next().filter(|_| output.status.success()) {
                return Ok(Self {
                    command: (*command).to_string(),
                    version: line.to_string(),
                });
            }
        }
        Err(DeviceError::Missing(format!(
            "the emulated device needs a C++ compiler, and {} cannot be run; install g++ or set NESTAR_CXX",
            candidates.join(", ")
        )))
    }

    /// Returns all options for this processor.
    pub(super) fn options() -> Vec<&'static str> {
        let mut options = OPTIONS.to_vec();
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            options.push("-march=x86-64-v3");
        }
        options
    }

    /// Compiles a source file to a library and returns its path.
    pub(super) fn run(&self, name: &str, folder: &Path) -> Result<PathBuf, DeviceError> {
        let (source, library) = (format!("{name}.cpp"), format!("{name}.so"));
        let output = Command::new(&self.command)
            .args(Self::options())
            .args(["-o", &library, &source])
            .current_dir(folder)
            .output()
            .map_err(|e| DeviceError::failed(format!("cannot run {}", self.command), e))?;
        if output.status.success() {
            return Ok(folder.join(library));
        }
        Err(DeviceError::Compile {
            name: name.to_string(),
            log: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        })
    }
}
