//! Lock of a run's directory against other processes.

use crate::step::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

/// Name of the lock file.
const FILE: &str = ".lock";
/// Name of the file that replaces the lock on file systems without locks.
const HELD: &str = ".running";

/// Owns a run's directory until it is dropped or the process ends.
pub struct DirectoryLock {
    _file: File,
    /// File that replaces the lock; removed at the end.
    held: Option<PathBuf>,
}

impl DirectoryLock {
    /// Creates the directory if necessary and locks it. On file systems without locks a file marks the
    /// directory as used; a killed process leaves it behind.
    ///
    /// # Errors
    /// The directory cannot be created, or another process uses it.
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
                    "another run is at work in {}; wait for its end, or choose another directory with --output",
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
            // the next run finds and reports a file that cannot be removed
            let _ = std::fs::remove_file(held);
        }
    }
}

/// Creates the file that replaces the lock, unless its previous owner may still run.
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
                "{holder} runs in this directory or was killed; the file system has no locks: if it does \
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

/// Returns `true` if the process named in a file may still run; unknown processes of other hosts may.
fn may_run(holder: &str, host: &str) -> bool {
    let process = holder.strip_prefix("process ");
    let named = process.and_then(|rest| rest.split_once(" on "));
    let gone = |process: &str| !Path::new("/proc").join(process).exists();
    !named.is_some_and(|(process, at)| at == host && gone(process))
}

/// Normalises a directory path: no trailing separator or `.` parts, so that a suffix can be appended.
///
/// # Errors
/// A path without a name, such as `/`.
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

    /// Locks as on a file system without locks.
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
        // killed on this host, on another host, and an empty file
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
