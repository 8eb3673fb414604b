//! Files of a run: written atomically and only in the run's directory, and tables that grow by root steps.

use nestar_engine_step::Error;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

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
pub(super) fn write_numbered(path: &Path, text: &str) -> Result<PathBuf, Error> {
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
pub(super) fn rename_numbered(path: &Path) -> Result<PathBuf, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let name = |n: u32| path.with_extension(format!("{n}.{extension}"));
    let free = (1..)
        .map(name)
        .find(|path| !path.exists() && !path.is_symlink());
    let free = free.unwrap_or_else(|| name(0));
    std::fs::rename(path, &free).map_err(Error::file("cannot rename", path))?;
    Ok(free)
}

/// A file of comma-separated rows whose first column is the root step.
pub(super) struct Series {
    file: File,
    path: PathBuf,
    /// New name of an earlier file whose rows are not all continued.
    pub renamed: Option<PathBuf>,
}

impl Series {
    /// Creates the file `name` in `directory`. With `step`, the rows of an existing file up to that step are
    /// kept. A damaged file, or one with other columns, is renamed.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(
        directory: &Path,
        name: &str,
        header: &str,
        step: Option<u64>,
    ) -> Result<Self, Error> {
        let path = directory.join(name);
        let (mut rows, mut renamed) = (String::new(), None);
        if let Some(text) = read(&path)? {
            let earlier = ExistingFile::of(&text, header);
            if step.is_none() || earlier.is_damaged {
                renamed = Some(rename_numbered(&path)?);
            }
            let resumed = earlier.rows.into_iter();
            let resumed = resumed.filter(|(row, _)| step.is_some_and(|step| *row <= step));
            rows.extend(resumed.map(|(_, line)| format!("{line}\n")));
        }
        write_atomically(&path, &format!("{header}\n{rows}"))?;
        let file = append(&path)?;
        Ok(Self {
            file,
            path,
            renamed,
        })
    }

    /// Appends complete rows and flushes them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, rows: &str) -> Result<(), Error> {
        let written = self.file.write_all(rows.as_bytes());
        let written = written.and_then(|()| self.file.flush());
        written.map_err(Error::file("cannot write", &self.path))
    }

    /// Returns a note if not all rows of an earlier file are continued.
    pub fn note(&self) -> Option<String> {
        let renamed = self.renamed.as_ref()?.display();
        let path = self.path.display();
        Some(format!(
            "note: not all rows of {path} can be continued; the file was renamed to {renamed}"
        ))
    }
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("cannot read", path)(error)),
    }
}

/// Contents of an existing file.
struct ExistingFile<'a> {
    /// Complete rows with their steps; empty if the columns differ.
    rows: Vec<(u64, &'a str)>,
    /// `true` if the file has other content, besides an incomplete last row.
    is_damaged: bool,
}

impl<'a> ExistingFile<'a> {
    fn of(text: &'a [u8], header: &str) -> Self {
        let columns = header.split(',').count();
        let row = |line: &'a [u8]| {
            let line = std::str::from_utf8(line).ok()?;
            let step = line.split(',').next()?.parse().ok()?;
            (line.split(',').count() == columns).then_some((step, line))
        };
        let (whole, _cut) = match text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => text.split_at(end),
            None => (&[][..], text),
        };
        let mut lines = whole.split(|byte| *byte == b'\n');
        if lines.next() != Some(header.as_bytes()) {
            return Self {
                rows: Vec::new(),
                is_damaged: true,
            };
        }
        let read: Vec<_> = lines.map(row).collect();
        Self {
            is_damaged: read.contains(&None),
            rows: read.into_iter().flatten().collect(),
        }
    }
}
