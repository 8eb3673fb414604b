//! One process at a time per run directory.

use crate::step::Error;
use std::fs::{File, TryLockError};
use std::path::{Component, Path, PathBuf};

/// Name of the lock file in the run's directory.
const FILE: &str = ".lock";

/// A run's directory that belongs to this process until the value is dropped (or the process ends, however it does).
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Creates the directory if need be and takes it.
    ///
    /// # Errors
    /// The directory cannot be made, or another process runs in it.
    pub fn take(directory: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(directory)
            .map_err(Error::file("cannot create the directory", directory))?;
        let path = directory.join(FILE);
        let file = File::create(&path).map_err(Error::file("cannot write", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Setup(format!(
                "another run is at work in {}; wait for it, or choose another directory with --output",
                directory.display()
            ))),
            // a file system without locks cannot tell: the run goes on
            Err(TryLockError::Error(_)) => Ok(Self { _file: file }),
        }
    }
}

/// The directory without a trailing separator or `.` parts, so that a name can be put beside it.
///
/// # Errors
/// A path without a name of its own, such as `.` or `..`.
pub fn named(directory: &Path) -> Result<PathBuf, Error> {
    let clean: PathBuf = directory
        .components()
        .filter(|c| *c != Component::CurDir)
        .collect();
    if clean.file_name().is_some() {
        return Ok(clean);
    }
    let whole = std::fs::canonicalize(directory)
        .map_err(Error::file("cannot find the directory", directory))?;
    match whole.file_name() {
        Some(_) => Ok(whole),
        None => Err(Error::Setup(format!(
            "a run cannot write into {}; name a directory of its own",
            whole.display()
        ))),
    }
}
