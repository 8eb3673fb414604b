//! Files of what stands around cells that end runs.

use super::files;
use crate::comm::Ranks;
use crate::data::{CellCase, FaultBox};
use crate::step::agreement::on_first_rank;
use crate::step::{Capture, Engine, Error, Replays, StepVerdict};
use std::path::{Path, PathBuf};

/// Name of the file in a run's directory; earlier ones stay under other names.
const NAME: &str = "capture.toml";
/// The same of what a function was given in a cell; where there are such, with the next number.
const CELL: &str = "unfinished-cell.toml";

/// The error that ends a run, which names the file of what was captured, if anything was. All ranks call this.
pub(super) fn keep(sim: &mut Engine, directory: &Path, error: Error) -> Error {
    // of several ranks the one that has the cell knows of it, and the others of its words
    let case = sim.world.resource::<FaultBox>().take_case();
    let case = case.filter(|case| sim.world.resource::<Replays>().contains(case));
    if let (Some(case), Error::Fault(why)) = (case, &error) {
        return Error::Fault(keep_cell(sim, directory, case, why));
    }
    let Error::Unphysical {
        level,
        time,
        retries,
        why,
    } = error
    else {
        return error;
    };
    let captured = sim.world.resource_mut::<StepVerdict>().capture.take();
    let note = captured.map_or(String::new(), |text| {
        let ranks = sim.world.resource::<Ranks>();
        match on_first_rank(ranks, || write(sim, directory, &text)) {
            Ok(_) => format!(
                "\nthe patch before the step is kept in {}: the command `replay` repeats its step",
                directory.join(NAME).display()
            ),
            Err(error) => format!("\nthe patch before the step cannot be kept: {error}"),
        }
    });
    Error::Unphysical {
        level,
        time,
        retries,
        why: why + &note,
    }
}

/// Writes what a function was given in a cell; the words that end the run.
fn keep_cell(sim: &Engine, directory: &Path, case: CellCase, why: &str) -> String {
    let folder = sim
        .deck
        .directory()
        .map(|folder| folder.display().to_string());
    let case = CellCase {
        why: why.into(),
        folder: folder.unwrap_or_default(),
        deck: sim.deck.resolved(),
        ..case
    };
    match files::write_free(&directory.join(CELL), &case.text()) {
        Ok(path) => format!(
            "{why}\nwhat the function was given is kept: the command `replay {}` calls it there again",
            path.display()
        ),
        Err(error) => format!("{why}\nwhat the function was given cannot be kept: {error}"),
    }
}

/// Writes a capture with the deck of the run.
fn write(sim: &Engine, directory: &Path, text: &str) -> Result<PathBuf, Error> {
    let path = directory.join(NAME);
    if path.exists() {
        files::put_aside(&path)?;
    }
    let unreadable = |e: toml::de::Error| Error::Setup(e.to_string());
    let capture: Capture = toml::from_str(text).map_err(unreadable)?;
    let capture = Capture {
        deck: sim.deck.resolved(),
        ..capture
    };
    files::write_whole(&path, &capture.text())?;
    Ok(path)
}
