//! Files of what stands around cells that end runs.

use super::files;
use crate::ranks::Ranks;
use crate::step::agreement::by_first;
use crate::step::{Capture, Engine, Error, StepVerdict};
use std::path::{Path, PathBuf};

/// Name of the file in a run's directory; earlier ones stay under other names.
const NAME: &str = "capture.toml";

/// The error that ends a run, which names the file of what was captured, if anything was. All ranks call this.
pub(super) fn keep(sim: &mut Engine, directory: &Path, error: Error) -> Error {
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
        match by_first(ranks, || write(sim, directory, &text)) {
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
