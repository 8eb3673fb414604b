//! Tables that grow by root steps: written by the first rank, continued at restarts.

use crate::files;
use nestar_engine_step::Error;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

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
                renamed = Some(files::rename_numbered(&path)?);
            }
            let resumed = earlier.rows.into_iter();
            let resumed = resumed.filter(|(row, _)| step.is_some_and(|step| *row <= step));
            rows.extend(resumed.map(|(_, line)| format!("{line}\n")));
        }
        files::write_atomically(&path, &format!("{header}\n{rows}"))?;
        let file = files::append(&path)?;
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
