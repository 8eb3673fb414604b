//! `nestar export`: starts the Python package, which writes files for other programs.

use super::snapshot::{SnapshotArgs, UnitsArgs, open};
use super::{CommandError, FAILED};
use clap::Args;
use nestar::report::print_message;
use nestar_deck::UnitSystem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the Python interpreter that has the package `nestar`.
const PYTHON: &str = "NESTAR_PYTHON";

/// Arguments of `nestar export`.
#[derive(Args)]
pub struct ExportArgs {
    #[command(flatten)]
    snapshot: SnapshotArgs,
    /// File: x.vtkhdf for all levels, x.h5 for a uniform grid or particles
    file: PathBuf,
    /// Write the uniform grid of a level
    #[arg(long, value_name = "LEVEL", conflicts_with = "particles")]
    uniform: Option<u8>,
    /// Write particles as a snapshot of Gadget
    #[arg(long)]
    particles: bool,
    /// Fields, or with --particles species; default: those stored
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    fields: Vec<String>,
    #[command(flatten)]
    units: UnitsArgs,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

impl ExportArgs {
    /// Returns the arguments of the interpreter for a snapshot.
    fn of_python(&self, snapshot: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["-m", "nestar", "export", "--units"]
            .map(OsString::from)
            .to_vec();
        arguments.push(match self.units.units {
            UnitSystem::Astronomical => "astronomical".into(),
            UnitSystem::Cgs => "cgs".into(),
            UnitSystem::Code => "code".into(),
        });
        if let Some(level) = self.uniform {
            arguments.push(format!("--uniform={level}").into());
        }
        if !self.fields.is_empty() {
            arguments.push(format!("--fields={}", self.fields.join(",")).into());
        }
        let flags = [("--particles", self.particles), ("--force", self.force)];
        let given = flags.into_iter().filter(|(_, given)| *given);
        arguments.extend(given.map(|(flag, _)| flag.into()));
        arguments.extend(["--".into(), snapshot.into(), (&self.file).into()]);
        arguments
    }
}

/// Returns the interpreter: the one that is named, the one beside the program (where pip has installed both), or `python3`.
fn interpreter() -> OsString {
    let given = std::env::var_os(PYTHON).filter(|name| !name.is_empty());
    let beside = || {
        let program = std::env::current_exe().ok()?;
        let python = program.with_file_name("python3");
        python.is_file().then(|| python.into_os_string())
    };
    given.or_else(beside).unwrap_or_else(|| "python3".into())
}

/// Exports a snapshot and returns the exit status of the Python package.
pub fn export(arguments: &ExportArgs) -> Result<u8, CommandError> {
    let snapshot = open(&arguments.snapshot.snapshot)?;
    let python = interpreter();
    let advice = format!("pip install 'nestar[hdf5]', or name a Python that has it by {PYTHON}");
    let output = Command::new(&python)
        .args(arguments.of_python(snapshot.path()))
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output);
    let shown = python.to_string_lossy();
    let output = output.map_err(|error| {
        let why = format!("cannot start the Python {shown} ({error}); {advice}");
        CommandError::new(FAILED, why)
    })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && text.contains("No module named") {
        let why = format!("{shown} lacks the Python package nestar or a part of it: {advice}");
        return Err(CommandError::new(FAILED, why));
    }
    if !text.is_empty() {
        print_message(text.trim_end());
    }
    let status = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(status.unwrap_or(FAILED))
}
