//! `nestar info` and `nestar digest`, and what all commands on snapshots share.

use super::{Failure, WRONG, print};
use clap::Args;
use nestar::snapshot::{self, Snapshot};
use std::path::{Path, PathBuf};

/// A snapshot.
#[derive(Args)]
pub struct SnapshotArgs {
    /// A snapshot (NNNNNN.zarr), or the directory of a run, whose latest snapshot is taken
    pub snapshot: PathBuf,
}

/// Snapshots.
#[derive(Args)]
pub struct SnapshotsArgs {
    /// Snapshots (NNNNNN.zarr), or directories of runs, whose latest snapshots are taken
    #[arg(required = true, value_name = "SNAPSHOT")]
    snapshots: Vec<PathBuf>,
}

/// Opens a snapshot, or the latest one of a run.
pub fn open(path: &Path) -> Result<Snapshot, Failure> {
    if !path.join("snapshots").is_dir() {
        return Ok(Snapshot::open(path)?);
    }
    match snapshot::latest(path)? {
        Some((_, latest)) => Ok(Snapshot::open(&latest)?),
        None => Err(Failure::new(
            WRONG,
            format!("the run in {} has no complete snapshot yet", path.display()),
        )),
    }
}

/// Describes a snapshot.
pub fn info(arguments: &SnapshotArgs) -> Result<(), Failure> {
    print(&snapshot::summary(&open(&arguments.snapshot)?)?)
}

/// Prints one line per snapshot: its digest and its path.
pub fn digest(arguments: &SnapshotsArgs) -> Result<(), Failure> {
    for path in &arguments.snapshots {
        let snapshot = open(path)?;
        let digest = snapshot::digest(&snapshot)?;
        print(&format!("{digest}  {}\n", snapshot.path().display()))?;
    }
    Ok(())
}
