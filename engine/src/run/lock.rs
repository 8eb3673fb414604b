//! One process at a time per run directory.

use crate::step::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

/// Name of the lock file in the run's directory.
const FILE: &str = ".lock";
/// Name of the file that stands for the lock where the file system has none.
const HELD: &str = ".running";

/// A run's directory that belongs to this process until the value is dropped (or the process ends, however it does).
pub struct DirectoryLock {
    _file: File,
    /// Stands for the lock on a file system without; removed at the end.
    held: Option<PathBuf>,
}

impl DirectoryLock {
    /// Creates the directory if need be and takes it. On a file system without locks a file says so that the directory is in use;
    /// there a process that is killed leaves it behind.
    ///
    /// # Errors
    /// The directory cannot be made, or another process runs in it.
    pub fn take(directory: &Path) -> Result<Self, Error> {
        Self::take_by(directory, File::try_lock)
    }

    fn take_by(
        directory: &Path,
        lock: impl FnOnce(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Error> {
        std::fs::create_dir_all(directory).map_err(|e| {
            let path = directory.display();
            Error::Setup(format!(
                "cannot create the run's directory {path}: {e}; choose another one with --output"
            ))
        })?;
        let path = directory.join(FILE);
        let opened = OpenOptions::new().create(true).append(true).open(&path);
        let file = opened.map_err(Error::file("cannot write", &path))?;
        let held = match lock(&file) {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Setup(format!(
                    "another run is at work in {}; wait for it, or choose another directory with --output",
                    directory.display()
                )));
            }
            Err(TryLockError::Error(_)) => Some(hold(directory.join(HELD))?),
        };
        Ok(Self { _file: file, held })
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            // what cannot be removed is found, and told, by the next run
            let _ = std::fs::remove_file(held);
        }
    }
}

/// Makes the file that stands for a lock, unless the process that made it before may still run.
fn hold(path: PathBuf) -> Result<PathBuf, Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = format!("process {} on {}", std::process::id(), host.trim());
    let create = || OpenOptions::new().write(true).create_new(true).open(&path);
    let mut made = create();
    if let Err(error) = &made
        && error.kind() == ErrorKind::AlreadyExists
    {
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        if may_run(&holder, host.trim()) {
            return Err(Error::Setup(format!(
                "{holder} runs in this directory, or was killed there, and the file system has no locks to tell: if it does \
                 not run, remove {}; else choose another directory with --output",
                path.display()
            )));
        }
        let _ = std::fs::remove_file(&path);
        made = create();
    }
    let written = made.and_then(|mut file| file.write_all(own.as_bytes()));
    written.map_err(Error::file("cannot write", &path))?;
    Ok(path)
}

/// Whether the process that a file names may still run; of other hosts nobody can tell.
fn may_run(holder: &str, host: &str) -> bool {
    let process = holder.strip_prefix("process ");
    let named = process.and_then(|rest| rest.split_once(" on "));
    let gone = |process: &str| !Path::new("/proc").join(process).exists();
    !named.is_some_and(|(process, at)| at == host && gone(process))
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

#[cfg(test)]
mod tests {
    use super::{DirectoryLock, HELD};
    use std::fs::TryLockError;
    use std::path::{Path, PathBuf};

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("nestar-lock-{name}-{}", std::process::id()))
    }

    /// As on a file system without locks.
    fn without_locks(directory: &Path) -> Result<DirectoryLock, String> {
        let refused = || Err(TryLockError::Error(std::io::ErrorKind::Unsupported.into()));
        DirectoryLock::take_by(directory, |_| refused()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_directory_belongs_to_one_run() {
        let place = directory("one");
        let held = DirectoryLock::take(&place).unwrap();
        let second = DirectoryLock::take(&place).map(|_| ()).unwrap_err();
        assert!(second.to_string().contains("another run is at work"));
        drop(held);
        DirectoryLock::take(&place).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_file_stands_for_the_lock_where_there_is_none() {
        let place = directory("none");
        let held = without_locks(&place).unwrap();
        let own = format!("process {}", std::process::id());
        let second = without_locks(&place).map(|_| ()).unwrap_err();
        assert!(second.contains(&own) && second.contains(HELD), "{second}");
        drop(held);
        drop(without_locks(&place).unwrap());
        // killed on this host, on another, and a file that says nothing
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let dead = format!("process 4294967290 on {}", host.trim());
        for (text, taken) in [
            (&dead[..], true),
            ("process 1 on elsewhere", false),
            ("", false),
        ] {
            std::fs::write(place.join(HELD), text).unwrap();
            assert_eq!(without_locks(&place).is_ok(), taken, "{text}");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
}
