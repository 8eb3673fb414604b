//! `nestar verify`: compares runs on two devices bitwise, and verifies checksums of snapshots.

use super::{CommandError, FAILED, INVALID_INPUT, print};
use crate::testing::Scratch;
use clap::Args;
use nestar::engine::run::{RunOptions, Silent};
use nestar::snapshot::{Snapshot, digest, latest};
use nestar::{App, Simulation};
use nestar_deck::Deck;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arguments of `nestar verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Decks to run; or snapshots (NNNNNN.zarr) and directories of runs, whose checksums are verified
    #[arg(required = true, value_name = "DECK_OR_STORE")]
    decks: Vec<PathBuf>,
    /// Set a value in all decks; may be repeated
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
    /// Two devices
    #[arg(long, value_delimiter = ',', default_value = "cpu,cuda")]
    devices: Vec<String>,
    /// Precisions
    #[arg(long, value_delimiter = ',', default_value = "single,double")]
    precisions: Vec<String>,
    /// Maximum number of root cells along an axis
    #[arg(long, default_value_t = 32)]
    cells: u32,
    /// Maximum number of refined levels
    #[arg(long, default_value_t = 2)]
    levels: usize,
    /// Number of root steps
    #[arg(long, default_value_t = 3)]
    steps: u64,
}

/// Runs a small version of each deck on both devices and compares the digests of the final snapshots.
pub fn verify(app: &App, arguments: &VerifyArgs) -> Result<(), CommandError> {
    let [first, second] = arguments.devices.as_slice() else {
        return Err(CommandError::new(
            INVALID_INPUT,
            "--devices needs two devices, such as cpu,cuda",
        ));
    };
    let (stores, decks): (Vec<_>, Vec<_>) = arguments.decks.iter().partition(|path| path.is_dir());
    for store in stores {
        verify_checksums(store)?;
    }
    let mut different = 0;
    for deck in &decks {
        for precision in &arguments.precisions {
            let one = final_digest(app, arguments, deck, precision, first)?;
            let other = final_digest(app, arguments, deck, precision, second)?;
            let verdict = if one == other {
                "equal".to_string()
            } else {
                different += 1;
                format!("DIFFERENT: {first} {one}, {second} {other}")
            };
            print(&format!(
                "{:<40} {precision:<7} {verdict}\n",
                deck.display().to_string()
            ))?;
        }
    }
    if different == 0 {
        return Ok(());
    }
    let message = format!(
        "{different} of {} runs differ between {first} and {second}; please report this with the decks",
        decks.len() * arguments.precisions.len()
    );
    Err(CommandError::new(FAILED, message))
}

/// Verifies the checksums of a snapshot or of all snapshots of a run.
fn verify_checksums(store: &Path) -> Result<(), CommandError> {
    let snapshots = match store.join("snapshots").is_dir() {
        true => nestar::snapshot::list_complete(store)?,
        false => vec![store.to_path_buf()],
    };
    for path in &snapshots {
        Snapshot::open(path)?.verify(|_| ())?;
        print(&format!("{:<40} intact\n", path.display().to_string()))?;
    }
    if snapshots.is_empty() {
        let message = format!(
            "the run in {} has no complete snapshot yet",
            store.display()
        );
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    Ok(())
}

/// Returns the digest of the final snapshot of a small run.
fn final_digest(
    app: &App,
    arguments: &VerifyArgs,
    deck: &Path,
    precision: &str,
    device: &str,
) -> Result<String, CommandError> {
    let directory = Scratch::new()?;
    let mut sim = small_simulation(app, arguments, deck, precision, device)?;
    sim.run_with(RunOptions {
        output: Some(directory.path().to_path_buf()),
        resume: false,
        stop: Arc::new(AtomicBool::new(false)),
        snapshot: Arc::default(),
        observer: Box::new(Silent),
        build: app.build_info(),
    })?;
    let none = || CommandError::new(FAILED, format!("{}: no final snapshot", deck.display()));
    let (_, path) = latest(directory.path())?.ok_or_else(none)?;
    Ok(digest(&Snapshot::open(&path)?)?)
}

/// Creates the simulation of a deck with few cells, levels and steps.
fn small_simulation(
    app: &App,
    arguments: &VerifyArgs,
    path: &Path,
    precision: &str,
    device: &str,
) -> Result<Simulation, CommandError> {
    let read = |changes: &[String]| -> Result<Simulation, CommandError> {
        let mut deck = Deck::read(path)?;
        for change in arguments.overrides.iter().chain(changes) {
            deck.set(change)?;
        }
        Ok(app.simulation(deck)?)
    };
    let mut full = read(&["run.device=cpu".into()])?;
    let settings = &full.engine().settings;
    let cells = settings.domain.cells.map(|n| n.min(arguments.cells));
    let max_level = settings.mesh.max_level.min(arguments.levels);
    read(&[
        format!("domain.cells={cells:?}"),
        format!("mesh.max_level={max_level}"),
        format!("time.max_steps={}", arguments.steps),
        "output.initial=false".into(),
        "output.final=true".into(),
        "output.interval=0.0".into(),
        "output.steps=0".into(),
        "output.wall_interval=0.0".into(),
        format!("run.precision={precision}"),
        format!("run.device={device}"),
    ])
}
