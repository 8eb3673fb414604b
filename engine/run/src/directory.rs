//! The run's directory: lock, visibility on all ranks, and files of earlier runs.

use crate::files;
use crate::files::Roster;
use crate::snapshot::snapshot_error;
use nestar_engine_comm::Ranks;
use nestar_engine_step::Error;
use nestar_engine_step::error::{agreed, on_first_rank};
use nestar_snapshot as store;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Prefix of the files by which ranks check that they see the same directory.
const PROBE: &str = ".ranks-";
/// Time limit for a file to become visible on another host.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Locks the directory on the first rank and checks that all ranks see it. Collective.
///
/// # Errors
/// The directory cannot be created, another run uses it, or a rank does not see it.
pub(super) fn lock_for_run(
    ranks: &Ranks,
    roster: &Roster,
    directory: &Path,
) -> Result<Option<DirectoryLock>, Error> {
    let lock = on_first_rank(ranks, || {
        files::check_writable(directory).and_then(|()| DirectoryLock::take(directory))
    })?;
    let probe = on_first_rank(ranks, || write_probe(directory))?;
    let mut name = probe.clone().unwrap_or_default().into_bytes();
    ranks.communicator().broadcast(0, &mut name)?;
    let visible = becomes_visible(&directory.join(String::from_utf8_lossy(&name).as_ref()));
    let seen = match visible {
        true => Ok(()),
        false => Err(not_visible(ranks.rank(), roster, directory)),
    };
    let seen = agreed(ranks, seen);
    if let Some(probe) = probe {
        // a remaining file is harmless, and the next run removes it
        let _ = std::fs::remove_file(directory.join(probe));
    }
    seen.map(|()| lock)
}

/// Creates a uniquely named file and removes those of killed runs; returns its name.
fn write_probe(directory: &Path) -> Result<String, Error> {
    let entries = std::fs::read_dir(directory).map_err(Error::file("cannot list", directory))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("cannot list", directory))?;
        if entry.file_name().to_string_lossy().starts_with(PROBE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    let name = format!("{PROBE}{}-{now}", std::process::id());
    let path = directory.join(&name);
    std::fs::write(&path, "").map_err(Error::file("cannot write", &path))?;
    Ok(name)
}

/// Waits until a file is visible; returns `false` after the time limit.
fn becomes_visible(path: &Path) -> bool {
    let start = Instant::now();
    while !path.exists() {
        // a missing directory will not appear
        let there = path.parent().is_some_and(Path::is_dir);
        if !there || start.elapsed() > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

fn not_visible(rank: usize, roster: &Roster, directory: &Path) -> Error {
    let host = |rank: usize| roster.hosts.get(rank).map_or("", String::as_str);
    Error::Setup(format!(
        "rank {rank} on {} does not see the run's directory {} as rank 0 on {} does: it must lie on a file system that all \
         hosts share; choose one with --output",
        host(rank),
        directory.display(),
        host(0),
    ))
}

/// Moves the files of an earlier run into a new folder `earlier.N` of the directory; returns that folder.
///
/// # Errors
/// A file cannot be moved.
pub fn move_earlier_run(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let latest = store::latest(directory).map_err(snapshot_error)?;
    let written = ["diagnostics.csv", "views"].map(|name| directory.join(name).exists());
    if latest.is_none() && written == [false; 2] {
        return Ok(None);
    }
    let name = |n: u32| directory.join(format!("earlier.{n}"));
    let free = (1..).map(name).find(|path| !path.exists());
    let free = free.unwrap_or_else(|| name(0));
    std::fs::create_dir(&free).map_err(Error::file("cannot create the directory", &free))?;
    let entries = std::fs::read_dir(directory).map_err(Error::file("cannot list", directory))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("cannot list", directory))?;
        let file = entry.file_name();
        if file
            .to_str()
            .is_some_and(|name| belongs_to_a_run(name, latest.is_some()))
        {
            std::fs::rename(entry.path(), free.join(&file))
                .map_err(Error::file("cannot move aside", entry.path()))?;
        }
    }
    Ok(Some(free))
}

/// Returns `true` if a run writes a file of this name; `snapshots` counts only if it has snapshots.
fn belongs_to_a_run(name: &str, has_snapshots: bool) -> bool {
    let series = name.strip_suffix(".csv").and_then(|name| {
        let names = ["diagnostics", "observed"].into_iter();
        names.filter_map(|series| name.strip_prefix(series)).next()
    });
    let numbered = |n: &str| {
        n.strip_prefix('.')
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let mut captures = ["capture", "unfinished-cell"].iter().filter_map(|kind| {
        let n = name.strip_prefix(kind)?;
        n.strip_suffix(".toml")
    });
    let others = [
        "run.toml",
        "provenance.json",
        "run.log",
        "views",
        files::COLUMN_UNITS,
    ];
    others.contains(&name)
        || captures.any(|n| n.is_empty() || numbered(n))
        || series.is_some_and(|n| n.is_empty() || numbered(n))
        || (name == "snapshots" && has_snapshots)
}

/// Name of the lock file.
const FILE: &str = ".lock";
/// Name of the file that replaces the lock on file systems without locks.
const MARKER: &str = ".running";

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
            Err(TryLockError::Error(_)) => Some(create_marker(directory.join(MARKER))?),
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
fn create_marker(path: PathBuf) -> Result<PathBuf, Error> {
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
pub fn normalised(directory: &Path) -> Result<PathBuf, Error> {
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
    use super::{DirectoryLock, MARKER};
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
    fn a_marker_file_replaces_a_missing_lock() {
        let place = directory("none");
        let held = without_locks(&place).unwrap();
        let own = format!("process {}", std::process::id());
        let second = without_locks(&place).map(|_| ()).unwrap_err();
        assert!(second.contains(&own) && second.contains(MARKER), "{second}");
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
            std::fs::write(place.join(MARKER), text).unwrap();
            assert_eq!(without_locks(&place).is_ok(), taken, "{text}");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
}
