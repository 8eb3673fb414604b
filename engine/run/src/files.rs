//! Files of a run: written atomically, and only in the run's directory.

use nestar_engine_step::Error;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Names of the files that a run writes.
const WRITTEN: [&str; 10] = [
    ".lock",
    ".running",
    "run.toml",
    "provenance.json",
    "run.log",
    "diagnostics.csv",
    "observed.csv",
    "capture.toml",
    "unfinished-cell.toml",
    "snapshots",
];
/// First line of the deck in a run's directory.
const OWN_DECK: &str =
    "# The deck of the run in this directory, with all values; written by nestar.\n";

/// Rejects a directory with symbolic links in place of output files, or with a deck that no run has written.
///
/// # Errors
/// The file and advice.
pub(super) fn check_writable(directory: &Path) -> Result<(), Error> {
    for name in WRITTEN {
        let path = directory.join(name);
        if path.is_symlink() {
            return Err(Error::Setup(format!(
                "{} is a symbolic link, and a run writes only into its own directory: remove the link, or choose another \
                 directory with --output",
                path.display()
            )));
        }
    }
    let deck = directory.join("run.toml");
    if deck.exists() && !is_own_deck(&deck) {
        return Err(Error::Setup(format!(
            "{} was not written by a run and would be replaced: give it another name, or choose another directory with \
             --output",
            deck.display()
        )));
    }
    Ok(())
}

/// Returns `true` if a file is the deck written by a run.
#[must_use]
pub fn is_own_deck(path: &Path) -> bool {
    path.ends_with("run.toml")
        && std::fs::read(path).is_ok_and(|text| text.starts_with(OWN_DECK.as_bytes()))
}

/// Writes the resolved deck into the run's directory.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_deck(directory: &Path, resolved: &str) -> Result<(), Error> {
    write_atomically(
        &directory.join("run.toml"),
        &format!("{OWN_DECK}{resolved}"),
    )
}

/// Writes a text file atomically by renaming a temporary file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_atomically(path: &Path, text: &str) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::file("cannot replace", &beside)(error));
        }
        _ => {}
    }
    // create a new file, so that nothing is written through a link
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(Error::file("cannot write", &beside))?;
    std::fs::rename(&beside, path).map_err(Error::file("cannot write", path))
}

/// Opens a file for appending.
///
/// # Errors
/// The file does not exist or cannot be written.
pub(super) fn append(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new().append(true).open(path);
    file.map_err(Error::file("cannot write", path))
}

/// Writes a file under the first unused name of `NAME.EXTENSION`, `NAME.1.EXTENSION` and so on. Several ranks
/// may do so at once. Returns the name.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_numbered(path: &Path, text: &str) -> Result<std::path::PathBuf, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let (mut n, mut name) = (0, path.to_path_buf());
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                n += 1;
                name = path.with_extension(format!("{n}.{extension}"));
            }
            opened => {
                let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
                written.map_err(Error::file("cannot write", &name))?;
                return Ok(name);
            }
        }
    }
}

/// Renames the file `NAME.EXTENSION` to the first unused name of `NAME.1.EXTENSION` and so on; returns it.
///
/// # Errors
/// It cannot be renamed.
pub(super) fn rename_numbered(path: &Path) -> Result<std::path::PathBuf, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let name = |n: u32| path.with_extension(format!("{n}.{extension}"));
    let free = (1..)
        .map(name)
        .find(|path| !path.exists() && !path.is_symlink());
    let free = free.unwrap_or_else(|| name(0));
    std::fs::rename(path, &free).map_err(Error::file("cannot rename", path))?;
    Ok(free)
}
