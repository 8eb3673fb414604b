//! Series: a Zarr group whose arrays grow along their first dimension, `time`. A series may also have ragged arrays, which grow along a
//! dimension of their own: an entry appends any number of rows.
//!
//! [`Series::append`] writes the chunks, then the metadata of each array, then those of the group, which contain the metadata of
//! all arrays. The last rename commits the entry: a killed run leaves whole entries and files that no metadata mention.

use crate::memory::partial_path;
use crate::zarr::{ArrayLayout, Decoder, Encoder};
use crate::{DataType, Result, SnapshotError, Values, files};
use serde_json::{Map, Value, json};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Entries in a chunk of the coordinates `time` and `step`.
const ENTRIES: u64 = 1024;
/// Rows in a chunk of a ragged array.
const ROWS: u64 = 1 << 14;
/// Names of the coordinates of the entries, which are also the first dimension of all growing arrays.
pub(crate) const TIME: &str = "time";
const STEP: &str = "step";
/// Name of the array with the number of rows of each entry.
const COUNT: &str = "count";
/// Name of the file with the metadata of a group or an array.
const METADATA: &str = "zarr.json";

/// Describes an array of a series, without the dimension `time`.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesArray {
    /// Name.
    pub name: String,
    /// Element type.
    pub data_type: DataType,
    /// Names of the dimensions.
    pub dimensions: Vec<String>,
    /// Lengths of the dimensions.
    pub shape: Vec<u64>,
    /// Attributes.
    pub attributes: Map<String, Value>,
}

/// Describes a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPlan {
    /// Attributes of the group. A run continues a series only if they are the same.
    pub attributes: Map<String, Value>,
    /// Attributes of the coordinate `time`.
    pub time: Map<String, Value>,
    /// Arrays that do not depend on time, with their values.
    pub coordinates: Vec<(SeriesArray, Values)>,
    /// Arrays that grow.
    pub arrays: Vec<SeriesArray>,
    /// Ragged arrays, if any.
    pub list: Option<SeriesList>,
}

/// Contiguous ragged arrays, as in the CF conventions: the rows of an entry follow those of the entries before, and the array `count` has the
/// number of rows of each entry.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesList {
    /// Name of the dimension of the rows.
    pub dimension: String,
    /// Attributes of the array `count`.
    pub count: Map<String, Value>,
    /// The arrays, without the dimension of the rows.
    pub arrays: Vec<SeriesArray>,
}

/// How an array grows.
#[derive(Clone, Copy)]
struct Growth<'a> {
    /// Name of the first dimension.
    along: &'a str,
    /// Length of a chunk along it.
    chunk: u64,
}

/// An array on disk.
struct StoredArray {
    name: String,
    encoder: Encoder,
    /// Metadata; the length of growing arrays is set on writing.
    metadata: Value,
}

impl StoredArray {
    fn new(array: &SeriesArray, growth: Option<Growth>) -> Result<Self> {
        let SeriesArray {
            name,
            data_type,
            dimensions,
            shape,
            attributes,
        } = array;
        let first = growth.map(|growth| growth.along.to_string()).into_iter();
        let rows = match growth {
            Some(growth) => growth.chunk,
            None => shape.first().copied().unwrap_or(1),
        };
        let length = growth.map(|growth| growth.chunk).into_iter();
        let layout = ArrayLayout {
            path: name.clone(),
            data_type: *data_type,
            shape: length.chain(shape.iter().copied()).collect(),
            shard: rows,
            inner: rows,
            dimensions: first.chain(dimensions.iter().cloned()).collect(),
            attributes: attributes.clone(),
        };
        let encoder = Encoder::new(&layout).map_err(SnapshotError::Request)?;
        let metadata = encoder.metadata().map_err(SnapshotError::Request)?;
        Ok(Self {
            name: name.clone(),
            encoder,
            metadata,
        })
    }
}

