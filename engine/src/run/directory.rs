//! The run's directory: exclusive use, visibility on all ranks, and earlier files.

use super::files;
use super::lock::DirectoryLock;
use super::provenance::Roster;
use super::sink::snapshot_error;
use crate::comm::Ranks;
use crate::step::Error;
use crate::step::agreement::{agreed, on_first_rank};
use nestar_snapshot as store;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Prefix of the files by which ranks check that they see the same directory.
const SIGN: &str = ".ranks-";
/// Time limit for a file to become visible on another host.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Locks the directory on the first rank and checks that all ranks see it. Collective.
///
/// # Errors
/// The directory cannot be created, another run uses it, or a rank does not see it.
pub(super) fn take(
    ranks: &Ranks,
    roster: &Roster,
    directory: &Path,
) -> Result<Option<DirectoryLock>, Error> {
    let lock = on_first_rank(ranks, || {
        files::require_own(directory).and_then(|()| DirectoryLock::take(directory))
    })?;
    if ranks.is_single() {
        return Ok(lock);
    }
    let sign = on_first_rank(ranks, || put_sign(directory))?;
    let mut name = sign.clone().unwrap_or_default().into_bytes();
    ranks.communicator().broadcast(0, &mut name)?;
    let sees = sees(&directory.join(String::from_utf8_lossy(&name).as_ref()));
    let seen = match sees {
        true => Ok(()),
        false => Err(unseen(ranks.rank(), roster, directory)),
    };
    let seen = agreed(ranks, seen);
    if let Some(sign) = sign {
        // a remaining file is harmless, and the next run removes it
        let _ = std::fs::remove_file(directory.join(sign));
    }
    seen.map(|()| lock)
}

/// Creates a uniquely named file and removes those of killed runs; returns its name.
fn put_sign(directory: &Path) -> Result<String, Error> {
    let entries = std::fs::read_dir(directory).map_err(Error::file("cannot list", directory))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("cannot list", directory))?;
        if entry.file_name().to_string_lossy().starts_with(SIGN) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    let name = format!("{SIGN}{}-{now}", std::process::id());
    let path = directory.join(&name);
    std::fs::write(&path, "").map_err(Error::file("cannot write", &path))?;
    Ok(name)
}

/// Waits until a file is visible; returns `false` after the time limit.
fn sees(path: &Path) -> bool {
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

fn unseen(rank: usize, roster: &Roster, directory: &Path) -> Error {
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
pub fn set_aside(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let latest = store::latest(directory).map_err(snapshot_error)?;
    if latest.is_none() && !directory.join("diagnostics.csv").exists() {
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
    ["run.toml", "provenance.json", "run.log"].contains(&name)
        || captures.any(|n| n.is_empty() || numbered(n))
        || series.is_some_and(|n| n.is_empty() || numbered(n))
        || (name == "snapshots" && has_snapshots)
}
