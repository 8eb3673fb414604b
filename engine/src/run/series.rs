//! Files of rows that grow with the root steps: appended and flushed by the first rank, continued after a restored step.

use super::files;
use crate::step::Error;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A file of comma-separated rows, of which the first column is the root step.
pub(super) struct Series {
    file: File,
    path: PathBuf,
    /// Where the file that was there is kept, if this one does not have all of its rows.
    pub kept: Option<PathBuf>,
}

impl Series {
    /// Creates the file `name` in `directory`, with the rows up to `step` of the file that is there; none without a step. A file
    /// that is damaged or has other columns is kept under another name.
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
        let (mut rows, mut kept) = (String::new(), None);
        if let Some(text) = read(&path)? {
            let earlier = Earlier::of(&text, header);
            if step.is_none() || earlier.is_damaged {
                kept = Some(files::put_aside(&path)?);
            }
            let resumed = earlier.rows.into_iter();
            let resumed = resumed.filter(|(row, _)| step.is_some_and(|step| *row <= step));
            rows.extend(resumed.map(|(_, line)| format!("{line}\n")));
        }
        files::write_whole(&path, &format!("{header}\n{rows}"))?;
        let file = files::append(&path)?;
        Ok(Self { file, path, kept })
    }

    /// Appends whole rows, with their ends of lines.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, rows: &str) -> Result<(), Error> {
        let written = self.file.write_all(rows.as_bytes());
        let written = written.and_then(|()| self.file.flush());
        written.map_err(Error::file("cannot write", &self.path))
    }

    /// What people are told where not all rows are continued.
    pub fn note(&self) -> Option<String> {
        let kept = self.kept.as_ref()?.display();
        let path = self.path.display();
        Some(format!(
            "note: not all rows of {path} can be continued; the file is kept as {kept}"
        ))
    }
}

/// The contents of a file; none where there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("cannot read", path)(error)),
    }
}

/// The file of an earlier run.
struct Earlier<'a> {
    /// Whole rows with their steps; none where the columns were others.
    rows: Vec<(u64, &'a str)>,
    /// Whether there is more in the file than these, and a last row that a kill cut short.
    is_damaged: bool,
}

impl<'a> Earlier<'a> {
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