/// Ragged arrays on disk.
struct StoredList {
    arrays: Vec<StoredArray>,
    /// Number of rows of each entry.
    counts: Vec<u64>,
    /// Rows of the last chunk of each array, unless it is full.
    last: Vec<Values>,
}

impl StoredList {
    fn new(list: &SeriesList) -> Result<Self> {
        let growth = Growth {
            along: &list.dimension,
            chunk: ROWS,
        };
        let stored = |array: &SeriesArray| StoredArray::new(array, Some(growth));
        let empty = |array: &SeriesArray| Values::zeros(array.data_type, 0);
        Ok(Self {
            arrays: list.arrays.iter().map(stored).collect::<Result<_>>()?,
            counts: Vec::new(),
            last: list.arrays.iter().map(empty).collect(),
        })
    }

    /// Returns the number of rows of all entries.
    fn rows(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// A series that is written by one process.
pub struct Series {
    path: PathBuf,
    attributes: Map<String, Value>,
    /// Metadata of the arrays that do not grow, by name.
    fixed: Vec<(String, Value)>,
    /// Coordinates `time` and `step`, `count` if there are ragged arrays, then the other arrays that grow with the entries.
    growing: Vec<StoredArray>,
    list: Option<StoredList>,
    times: Vec<f64>,
    steps: Vec<u64>,
    /// Files that may not be on disk yet.
    unsynced: Vec<PathBuf>,
}

impl Series {
    /// Creates the empty series `path`, whose parent directory exists: under a temporary name, so that a killed run leaves a whole
    /// series or none.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Exists`]; [`SnapshotError::Request`] for arrays that the format does not support.
    pub fn create(path: &Path, plan: &SeriesPlan) -> Result<Self> {
        if path.exists() {
            let path = path.to_path_buf();
            return Err(SnapshotError::Exists { path });
        }
        let partial = partial_path(path);
        files::remove_tree(&partial)?;
        let created = Self::create_at(&partial, plan);
        let created = created.and_then(|series| series.published(path));
        if created.is_err() {
            // the error of the series matters
            let _ = files::remove_tree(&partial);
        }
        created
    }

    /// Gives a new series its final name.
    fn published(mut self, path: &Path) -> Result<Self> {
        let renamed = fs::rename(&self.path, path);
        renamed
            .map_err(|error| SnapshotError::io("rename the finished series to", path, &error))?;
        for file in &mut self.unsynced {
            let inside = file.strip_prefix(&self.path).unwrap_or(file);
            *file = path.join(inside);
        }
        self.path = path.to_path_buf();
        Ok(self)
    }

    /// Writes an empty series into the new directory `path`.
    fn create_at(path: &Path, plan: &SeriesPlan) -> Result<Self> {
        let mut series = Self::new(path, plan)?;
        files::create_directory(path)?;
        for (array, values) in &plan.coordinates {
            let stored = StoredArray::new(array, None)?;
            series.make_directory(&stored.name)?;
            series.store(&stored, 0, values)?;
        }
        let names = series.grown().map(|array| array.name.clone());
        for name in names.collect::<Vec<_>>() {
            series.make_directory(&name)?;
        }
        let fixed = series.fixed.clone();
        for (name, metadata) in &fixed {
            series.replace(
                &Path::new(name).join(METADATA),
                metadata.to_string().as_bytes(),
            )?;
        }
        series.commit()?;
        Ok(series)
    }

    /// Continues the series `path` after its entries up to `step`; later ones are removed.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Corrupt`] if the series is damaged.
    pub fn resume(path: &Path, plan: &SeriesPlan, step: u64) -> Result<Self> {
        let mut series = Self::new(path, plan)?;
        let root = read_metadata(path)?;
        let arrays = &root["consolidated_metadata"]["metadata"];
        let read = |name: &str| -> Result<Values> {
            let count = arrays[name]["shape"][0].as_u64().unwrap_or(0);
            let numbers: Vec<u64> = (0..count).collect();
            Decoder::open(path, name, &arrays[name])?.read(&numbers)
        };
        if arrays[TIME]["shape"][0].as_u64().unwrap_or(0) > 0 {
            let (Values::F64(times), Values::U64(steps)) = (read(TIME)?, read(STEP)?) else {
                return Err(SnapshotError::corrupt(path, "its times are no numbers"));
            };
            let count = steps.partition_point(|&own| own <= step);
            series.times = times[..count.min(times.len())].to_vec();
            series.steps = steps[..count].to_vec();
            if let Some(list) = &mut series.list {
                let Values::U64(counts) = read(COUNT)? else {
                    return Err(SnapshotError::corrupt(
                        path,
                        "its array `count` has no integers",
                    ));
                };
                list.counts = counts[..count.min(counts.len())].to_vec();
                let rows = list.rows();
                let open: Vec<u64> = (rows / ROWS * ROWS..rows).collect();
                let known = list.arrays.iter().zip(&mut list.last);
                for (array, last) in known.filter(|_| !open.is_empty()) {
                    let metadata = &arrays[&array.name];
                    *last = Decoder::open(path, &array.name, metadata)?.read(&open)?;
                }
            }
        }
        series.commit()?;
        Ok(series)
    }

    fn new(path: &Path, plan: &SeriesPlan) -> Result<Self> {
        let coordinate = |name: &str, data_type, attributes: &Map<String, Value>| {
            let array = SeriesArray {
                name: name.into(),
                data_type,
                dimensions: Vec::new(),
                shape: Vec::new(),
                attributes: attributes.clone(),
            };
            let growth = Growth {
                along: TIME,
                chunk: ENTRIES,
            };
            StoredArray::new(&array, Some(growth))
        };
        let mut step = Map::new();
        step.insert("long_name".into(), json!("root steps since the start"));
        let mut growing = vec![
            coordinate(TIME, DataType::F64, &plan.time)?,
            coordinate(STEP, DataType::U64, &step)?,
        ];
        if let Some(list) = &plan.list {
            growing.push(coordinate(COUNT, DataType::U64, &list.count)?);
        }
        let growth = Growth {
            along: TIME,
            chunk: 1,
        };
        for array in &plan.arrays {
            growing.push(StoredArray::new(array, Some(growth))?);
        }
        let fixed = plan.coordinates.iter().map(|(array, _)| {
            let stored = StoredArray::new(array, None)?;
            Ok((stored.name, stored.metadata))
        });
        Ok(Self {
            path: path.to_path_buf(),
            attributes: plan.attributes.clone(),
            fixed: fixed.collect::<Result<_>>()?,
            growing,
            list: plan.list.as_ref().map(StoredList::new).transpose()?,
            times: Vec::new(),
            steps: Vec::new(),
            unsynced: Vec::new(),
        })
    }

    /// Returns all arrays that grow.
    fn grown(&self) -> impl Iterator<Item = &StoredArray> {
        let of_list = self.list.iter().flat_map(|list| &list.arrays);
        self.growing.iter().chain(of_list)
    }

    /// Returns the step of the latest entry.
    #[must_use]
    pub fn latest_step(&self) -> Option<u64> {
        self.steps.last().copied()
    }

    /// Describes the first difference between the series at `path` and `plan`: the name of an attribute or array, and the text of a
    /// message. `None` if a run can continue the series.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] if `path` is no series.
    pub fn difference(path: &Path, plan: &SeriesPlan) -> Result<Option<(String, String)>> {
        let root = read_metadata(path)?;
        let planned = Self::new(path, plan)?;
        let stored = root["attributes"].as_object().cloned().unwrap_or_default();
        for (key, value) in &planned.attributes {
            let before = stored.get(key).unwrap_or(&Value::Null);
            if before != value {
                return Ok(Some((key.clone(), format!("{before} before, {value} now"))));
            }
        }
        let arrays = root["consolidated_metadata"]["metadata"].as_object();
        let arrays = arrays.cloned().unwrap_or_default();
        let documents = planned.documents();
        for (name, metadata) in &documents {
            let Some(before) = arrays.get(name) else {
                return Ok(Some((name.clone(), "it has no such array".into())));
            };
            let grows = planned.grown().any(|own| own.name == *name);
            let shape = |metadata: &Value| {
                let shape = metadata["shape"].as_array().cloned().unwrap_or_default();
                shape[usize::from(grows).min(shape.len())..].to_vec()
            };
            let kind = |metadata: &Value| metadata["data_type"].clone();
            let described = |own| format!("{} {}", kind(own), json!(shape(own)));
            if (shape(before), kind(before)) != (shape(metadata), kind(metadata)) {
                let text = format!("{} before, {} now", described(before), described(metadata));
                return Ok(Some((name.clone(), text)));
            }
        }
        let other = arrays.keys().find(|name| !documents.contains_key(*name));
        Ok(other.map(|name| (name.clone(), "it is not among the fields now".into())))
    }

    /// Appends an entry with the values of the growing arrays, in the order of the plan, and then the rows of the ragged arrays.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Request`] for values of another size.
    pub fn append(&mut self, time: f64, step: u64, values: &[Values]) -> Result<()> {
        let arrays = std::mem::take(&mut self.growing);
        let mut list = self.list.take();
        let stored = self.store_entry(&arrays, list.as_mut(), (time, step), values);
        (self.growing, self.list) = (arrays, list);
        stored?;
        self.commit()
    }

    fn store_entry(
        &mut self,
        arrays: &[StoredArray],
        list: Option<&mut StoredList>,
        (time, step): (f64, u64),
        values: &[Values],
    ) -> Result<()> {
        let entry = self.times.len() as u64;
        let (coordinates, own) = arrays.split_at(2 + usize::from(list.is_some()));
        let rows = list.as_ref().map_or(0, |list| list.arrays.len());
        if own.len() + rows != values.len() {
            let planned = own.len() + rows;
            let text = format!("{planned} arrays are planned, {} given", values.len());
            return Err(SnapshotError::Request(text));
        }
        for (array, values) in own.iter().zip(values) {
            self.store(array, entry, values)?;
        }
        if let Some(list) = list {
            self.store_rows(list, &values[own.len()..])?;
            let counts = &list.counts[(entry / ENTRIES * ENTRIES) as usize..];
            let counts = Values::U64(counts.to_vec());
            self.store(&coordinates[2], entry / ENTRIES, &counts)?;
        }
        self.times.push(time);
        self.steps.push(step);
        let chunk = entry / ENTRIES;
        let first = (chunk * ENTRIES) as usize;
        let times = Values::F64(self.times[first..].to_vec());
        let steps = Values::U64(self.steps[first..].to_vec());
        self.store(&arrays[0], chunk, &times)?;
        self.store(&arrays[1], chunk, &steps)
    }

    /// Appends rows to ragged arrays. A chunk that is not full is written again with the next entry.
    fn store_rows(&mut self, list: &mut StoredList, values: &[Values]) -> Result<()> {
        let before = list.rows();
        let mut count = None;
        for ((array, last), values) in list.arrays.iter().zip(&mut list.last).zip(values) {
            let width = array.encoder.row_length();
            let rows = values.len() as u64 / width;
            if *count.get_or_insert(rows) != rows || rows * width != values.len() as u64 {
                let text = format!(
                    "{}: {} values do not fill rows of {width}, or other ragged arrays have another number of rows",
                    array.name,
                    values.len()
                );
                return Err(SnapshotError::Request(text));
            }
            last.append_bytes(values.bytes());
            let size = ROWS as usize * width as usize * last.data_type().size();
            let mut chunk = before / ROWS;
            let mut rest = Vec::new();
            let mut pieces = last.bytes().chunks(size).peekable();
            while let Some(piece) = pieces.next() {
                let mut part = Values::zeros(last.data_type(), 0);
                part.append_bytes(piece);
                self.store(array, chunk, &part)?;
                chunk += 1;
                if pieces.peek().is_none() && piece.len() < size {
                    rest.extend_from_slice(piece);
                }
            }
            *last = Values::zeros(last.data_type(), 0);
            last.append_bytes(&rest);
        }
        list.counts.push(count.unwrap_or(0));
        Ok(())
    }

    /// Writes the metadata with the present number of entries; those of the group last.
    fn commit(&mut self) -> Result<()> {
        let documents = self.documents();
        let names = self.grown().map(|array| array.name.clone());
        for name in names.collect::<Vec<_>>() {
            let text = documents[&name].to_string();
            self.replace(&Path::new(&name).join(METADATA), text.as_bytes())?;
        }
        let root = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": self.attributes,
            "consolidated_metadata": {
                "kind": "inline", "must_understand": false, "metadata": documents,
            },
        });
        self.replace(Path::new(METADATA), root.to_string().as_bytes())
    }

