//! Reads columns of numbers from Parquet files. This is the only user of the `parquet` crate.

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use rayon::prelude::*;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

thread_local! {
    /// `true` while panics of this thread are caught silently.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and returns its result, or `None` if it panics. Nothing is printed. The panic hook is replaced
/// once by one that checks the thread; panics of other threads are printed as usual. `work` must not wait for
/// other tasks of a thread pool.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                print(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    done.ok()
}

/// First bytes of a Parquet file and of an encrypted one.
const MARKS: [[u8; 4]; 2] = [*b"PAR1", *b"PARE"];

/// Returns `true` if a file is a Parquet file by content or name.
pub(super) fn is_parquet(path: &Path) -> bool {
    let mut first = [0; 4];
    let marked = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    let named = path.extension().is_some_and(|name| name == "parquet");
    named || (marked.is_ok() && MARKS.contains(&first))
}

/// Parquet file whose metadata have been read.
pub(super) struct ParquetFile {
    path: PathBuf,
    /// Full names of the columns; nested columns have the names of their parents, separated by dots.
    names: Vec<String>,
    rows: usize,
}

impl ParquetFile {
    /// Opens a file and reads its metadata.
    ///
    /// # Errors
    /// The file cannot be read, or has no rows or columns.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        let reader = reader(&path)?;
        let meta = reader.metadata().file_metadata();
        let columns = meta.schema_descr().columns().iter();
        let names: Vec<String> = columns.map(|column| column.path().string()).collect();
        let rows = usize::try_from(meta.num_rows()).unwrap_or(0);
        match names.is_empty() || rows == 0 {
            true => Err(format!("{} has no numbers", path.display())),
            false => Ok(Self { path, names, rows }),
        }
    }

    /// Names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads columns. Integers above 2^53 are rounded.
    ///
    /// # Errors
    /// A column is not a plain column of numbers, a value is missing or not finite, or the file is damaged.
    pub(super) fn columns(&self, names: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        let columns = names.par_iter().map(|name| self.column_checked(name));
        // report the first error in the order of the columns
        columns.collect::<Vec<_>>().into_iter().collect()
    }

    /// Reads a column; the library may panic on damaged files.
    fn column_checked(&self, name: &str) -> Result<Vec<f64>, String> {
        let read = catch_panic(|| self.column(name));
        read.unwrap_or_else(|| {
            let path = self.path.display();
            Err(format!(
                "{path}: column {name:?} cannot be read: the file is damaged"
            ))
        })
    }

    fn column(&self, name: &str) -> Result<Vec<f64>, String> {
        let refuse = |why: String| format!("{}: column {name:?} {why}", self.path.display());
        let damaged = |error: ParquetError| refuse(message(&error));
        let at = self.names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| refuse("does not exist".into()))?;
        let reader = reader(&self.path)?;
        let descriptor = reader.metadata().file_metadata().schema_descr().column(at);
        let kind = NumberType::of(&descriptor).map_err(refuse)?;
        let mut values = Vec::new();
        let room = values.try_reserve_exact(self.rows);
        room.map_err(|error| refuse(format!("of {} rows: {error}", self.rows)))?;
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).map_err(damaged)?;
            let rows = values.len() + usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let chunk = group.get_column_reader(at).map_err(damaged)?;
            kind.append(chunk, &mut values, rows).map_err(refuse)?;
            if values.len() != rows {
                let why = "has another number of rows than its metadata: the file is damaged";
                return Err(refuse(why.into()));
            }
        }
        match values.len() == self.rows {
            true => Ok(values),
            false => Err(refuse(format!(
                "has {} rows of {}: the file is damaged",
                values.len(),
                self.rows
            ))),
        }
    }
}

/// Opens a file with the library.
fn reader(path: &Path) -> Result<SerializedFileReader<File>, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    // the library may panic on damaged files
    let read = catch_panic(|| SerializedFileReader::new(file));
    let read = read.ok_or_else(|| wrong(&"the file is damaged"))?;
    read.map_err(|error| wrong(&error))
}

