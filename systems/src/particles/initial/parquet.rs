//! ParticleColumns of numbers from Parquet files. No other file names the library that reads them.

use super::quiet::catch_panic;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use rayon::prelude::*;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What every Parquet file begins with, and an encrypted one.
const MARKS: [[u8; 4]; 2] = [*b"PAR1", *b"PARE"];

/// Whether a file is one of Parquet, or wants to be.
pub(super) fn is_parquet(path: &Path) -> bool {
    let mut first = [0; 4];
    let marked = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    let named = path.extension().is_some_and(|name| name == "parquet");
    named || (marked.is_ok() && MARKS.contains(&first))
}

/// A Parquet file, of which nothing but its end has been read.
pub(super) struct ParquetFile {
    path: PathBuf,
    /// The name of each column; of one inside of a list or a structure, those around it before it, with points between.
    names: Vec<String>,
    rows: usize,
}

impl ParquetFile {
    /// Reads names and numbers of rows.
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

    /// ParticleColumns, each of all rows. Integers above 2^53 are rounded.
    ///
    /// # Errors
    /// A column that is no plain column of numbers, a value that is missing or no finite number, with its row, which counts from 1; a file
    /// that is damaged.
    pub(super) fn columns(&self, names: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        let columns = names.par_iter().map(|name| self.sound(name));
        // the first that is wrong is told, whichever is read first
        columns.collect::<Vec<_>>().into_iter().collect()
    }

    /// A column; the library panics at some damages of files.
    fn sound(&self, name: &str) -> Result<Vec<f64>, String> {
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
        let damaged = |error: ParquetError| refuse(told(&error));
        let at = self.names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| refuse("is not there".into()))?;
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
            kind.append(chunk, (&mut values, rows)).map_err(refuse)?;
            if values.len() != rows {
                let why = "has other rows than its file says: the file is damaged";
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

/// What reads a file.
fn reader(path: &Path) -> Result<SerializedFileReader<File>, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    // the library panics at some damages of files
    let read = catch_panic(|| SerializedFileReader::new(file));
    let read = read.ok_or_else(|| wrong(&"the file is damaged"))?;
    read.map_err(|error| wrong(&error))
}

/// The numbers of a column.
struct NumberType {
    /// Whether its integers have no sign.
    unsigned: bool,
    /// Whether values may be missing.
    optional: bool,
}

impl NumberType {
    /// # Errors
    /// The values are no numbers, or several a row.
    fn of(column: &ColumnDescriptor) -> Result<Self, String> {
        if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
            let why =
                "is a part of a list or a structure: write each component as a column of its own";
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
                "has values of the type {}: write numbers as float, double, int32 or int64, or use no such column",
                said(column)
            )),
        }
    }

    /// Appends the values of a row group, with which there are so many; more than one beyond are not read.
    fn append(&self, chunk: ColumnReader, values: (&mut Vec<f64>, usize)) -> Result<(), String> {
        let unsigned = self.unsigned;
        match chunk {
            ColumnReader::FloatColumnReader(chunk) => self.read(chunk, f64::from, values),
            ColumnReader::DoubleColumnReader(chunk) => self.read(chunk, |value| value, values),
            ColumnReader::Int32ColumnReader(chunk) if unsigned => {
                self.read(chunk, |value| f64::from(value as u32), values)
            }
            ColumnReader::Int32ColumnReader(chunk) => self.read(chunk, f64::from, values),
            ColumnReader::Int64ColumnReader(chunk) if unsigned => {
                self.read(chunk, |value| value as u64 as f64, values)
            }
            ColumnReader::Int64ColumnReader(chunk) => {
                self.read(chunk, |value| value as f64, values)
            }
            _ => Err("has values of another type than its file says: the file is damaged".into()),
        }
    }

    fn read<T: DataType>(
        &self,
        mut chunk: ColumnReaderImpl<T>,
        number: impl Fn(T::T) -> f64,
        (values, rows): (&mut Vec<f64>, usize),
    ) -> Result<(), String> {
        let (mut some, mut levels) = (Vec::new(), Vec::new());
        while values.len() <= rows {
            levels.clear();
            let most = BATCH.min(rows + 1 - values.len());
            let known = self.optional.then_some(&mut levels);
            let read = chunk.read_records(most, known, None, &mut some);
            let (count, ..) = read.map_err(|error| told(&error))?;
            if let Some(n) = levels.iter().position(|&level| level == 0) {
                let row = values.len() + n + 1;
                let why =
                    "is missing (null): give every row one, or leave such rows out of the file";
                return Err(format!("has a value, in row {row}, that {why}"));
            }
            if count == 0 {
                break;
            }
            for value in some.drain(..).map(&number) {
                values.push(value);
                if !value.is_finite() {
                    let row = values.len();
                    return Err(format!(
                        "has the value {value} in row {row}: expected a number"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What a message says of an error of the library.
fn told(error: &ParquetError) -> String {
    let brotli = "feature at compile time: brotli";
    match error.to_string() {
        text if text.contains(brotli) => {
            "is compressed by brotli: write it with snappy, zstd, gzip or LZ4".into()
        }
        text => format!("cannot be read: {text}"),
    }
}

/// Values that are read at a time.
const BATCH: usize = 1 << 14;

/// Whether integers by their older name have no sign; none where they are no plain numbers.
fn integers(converted: ConvertedType) -> Option<bool> {
    use ConvertedType as By;
    match converted {
        By::INT_8 | By::INT_16 | By::INT_32 | By::INT_64 => Some(false),
        By::UINT_8 | By::UINT_16 | By::UINT_32 | By::UINT_64 => Some(true),
        _ => None,
    }
}

/// The type of a column, as messages call it.
fn said(column: &ColumnDescriptor) -> String {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(logical), _) => format!("{logical:?}"),
        (None, ConvertedType::NONE) => column.physical_type().to_string(),
        (None, converted) => converted.to_string(),
    }
}

/// Writes tables, for tests.
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

    /// Values of a column; none where they are missing.
    pub type Values = Vec<Option<f64>>;

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

    /// Writes a table of columns, such as `required double x`, in row groups of so many rows.
    pub fn save(path: &Path, codec: &str, group: usize, table: &[(&str, Values)]) {
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
