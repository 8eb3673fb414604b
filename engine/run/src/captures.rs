//! Files that capture failed steps and cells for replay.

use crate::files;
use nestar_engine_comm::Ranks;
use nestar_engine_data::{CellCase, FaultBox};
use nestar_engine_step::agreement::on_first_rank;
use nestar_engine_step::{Capture, Engine, Error, Replays, StepVerdict};
use std::path::{Path, PathBuf};

/// Name of the capture file; earlier files are renamed.
const NAME: &str = "capture.toml";
/// Name of the file with the input of a cell function; numbered if it exists.
const CELL: &str = "unfinished-cell.toml";

/// Saves captures and adds the file name to the error that ends the run. Collective.
pub(super) fn save(sim: &mut Engine, directory: &Path, error: Error) -> Error {
    // the rank of the cell has the case, the others only its message
    let case = sim.world.resource::<FaultBox>().take_case();
    let case = case.filter(|case| sim.world.resource::<Replays>().contains(case));
    if let (Some(case), Error::Fault(why)) = (case, &error) {
        return Error::Fault(save_cell(sim, directory, case, why));
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
                "\nthe patch before the step is saved in {}: the command `replay` repeats the step",
                directory.join(NAME).display()
            ),
            Err(error) => format!("\nthe patch before the step cannot be saved: {error}"),
        }
    });
    Error::Unphysical {
        level,
        time,
        retries,
        why: why + &note,
    }
}

/// Saves the input of a cell function; returns the message that ends the run.
fn save_cell(sim: &Engine, directory: &Path, case: CellCase, why: &str) -> String {
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
    match files::write_numbered(&directory.join(CELL), &case.text()) {
        Ok(path) => format!(
            "{why}\nthe input of the function is saved: the command `replay {}` repeats the call",
            path.display()
        ),
        Err(error) => format!("{why}\nthe input of the function cannot be saved: {error}"),
    }
}

/// Writes a capture with the deck of the run.
fn write(sim: &Engine, directory: &Path, text: &str) -> Result<PathBuf, Error> {
    let path = directory.join(NAME);
    if path.exists() {
        files::rename_numbered(&path)?;
    }
    let unreadable = |e: toml::de::Error| Error::Setup(e.to_string());
    let capture: Capture = toml::from_str(text).map_err(unreadable)?;
    let capture = Capture {
        deck: sim.deck.resolved(),
        ..capture
    };
    files::write_atomically(&path, &capture.text())?;
    Ok(path)
}