/// Type of the numbers of a column.
struct NumberType {
    /// `true` for unsigned integers.
    unsigned: bool,
    /// `true` if values may be missing.
    optional: bool,
}

impl NumberType {
    /// Determines the type of a column.
    ///
    /// # Errors
    /// The values are not numbers, or a row has several.
    fn of(column: &ColumnDescriptor) -> Result<Self, String> {
        if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
            let why = "is part of a list or structure: write each component as a separate column";
            return Err(why.into());
        }
        let (converted, logical) = (column.converted_type(), column.logical_type_ref());
        let number = matches!(
            column.physical_type(),
            Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE
        );
        let unsigned = match (logical, converted) {
            (Some(LogicalType::Integer { is_signed, .. }), _) => Some(!is_signed),
            (Some(_), _) => None,
            (None, ConvertedType::NONE) => Some(false),
            (None, converted) => integers(converted),
        };
        match unsigned.filter(|_| number) {
            Some(unsigned) => Ok(Self {
                unsigned,
                optional: column.max_def_level() > 0,
            }),
            None => Err(format!(
                "has values of type {}: write numbers as float, double, int32 or int64, or do not use this column",
                type_name(column)
            )),
        }
    }

    /// Appends the values of a row group up to the total `rows`; at most one further value is read.
    fn append(
        &self,
        chunk: ColumnReader,
        values: &mut Vec<f64>,
        rows: usize,
    ) -> Result<(), String> {
        let unsigned = self.unsigned;
        match chunk {
            ColumnReader::FloatColumnReader(chunk) => self.read(chunk, f64::from, values, rows),
            ColumnReader::DoubleColumnReader(chunk) => {
                self.read(chunk, |value| value, values, rows)
            }
            ColumnReader::Int32ColumnReader(chunk) if unsigned => {
                self.read(chunk, |value| f64::from(value as u32), values, rows)
            }
            ColumnReader::Int32ColumnReader(chunk) => self.read(chunk, f64::from, values, rows),
            ColumnReader::Int64ColumnReader(chunk) if unsigned => {
                self.read(chunk, |value| value as u64 as f64, values, rows)
            }
            ColumnReader::Int64ColumnReader(chunk) => {
                self.read(chunk, |value| value as f64, values, rows)
            }
            _ => Err("has values of another type than its metadata: the file is damaged".into()),
        }
    }

    fn read<T: DataType>(
        &self,
        mut chunk: ColumnReaderImpl<T>,
        number: impl Fn(T::T) -> f64,
        values: &mut Vec<f64>,
        rows: usize,
    ) -> Result<(), String> {
        let (mut some, mut levels) = (Vec::new(), Vec::new());
        while values.len() <= rows {
            levels.clear();
            let most = BATCH.min(rows + 1 - values.len());
            let known = self.optional.then_some(&mut levels);
            let read = chunk.read_records(most, known, None, &mut some);
            let (count, ..) = read.map_err(|error| message(&error))?;
            if let Some(n) = levels.iter().position(|&level| level == 0) {
                let row = values.len() + n + 1;
                let why = "is missing (null): fill it, or remove the row from the file";
                return Err(format!("has a value in row {row} that {why}"));
            }
            if count == 0 {
                break;
            }
            for value in some.drain(..).map(&number) {
                values.push(value);
                if !value.is_finite() {
                    let row = values.len();
                    return Err(format!(
                        "has the value {value} in row {row}: expected a finite number"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Returns the message for an error of the library.
fn message(error: &ParquetError) -> String {
    let brotli = "feature at compile time: brotli";
    match error.to_string() {
        text if text.contains(brotli) => {
            "uses brotli compression: write it with snappy, zstd, gzip or LZ4".into()
        }
        text => format!("cannot be read: {text}"),
    }
}

/// Values read at a time.
const BATCH: usize = 1 << 14;

/// Returns `true` for unsigned integers by their converted type, or `None` for other types.
fn integers(converted: ConvertedType) -> Option<bool> {
    use ConvertedType as By;
    match converted {
        By::INT_8 | By::INT_16 | By::INT_32 | By::INT_64 => Some(false),
        By::UINT_8 | By::UINT_16 | By::UINT_32 | By::UINT_64 => Some(true),
        _ => None,
    }
}

/// Returns the name of the type of a column for messages.
fn type_name(column: &ColumnDescriptor) -> String {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(logical), _) => format!("{logical:?}"),
        (None, ConvertedType::NONE) => column.physical_type().to_string(),
        (None, converted) => converted.to_string(),
    }
}

/// Writes tables for tests.
#[cfg(test)]
pub(super) mod written {
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::ByteArray;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    /// Values of a column; `None` if missing.
    pub type ColumnValues = Vec<Option<f64>>;

    fn put(column: &mut ColumnWriter, values: &[Option<f64>]) {
        let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
        let some = values.iter().flatten().copied();
        macro_rules! write {
            ($to:expr, $as:expr) => {
                $to.write_batch(&some.map($as).collect::<Vec<_>>(), Some(&levels), None)
            };
        }
        let written = match column {
            ColumnWriter::FloatColumnWriter(to) => write!(to, |v| v as f32),
            ColumnWriter::DoubleColumnWriter(to) => write!(to, |v| v),
            ColumnWriter::Int32ColumnWriter(to) => write!(to, |v| v as i64 as i32),
            ColumnWriter::Int64ColumnWriter(to) => write!(to, |v| v as i64),
            ColumnWriter::ByteArrayColumnWriter(to) => {
                write!(to, |v| ByteArray::from(&*v.to_string()))
            }
            _ => panic!("no such type"),
        };
        written.unwrap();
    }

    /// Writes a table with columns such as `required double x`, in row groups of `group` rows.
    pub fn save(path: &Path, codec: &str, group: usize, table: &[(&str, ColumnValues)]) {
        let columns: String = table
            .iter()
            .map(|(column, _)| format!("{column}{}", if column.ends_with('}') { "" } else { ";" }))
            .collect();
        let schema = parse_message_type(&format!("message rows {{ {columns} }}")).unwrap();
        let how = WriterProperties::builder()
            .set_compression(codec.parse().unwrap())
            .build();
        let file = File::create(path).unwrap();
        let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(how)).unwrap();
        for first in (0..table[0].1.len()).step_by(group) {
            let mut rows = file.next_row_group().unwrap();
            for (_, values) in table {
                let mut column = rows.next_column().unwrap().unwrap();
                let last = values.len().min(first + group);
                put(column.untyped(), &values[first..last]);
                column.close().unwrap();
            }
            rows.close().unwrap();
        }
        file.close().unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::catch_panic;
    use std::process::Command;

    #[test]
    fn panics() {
        assert_eq!(catch_panic(|| 1), Some(1));
        assert_eq!(catch_panic(|| -> u32 { panic!("of the library") }), None);
        let other = std::thread::spawn(|| panic!("of somebody else"));
        assert!(catch_panic(|| other.join().is_err()).is_some_and(|failed| failed));
        assert!(std::panic::catch_unwind(|| panic!("after it")).is_err());
    }

    /// Runs in its own process, whose output is captured.
    #[test]
    fn a_caught_panic_prints_nothing() {
        let itself = std::env::current_exe().expect("a test runs");
        let name = "particles::initial::parquet::tests::panics";
        let run = Command::new(itself)
            .args(["--exact", name, "--nocapture"])
            .output();
        let run = run.expect("it runs");
        let output = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{output}");
        assert!(
            output.contains("of somebody else") && output.contains("after it"),
            "{output}"
        );
        assert!(!output.contains("of the library"), "{output}");
    }
}
