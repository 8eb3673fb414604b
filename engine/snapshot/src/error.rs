//! Errors of the snapshot store, each with a path and advice.

use crate::FORMAT_VERSION;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the snapshot store; its text names the path and gives advice.
///
/// The type is `Clone` because one failure of the threads that write is reported to every later call.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotError {
    /// The operating system rejected an operation.
    Io {
        /// Attempted action as a verb phrase: `"write"`, `"create the directory"`.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The kind of the error, e.g. `StorageFull`.
        kind: io::ErrorKind,
        /// Text of the operating system.
        detail: String,
    },
    /// A complete snapshot with this number exists and must not be overwritten.
    Exists {
        /// The existing snapshot.
        path: PathBuf,
    },
    /// The path is not a snapshot: missing, a file, or a Zarr group that something else wrote.
    Foreign {
        /// The path that was to be opened.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The snapshot was written by a newer version of the program.
    Newer {
        /// The snapshot.
        path: PathBuf,
        /// Its `format_version`.
        found: u64,
    },
    /// The snapshot is damaged: a file is missing, truncated, or fails its checksum.
    Corrupt {
        /// The damaged file or array.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// The snapshot has no such level or array.
    Missing {
        /// The snapshot.
        path: PathBuf,
        /// Name of the missing item.
        wanted: String,
        /// Names of existing items.
        known: Vec<String>,
    },
    /// A Zarr array is not suitable as initial state on a uniform grid or as a column of a table.
    Uniform {
        /// The array or group.
        path: PathBuf,
        /// The reason and what is expected.
        detail: String,
    },
    /// The request is invalid: an error of the calling program.
    Request(String),
}

impl SnapshotError {
    /// Wraps an I/O error with the action and the path that it concerns.
    pub(crate) fn io(action: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_path_buf(),
            kind: error.kind(),
            detail: error.to_string(),
        }
    }

    /// Returns the file or directory concerned; empty for [`SnapshotError::Request`].
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Exists { path }
            | Self::Foreign { path, .. }
            | Self::Newer { path, .. }
            | Self::Corrupt { path, .. }
            | Self::Missing { path, .. }
            | Self::Uniform { path, .. } => path,
            Self::Request(_) => Path::new(""),
        }
    }

    /// Creates a [`SnapshotError::Corrupt`] for `path`.
    pub(crate) fn corrupt(path: &Path, detail: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_path_buf(),
            detail: detail.into(),
        }
    }

    /// Creates a [`SnapshotError::Foreign`] for `path`.
    pub(crate) fn foreign(path: &Path, detail: impl Into<String>) -> Self {
        Self::Foreign {
            path: path.to_path_buf(),
            detail: detail.into(),
        }
    }
}

/// Returns advice on an I/O error; empty if the system's text suffices.
fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; the disk is full: free some space or choose another output directory, \
             then resume from the last complete snapshot, which is untouched"
        }
        io::ErrorKind::FileTooLarge => {
            "; a limit forbids larger files: raise it (ulimit -f) or choose another output directory, \
             then resume from the last complete snapshot, which is untouched"
        }
        io::ErrorKind::NotFound => {
            "; the directory is missing: create it or choose another output directory"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; give yourself the permission or choose another directory"
        }
        _ => "",
    }
}

/// Lists the existing names.
fn list(known: &[String]) -> String {
    if known.is_empty() {
        "none".to_string()
    } else {
        known.join(", ")
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Self::Io {
                action,
                kind,
                detail,
                ..
            } => {
                write!(out, "cannot {action} {path}: {detail}{}", advice(*kind))
            }
            Self::Exists { .. } => write!(
                out,
                "{path} exists already and is not overwritten: resume the run, choose another output directory, or \
                 remove it"
            ),
            Self::Foreign { detail, .. } => {
                write!(out, "{path} is not a Nestar snapshot: {detail}")
            }
            Self::Newer { found, .. } => write!(
                out,
                "{path} has format version {found}, this program reads up to {FORMAT_VERSION}: use a newer program"
            ),
            Self::Corrupt { detail, .. } => {
                write!(out, "{path} is damaged: {detail}; use an earlier snapshot")
            }
            Self::Missing { wanted, known, .. } => {
                write!(out, "{path} has no {wanted}; it has {}", list(known))
            }
            Self::Uniform { detail, .. } => {
                write!(out, "cannot read the Zarr arrays of {path}: {detail}")
            }
            Self::Request(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// The result of an operation on snapshots.
pub type Result<T> = std::result::Result<T, SnapshotError>;
