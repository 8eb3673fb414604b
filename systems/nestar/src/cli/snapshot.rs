//! `nestar info` and `nestar digest`, and arguments shared by commands on snapshots.

use super::{CommandError, INVALID_INPUT, print};
use clap::Args;
use nestar::snapshot::{self, Snapshot};
use std::path::{Path, PathBuf};

/// Argument for one snapshot.
#[derive(Args)]
pub struct SnapshotArgs {
    /// Snapshot (NNNNNN.zarr), or directory of a run for its latest snapshot
    pub snapshot: PathBuf,
}

/// Argument for several snapshots.
#[derive(Args)]
pub struct SnapshotsArgs {
    /// Snapshots (NNNNNN.zarr), or directories of runs for their latest snapshots
    #[arg(required = true, value_name = "SNAPSHOT")]
    snapshots: Vec<PathBuf>,
}

/// Opens a snapshot, or the latest one of a run.
pub fn open(path: &Path) -> Result<Snapshot, CommandError> {
    if !path.join("snapshots").is_dir() {
        return Ok(Snapshot::open(path)?);
    }
    match snapshot::latest(path)? {
        Some((_, latest)) => Ok(Snapshot::open(&latest)?),
        None => Err(CommandError::new(
            INVALID_INPUT,
            format!("the run in {} has no complete snapshot yet", path.display()),
        )),
    }
}

/// Describes a snapshot.
pub fn info(arguments: &SnapshotArgs) -> Result<(), CommandError> {
    print(&snapshot::summary(&open(&arguments.snapshot)?)?)
}

/// Prints one line per snapshot: its digest and its path.
pub fn digest(arguments: &SnapshotsArgs) -> Result<(), CommandError> {
    for path in &arguments.snapshots {
        let snapshot = open(path)?;
        let digest = snapshot::digest(&snapshot)?;
        print(&format!("{digest}  {}\n", snapshot.path().display()))?;
    }
    Ok(())
}
