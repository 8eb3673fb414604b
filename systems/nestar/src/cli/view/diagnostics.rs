//! The table `diagnostics.csv` of a run, read as it grows.

use nestar_deck::{CodeUnits, UnitSystem};
use nestar_plot::TableColumn;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Rows that are kept; of a longer table, every second, fourth, ... row.
const MOST_ROWS: usize = 16384;
/// Bytes that are read at a time.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes before the end of what was read, by which a table that was replaced is recognised.
const TRACE: usize = 64;

/// Rows of the table so far.
#[derive(Default)]
pub struct Diagnostics {
    path: PathBuf,
    /// Number of the file in its file system.
    inode: u64,
    /// Bytes that were read.
    read: u64,
    /// The last of them.
    trace: Vec<u8>,
    /// Beginning of a row that is not complete.
    begun: Vec<u8>,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Values by column; NaN for what is no number.
    values: Vec<Vec<f64>>,
    /// The latest row, as text.
    pub latest: Vec<String>,
    /// Number of rows.
    pub rows: u64,
    /// Each row whose number is a multiple of this is kept.
    pub stride: u64,
}

impl Diagnostics {
    /// Creates the table of a file that is not read yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            stride: 1,
            ..Self::default()
        }
    }

    /// Reads the rows that were added since the last call; a file that was replaced or cut is read again. No file is an empty table.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn update(&mut self) -> Result<(), String> {
        let fault = |error| format!("cannot read diagnostics.csv: {error}");
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                *self = Self::new(std::mem::take(&mut self.path));
                return Ok(());
            }
            Err(error) => return Err(fault(error)),
        };
        let now = file.metadata().map_err(fault)?;
        let is_other = now.ino() != self.inode || now.len() < self.read;
        if is_other || !self.continues(&mut file).map_err(fault)? {
            *self = Self::new(std::mem::take(&mut self.path));
            self.inode = now.ino();
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.read)).map_err(fault)?;
        file.take(MOST_BYTES)
            .read_to_end(&mut bytes)
            .map_err(fault)?;
        self.add(&bytes);
        Ok(())
    }

    /// Returns `true` if the file still has what was read last.
    fn continues(&self, file: &mut File) -> std::io::Result<bool> {
        let mut found = vec![0; self.trace.len()];
        file.seek(SeekFrom::Start(self.read - found.len() as u64))?;
        file.read_exact(&mut found)?;
        Ok(found == self.trace)
    }

    /// Adds what was read.
    fn add(&mut self, bytes: &[u8]) {
        self.read += bytes.len() as u64;
        self.trace.extend_from_slice(bytes);
        self.trace.drain(..self.trace.len().saturating_sub(TRACE));
        self.begun.extend_from_slice(bytes);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        for line in String::from_utf8_lossy(&whole).lines() {
            self.add_line(line);
        }
    }

    /// Adds a line; comments, and rows with another number of columns, are left out.
    fn add_line(&mut self, line: &str) {
        if line.starts_with('#') || line.trim().is_empty() {
            return;
        }
        let cells = line.split(',').map(str::trim);
        if self.names.is_empty() {
            self.names = cells.map(String::from).collect();
            self.values = vec![Vec::new(); self.names.len()];
            return;
        }
        let cells: Vec<&str> = cells.collect();
        if cells.len() != self.names.len() {
            return;
        }
        if self.rows.is_multiple_of(self.stride) {
            for (column, cell) in self.values.iter_mut().zip(&cells) {
                column.push(cell.parse().unwrap_or(f64::NAN));
            }
        }
        self.rows += 1;
        self.latest = cells.into_iter().map(String::from).collect();
        if self.values[0].len() > MOST_ROWS {
            self.stride *= 2;
            for column in &mut self.values {
                *column = column.iter().copied().step_by(2).collect();
            }
        }
    }

    /// Returns the values of a column, with that of the latest row; `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<Vec<f64>> {
        let place = self.names.iter().position(|other| other == name)?;
        let mut values = self.values[place].clone();
        // the latest row is not among those that are kept
        if self.rows > 0 && !(self.rows - 1).is_multiple_of(self.stride) {
            values.push(self.latest[place].parse().unwrap_or(f64::NAN));
        }
        Some(values)
    }

    /// Returns `true` if a column has numbers.
    pub fn is_numeric(&self, place: usize) -> bool {
        let latest = self.latest.get(place);
        latest.is_none_or(|text| text.parse::<f64>().is_ok())
    }
}

/// Units of the columns of a run.
pub struct ColumnUnits {
    code: CodeUnits,
    /// Units of the columns that the run has written, in the notation of snapshots.
    written: BTreeMap<String, String>,
    /// End of the run, which decides about the unit of time.
    end: f64,
}

impl ColumnUnits {
    /// Reads the units that a run has written.
    pub fn new(directory: &Path, code: CodeUnits, end: f64) -> Self {
        let written = std::fs::read_to_string(directory.join("diagnostics.units.csv"));
        Self {
            code,
            written: written.map_or_else(|_| BTreeMap::new(), |text| written_units(&text)),
            end,
        }
    }

