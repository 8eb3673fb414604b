//! Files and directories. Errors name the path; data is synced before it is renamed to its final name.

use crate::{Result, SnapshotError};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the directory of snapshots in a run's directory.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// Returns the name of the complete snapshot `number`.
pub(crate) fn complete_name(number: u32) -> String {
    format!("{number:06}.zarr")
}

/// Returns the path of the complete snapshot `number` of the run in `directory`.
#[must_use]
pub fn complete_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(SNAPSHOTS).join(complete_name(number))
}

/// Creates a directory in an existing one.
pub(crate) fn create_directory(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(|error| SnapshotError::io("create the directory", path, &error))
}

/// Writes a new file without syncing it; returns its length.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<u64> {
    File::create(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|error| SnapshotError::io("write", path, &error))?;
    Ok(bytes.len() as u64)
}

/// Returns the entries of a directory.
pub(crate) fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
    };
    list().map_err(|error| SnapshotError::io("list", path, &error))
}

/// Syncs a file or a directory.
pub(crate) fn sync(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| SnapshotError::io("sync", path, &error))
}

/// Returns the bytes of all files below `path`.
pub(crate) fn tree_bytes(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in entries(path)? {
        bytes += if entry.is_dir() {
            tree_bytes(&entry)?
        } else {
            let metadata = fs::metadata(&entry);
            metadata
                .map_err(|error| SnapshotError::io("read", &entry, &error))?
                .len()
        };
    }
    Ok(bytes)
}

/// Removes a directory tree if it exists.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(SnapshotError::io("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Renames a file; the error names the target.
fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .map_err(|error| SnapshotError::io("rename the finished snapshot to", to, &error))
}

/// Returns the temporary name of a snapshot while its replacement takes its name.
fn replaced_path(complete: &Path) -> PathBuf {
    let name = complete.file_name().unwrap_or_default().to_string_lossy();
    complete.with_file_name(format!(".{name}.replaced"))
}

/// Renames the synced directory `partial` to its final name and syncs the parent.
pub(crate) fn publish(partial: &Path, complete: &Path, replace: bool) -> Result<()> {
    let parent = complete.parent().unwrap_or(Path::new("."));
    let old = replaced_path(complete);
    let replaces = complete.exists();
    if replaces {
        if !replace {
            return Err(SnapshotError::Exists {
                path: complete.to_path_buf(),
            });
        }
        remove_tree(&old)?;
        rename(complete, &old)?;
    }
    rename(partial, complete)?;
    sync(parent)?;
    if replaces {
        remove_tree(&old)?;
    }
    Ok(())
}

/// Removes leftovers of a killed run in `directory/snapshots`: partial snapshots, and replaced ones. A
/// replaced snapshot is renamed back if its replacement is not complete. Call it before the first snapshot of
/// a run, while no other run writes there. Returns the number of removals.
///
/// # Errors
/// [`SnapshotError::Io`].
pub fn clean_partials(directory: &Path) -> Result<usize> {
    let snapshots = directory.join(SNAPSHOTS);
    if !snapshots.is_dir() {
        return Ok(0);
    }
    let mut removed = 0;
    for path in entries(&snapshots)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(hidden) = name.strip_prefix('.') else {
            continue;
        };
        if let Some(complete) = hidden.strip_suffix(".replaced") {
            let complete = snapshots.join(complete);
            if !complete.exists() {
                rename(&path, &complete)?;
                continue;
            }
        } else if !hidden.ends_with(".zarr.partial") {
            continue;
        }
        remove_tree(&path)?;
        removed += 1;
    }
    Ok(removed)
}

/// Opens an existing file.
pub(crate) fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => SnapshotError::corrupt(path, "the file is missing"),
        _ => SnapshotError::io("open", path, &error),
    })
}

/// Reads `length` bytes of a file from `offset`.
pub(crate) fn read_at(file: &File, path: &Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let size = file
        .metadata()
        .map_err(|error| SnapshotError::io("read", path, &error))?
        .len();
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(SnapshotError::corrupt(
            path,
            format!("it is truncated to {size} bytes"),
        ));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset)
        .map_err(|error| SnapshotError::io("read", path, &error))?;
    Ok(bytes)
}
