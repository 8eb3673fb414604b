//! Reads columns of numbers from text files.

use crate::error::nearest;
use crate::error::{DeckError, Fault, SourceSpan, SourceText};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Columns of numbers from a text file with one row per line.
///
/// Cells are separated by commas or semicolons if a line has any, otherwise by blanks; they may be quoted. `#` begins a
/// comment. A first row without numbers names the columns. Fortran exponents such as `1D-3` are accepted.
///
/// ```
/// use nestar_deck::TableFile;
///
/// let table = TableFile::parse("rates.csv", "energy, rate # K, erg cm^3 / s\n1e4, 1e-23\n1e5, 3e-22\n")?;
/// assert_eq!(table.column("rate")?, [1e-23, 3e-22]);
/// assert_eq!(table.ascending("energy")?, [1e4, 1e5]);
///
/// let error = TableFile::parse("rates.csv", "energy, rate\n1e4, 1e-23\n1e5, none\n").unwrap_err();
/// let expected = "\
/// rates.csv:3:6: expected a number, found \"none\"
///  3 | 1e5, none
///    |      ^^^^";
/// assert_eq!(error.to_string(), expected);
/// # Ok::<(), nestar_deck::DeckError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableFile {
    source: Arc<SourceText>,
    names: Vec<String>,
    /// Row by row.
    values: Vec<f64>,
    /// Position of each value in the file.
    spans: Vec<Range<usize>>,
}