    /// Returns the metadata of all arrays.
    fn documents(&self) -> Map<String, Value> {
        let fixed = self.fixed.iter().cloned();
        let of_length = |array: &StoredArray, length: u64| {
            let mut metadata = array.metadata.clone();
            metadata["shape"][0] = json!(length);
            (array.name.clone(), metadata)
        };
        let entries = self.times.len() as u64;
        let growing = self.growing.iter().map(|array| of_length(array, entries));
        let lists = self.list.iter();
        let rows = lists.flat_map(|list| {
            list.arrays
                .iter()
                .map(|array| of_length(array, list.rows()))
        });
        let mut all: Vec<(String, Value)> = fixed.chain(growing).chain(rows).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.into_iter().collect()
    }

    fn make_directory(&self, name: &str) -> Result<()> {
        files::create_directory(&self.path.join(name))
    }

    /// Stores a chunk of an array.
    fn store(&mut self, array: &StoredArray, chunk: u64, values: &Values) -> Result<()> {
        let wrong = |why: String| SnapshotError::Request(format!("{}: {why}", array.name));
        let bytes = array.encoder.encode(values).map_err(wrong)?;
        let place = array.encoder.shard_path(chunk);
        self.replace(&place, &bytes)
    }

    /// Writes a file of the series under another name and renames it.
    fn replace(&mut self, place: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(place);
        let mut beside = path.as_os_str().to_owned();
        beside.push(".partial");
        let beside = PathBuf::from(beside);
        let written = || {
            match fs::remove_file(&beside) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).open(&beside);
            file?.write_all(bytes)?;
            fs::rename(&beside, &path)
        };
        written().map_err(|error| {
            // a full disk must not keep half a file
            let _ = fs::remove_file(&beside);
            SnapshotError::io("write", &path, &error)
        })?;
        if self.unsynced.last() != Some(&path) {
            self.unsynced.push(path);
        }
        Ok(())
    }

    /// Waits until all entries are on disk.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn sync(&mut self) -> Result<()> {
        let mut paths = std::mem::take(&mut self.unsynced);
        if paths.is_empty() {
            return Ok(());
        }
        paths.sort();
        paths.dedup();
        let arrays = self.fixed.iter().map(|(name, _)| name);
        let arrays = arrays.chain(self.grown().map(|array| &array.name));
        paths.extend(arrays.map(|name| self.path.join(name)));
        paths.push(self.path.clone());
        paths.iter().try_for_each(|path| files::sync(path))
    }
}

/// Reads the metadata of the group `path`.
pub(crate) fn read_metadata(path: &Path) -> Result<Value> {
    let place = path.join(METADATA);
    let text = fs::read(&place).map_err(|error| SnapshotError::io("read", &place, &error))?;
    let root: Value = serde_json::from_slice(&text)
        .map_err(|error| SnapshotError::corrupt(&place, error.to_string()))?;
    match root["consolidated_metadata"]["metadata"].is_object() {
        true => Ok(root),
        false => Err(SnapshotError::corrupt(&place, "it has no list of arrays")),
    }
}
