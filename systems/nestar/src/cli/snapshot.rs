//! `nestar info` and `nestar digest`, and arguments shared by commands on snapshots.

use super::{CommandError, INVALID_INPUT, print};
use clap::Args;
use nestar::snapshot::{self, Snapshot, SummaryUnit};
use nestar_deck::UnitSystem;
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

/// Argument for the units of numbers.
#[derive(Args)]
pub struct UnitsArgs {
    /// Units of numbers, if the run has units: astronomical (kpc, Msun, Myr, km/s), cgs or code
    #[arg(long, value_name = "SYSTEM", default_value = "astronomical")]
    pub units: UnitSystem,
}

/// Arguments of `nestar info`.
#[derive(Args)]
pub struct InfoArgs {
    #[command(flatten)]
    snapshot: SnapshotArgs,
    #[command(flatten)]
    units: UnitsArgs,
}

/// Describes a snapshot.
pub fn info(arguments: &InfoArgs) -> Result<(), CommandError> {
    let snapshot = open(&arguments.snapshot.snapshot)?;
    let code = nestar_plot::code_units(&snapshot);
    let unit = |units: &str, typical: f64| {
        let shown = code.shown(units, arguments.units.units, typical);
        SummaryUnit {
            name: shown.name,
            factor: shown.factor,
        }
    };
    print(&snapshot::summary_in(&snapshot, &unit)?)
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