impl TableFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or see [`TableFile::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DeckError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| DeckError::new(&name, format!("cannot be read: {e}")))?;
        // spreadsheets may write a byte order mark
        Self::parse(&name, text.trim_start_matches('\u{feff}'))
    }

    /// Parses a text; messages refer to it by `name`.
    ///
    /// # Errors
    /// A cell is not a finite number, a row differs in length from the first, or the file has no numbers.
    pub fn parse(name: &str, text: &str) -> Result<Self, DeckError> {
        let (name, text) = (name.to_string(), text.to_string());
        let source = Arc::new(SourceText {
            name,
            text,
            is_file: true,
        });
        let mut file = Self {
            source: source.clone(),
            names: Vec::new(),
            values: Vec::new(),
            spans: Vec::new(),
        };
        let mut faults = Vec::new();
        let mut start = 0;
        for line in source.text.split('\n') {
            let cells = cells(line, start);
            start += line.len() + 1;
            if !cells.is_empty() {
                file.row(cells, &mut faults);
            }
        }
        if faults.is_empty() && file.values.is_empty() {
            faults.push(Fault::of(&source.name, "the file has no numbers"));
        }
        DeckError::check(faults)?;
        Ok(file)
    }

    /// Reads one row; the first row may name the columns.
    fn row(&mut self, cells: Vec<Range<usize>>, faults: &mut Vec<Fault>) {
        let source = self.source.clone();
        let text = |cell: &Range<usize>| source.text[cell.clone()].to_string();
        let number = |cell: &Range<usize>| number(&source.text[cell.clone()]);
        if self.names.is_empty() {
            let named = cells.iter().all(|cell| number(cell).is_none());
            self.names = match named {
                true => cells.iter().map(text).collect(),
                false => (1..=cells.len()).map(|n| n.to_string()).collect(),
            };
            if named {
                for (n, cell) in cells.into_iter().enumerate() {
                    if self.names[..n].contains(&self.names[n]) {
                        let why = format!("two columns have the name {:?}", self.names[n]);
                        faults.push(self.fault(cell, why));
                    }
                }
                return;
            }
        }
        let count = self.names.len();
        if cells.len() != count {
            let whole = cells[0].start..cells[cells.len() - 1].end;
            let why = format!(
                "expected {count} numbers as in the first row, found {}",
                cells.len()
            );
            faults.push(self.fault(whole, why));
        }
        for cell in cells {
            match number(&cell) {
                Some(value) if value.is_finite() => {
                    self.values.push(value);
                    self.spans.push(cell);
                }
                _ => {
                    let why = format!("expected a number, found {:?}", text(&cell));
                    faults.push(self.fault(cell, why));
                }
            }
        }
    }

    fn fault(&self, span: Range<usize>, why: impl Into<String>) -> Fault {
        let source = self.source.clone();
        Fault::at(&SourceSpan { source, span }, why)
    }

    /// Returns the names of the columns; `1`, `2`, … if the file has none.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the numbers of a column.
    ///
    /// # Errors
    /// There is no such column.
    pub fn column(&self, name: &str) -> Result<Vec<f64>, DeckError> {
        let at = self.position(name)?;
        let column = self.values.iter().skip(at).step_by(self.names.len());
        Ok(column.copied().collect())
    }

    /// Returns the numbers of a column, which must be strictly ascending.
    ///
    /// # Errors
    /// There is no such column, or its numbers do not ascend.
    pub fn ascending(&self, name: &str) -> Result<Vec<f64>, DeckError> {
        let column = self.column(name)?;
        match column.windows(2).position(|pair| pair[1] <= pair[0]) {
            None => Ok(column),
            Some(n) => {
                let why = format!(
                    "\"{name}\" must ascend from row to row, found {:?} after {:?}",
                    column[n + 1],
                    column[n]
                );
                Err(self.error_at(name, n + 1, why))
            }
        }
    }

    /// Returns an error at a column and row (counted from 0); it names only the file if there is no such number.
    #[must_use]
    pub fn error_at(&self, name: &str, row: usize, why: impl Into<String>) -> DeckError {
        let at = self.position(name).ok();
        match at.and_then(|at| self.spans.get(at + row * self.names.len())) {
            Some(span) => self.fault(span.clone(), why).into(),
            None => DeckError::new(&self.source.name, why),
        }
    }

    fn position(&self, name: &str) -> Result<usize, DeckError> {
        let found = self.names.iter().position(|known| known == name);
        found.ok_or_else(|| {
            let guess = nearest(name, self.names.iter().map(String::as_str));
            let guess =
                guess.map_or_else(String::new, |guess| format!("; did you mean \"{guess}\"?"));
            let known = self.names.join(", ");
            let why = format!("no column \"{name}\"{guess} (columns: {known})");
            DeckError::new(&self.source.name, why)
        })
    }
}

/// Parses the number in a cell; Fortran writes double precision exponents with a D.
fn number(cell: &str) -> Option<f64> {
    let plain = cell.parse().ok();
    plain.or_else(|| cell.replace(['d', 'D'], "e").parse().ok())
}

/// Returns the byte ranges of the cells of a line that begins at `start`, without quotation marks.
fn cells(line: &str, start: usize) -> Vec<Range<usize>> {
    let line = line.split('#').next().unwrap_or_default();
    let location = |cell: &str| {
        let cell = cell.trim();
        let quoted = cell
            .strip_prefix('"')
            .and_then(|cell| cell.strip_suffix('"'));
        let cell = quoted.unwrap_or(cell);
        let from = start + (cell.as_ptr() as usize - line.as_ptr() as usize);
        from..from + cell.len()
    };
    let mut cells: Vec<Range<usize>> = match line.contains([',', ';']) {
        true => line.split([',', ';']).map(location).collect(),
        false => line.split_whitespace().map(location).collect(),
    };
    // empty cells at the end are dropped
    let filled = cells.iter().rposition(|cell| !cell.is_empty());
    cells.truncate(filled.map_or(0, |last| last + 1));
    cells
}

#[cfg(test)]
mod tests {
    use super::TableFile;

    #[test]
    fn names_with_blanks_and_quotes_and_empty_cells_are_understood() {
        let table =
            TableFile::parse("t", "\"x\", y [kpc];\"age\"\n1,2, 3,\n,,\n4 ,5,\"6\"\n").unwrap();
        assert_eq!(table.names(), ["x", "y [kpc]", "age"]);
        assert_eq!(table.column("y [kpc]").unwrap(), [2.0, 5.0]);
        assert_eq!(table.column("age").unwrap(), [3.0, 6.0]);
        let error = TableFile::parse("t", "x,y,z\n1,,3\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("t:2:3: expected a number, found \"\""),
            "{error}"
        );
        let blanks = TableFile::parse("t", "x y\n1\t2\n 3  4 \n").unwrap();
        assert_eq!(blanks.column("y").unwrap(), [2.0, 4.0]);
    }

    #[test]
    fn exponents_behind_a_d_are_those_of_fortran() {
        let table = TableFile::parse("t", "  1D-1  1.5d+03\n -.25D2 4\n").unwrap();
        assert_eq!(table.names(), ["1", "2"]);
        assert_eq!(table.column("1").unwrap(), [0.1, -25.0]);
        assert_eq!(table.column("2").unwrap(), [1500.0, 4.0]);
        for wrong in ["1D", "D3", "1D2D3", "1.0-101", "add"] {
            let error = TableFile::parse("t", &format!("x y\n1 {wrong}\n")).unwrap_err();
            let told = format!("t:2:3: expected a number, found \"{wrong}\"");
            assert!(error.to_string().contains(&told), "{error}");
        }
    }
}
