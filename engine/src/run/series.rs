//! Files of rows that grow with the root steps: appended and flushed by the first rank, continued after a restored step.

use crate::step::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file of comma-separated rows, of which the first column is the root step.
pub(super) struct Series {
    file: File,
    path: PathBuf,
}

impl Series {
    /// Creates the file `name` in `directory`, with the rows up to `step` of the file that is there; none without a step.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(
        directory: &Path,
        name: &str,
        header: &str,
        step: Option<u64>,
    ) -> Result<Self, Error> {
        let path = directory.join(name);
        let kept = match step {
            Some(step) => kept_rows(&path, header, step)?,
            None => String::new(),
        };
        let beside = directory.join(format!(".{name}.partial"));
        std::fs::write(&beside, format!("{header}\n{kept}"))
            .map_err(Error::file("cannot write", &beside))?;
        std::fs::rename(&beside, &path).map_err(Error::file("cannot write", &path))?;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(Error::file("cannot write", &path))?;
        Ok(Self { file, path })
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
}

/// The rows of an earlier run up to `step`. If its columns were others, that file is kept under another name.
fn kept_rows(path: &Path, header: &str, step: u64) -> Result<String, Error> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(String::new());
    };
    let mut lines = text.lines();
    if lines.next() != Some(header) {
        let name = |n: u32| path.with_extension(format!("{n}.csv"));
        let free = (1..)
            .map(name)
            .find(|path| !path.exists())
            .unwrap_or_else(|| name(0));
        std::fs::rename(path, &free).map_err(Error::file("cannot rename", path))?;
        return Ok(String::new());
    }
    // a row that a kill cut short has fewer columns
    let columns = header.split(',').count();
    let whole = |line: &str| line.split(',').count() == columns;
    let number = |line: &str| {
        let first = line.split(',').next().filter(|_| whole(line));
        first.and_then(|n| n.parse::<u64>().ok())
    };
    let kept = lines.take_while(|line| number(line).is_some_and(|n| n <= step));
    Ok(kept.map(|line| format!("{line}\n")).collect())
}