    /// Returns the unit of a column in the notation of snapshots, if it is known.
    fn of(&self, name: &str) -> Option<&str> {
        let units = self.written.get(name)?;
        (!units.is_empty()).then_some(units)
    }

    /// Returns a column in units for display.
    pub fn shown(&self, name: &str, values: Vec<f64>) -> TableColumn {
        let label = readable_name(name);
        let of_machine = [
            ("seconds_", "s"),
            ("memory_bytes", "bytes"),
            ("cell_updates_per_second", "1/s"),
        ];
        let machine = of_machine.iter().find(|(head, _)| name.starts_with(head));
        if let Some((_, unit)) = machine {
            return TableColumn {
                label,
                unit: (*unit).to_string(),
                values,
            };
        }
        let units = self.of(name);
        let typical = (units == Some("time")).then_some(self.end);
        in_units(&self.code, units, label, values, typical)
    }
}

/// Returns numbers of the unit `units`, in the notation of snapshots, in a unit for display. It fits to the number `typical`, or to the
/// largest one.
pub fn in_units(
    code: &CodeUnits,
    units: Option<&str>,
    label: String,
    mut values: Vec<f64>,
    typical: Option<f64>,
) -> TableColumn {
    let unit = units.map_or_else(String::new, |units| {
        let finite = values.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0, |all: f64, value| all.max(value.abs()));
        let shown = code.shown(units, UnitSystem::default(), typical.unwrap_or(largest));
        values.iter_mut().for_each(|value| *value *= shown.factor);
        match &*shown.name {
            "time" | "length" | "mass" | "1" => String::new(),
            name => name.to_string(),
        }
    });
    TableColumn {
        label,
        unit,
        values,
    }
}

/// Reads the file `diagnostics.units.csv`: the columns `column` and `code_units`.
fn written_units(text: &str) -> BTreeMap<String, String> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let place = |name: &str| header.iter().position(|other| *other == name);
    let (Some(column), Some(units)) = (place("column"), place("code_units")) else {
        return BTreeMap::new();
    };
    let pairs = lines.filter_map(|line| Some((*line.get(column)?, *line.get(units)?)));
    pairs
        .map(|(name, units)| (name.to_string(), units.to_string()))
        .collect()
}

/// Returns the name of a column as words, such as `Total energy`.
pub fn readable_name(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Diagnostics, MOST_ROWS, written_units};
    use std::path::PathBuf;

    #[test]
    fn a_table_is_followed_cut_and_replaced() {
        let name = format!("nestar-view-table-{}.csv", std::process::id());
        let path = std::env::temp_dir().join(name);
        let write = |text: &str| std::fs::write(&path, text).expect("a file");
        let mut table = Diagnostics::new(path.clone());
        table.update().expect("no file");
        assert_eq!((table.rows, table.names.len()), (0, 0));
        write("# units\nstep,time,limiter\n0,0e0,initial\n1,5e-1,cou");
        table.update().expect("a table");
        assert_eq!((table.rows, &*table.latest[2]), (1, "initial"));
        write("# units\nstep,time,limiter\n0,0e0,initial\n1,5e-1,courant\n2,");
        table.update().expect("a table");
        assert_eq!(table.column("time"), Some(vec![0.0, 0.5]));
        assert!(!table.is_numeric(2) && table.is_numeric(1));
        assert_eq!(table.column("none"), None);
        // a run that was continued from an earlier step
        write("# units\nstep,time,limiter\n0,0e0,initial\n1,7e-1,courant\n2,9e-1,courant\n");
        table.update().expect("a table");
        assert_eq!(table.column("time"), Some(vec![0.0, 0.7, 0.9]));
        std::fs::remove_file(&path).expect("the file");
        table.update().expect("no file");
        assert_eq!(table.rows, 0);
    }

    #[test]
    fn units_are_those_that_the_run_has_written() {
        let units =
            written_units("column,units,factor,code_units\ntime,Myr,9e2,time\nimbalance,,,\n");
        assert_eq!((&*units["time"], &*units["imbalance"]), ("time", ""));
        assert!(written_units("a,b\n1,2").is_empty() && written_units("").is_empty());
    }

    #[test]
    fn a_long_table_is_thinned_and_keeps_its_latest_row() {
        let mut table = Diagnostics::new(PathBuf::new());
        let rows = 3 * MOST_ROWS as u64 + 2;
        let text: String = (0..rows).map(|n| format!("{n}\n")).collect();
        table.add(format!("step\n{text}").as_bytes());
        let steps = table.column("step").expect("the column");
        assert_eq!((table.rows, table.stride), (rows, 4));
        assert!(steps.len() <= MOST_ROWS + 1 && steps.len() > MOST_ROWS / 2);
        assert_eq!((steps[0], steps[1]), (0.0, 4.0));
        assert_eq!(steps.last(), Some(&(rows as f64 - 1.0)));
    }
}
