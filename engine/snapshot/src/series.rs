//! Series: a Zarr group whose arrays grow along their first dimension, `time`.
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
/// Names of the coordinates of the entries, which are also the first dimension of all growing arrays.
pub(crate) const TIME: &str = "time";
const STEP: &str = "step";
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
}

/// An array on disk.
struct StoredArray {
    name: String,
    encoder: Encoder,
    /// Metadata; the length of growing arrays is set on writing.
    metadata: Value,
}

impl StoredArray {
    fn new(array: &SeriesArray, entries: Option<u64>) -> Result<Self> {
        let SeriesArray {
            name,
            data_type,
            dimensions,
            shape,
            attributes,
        } = array;
        let time = entries.map(|_| TIME.to_string()).into_iter();
        let rows = match entries {
            Some(entries) => entries,
            None => shape.first().copied().unwrap_or(1),
        };
        let layout = ArrayLayout {
            path: name.clone(),
            data_type: *data_type,
            shape: entries.into_iter().chain(shape.iter().copied()).collect(),
            shard: rows,
            inner: rows,
            dimensions: time.chain(dimensions.iter().cloned()).collect(),
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

/// A series that is written by one process.
pub struct Series {
    path: PathBuf,
    attributes: Map<String, Value>,
    /// Metadata of the arrays that do not grow, by name.
    fixed: Vec<(String, Value)>,
    /// Coordinates `time` and `step`, then the other growing arrays.
    growing: Vec<StoredArray>,
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
        for n in 0..series.growing.len() {
            let name = series.growing[n].name.clone();
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
            StoredArray::new(&array, Some(ENTRIES))
        };
        let mut step = Map::new();
        step.insert("long_name".into(), json!("root steps since the start"));
        let mut growing = vec![
            coordinate(TIME, DataType::F64, &plan.time)?,
            coordinate(STEP, DataType::U64, &step)?,
        ];
        for array in &plan.arrays {
            growing.push(StoredArray::new(array, Some(1))?);
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
            times: Vec::new(),
            steps: Vec::new(),
            unsynced: Vec::new(),
        })
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
            let grows = planned.growing.iter().any(|own| own.name == *name);
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

    /// Appends an entry with the values of the growing arrays, in the order of the plan.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Request`] for values of another size.
    pub fn append(&mut self, time: f64, step: u64, values: &[Values]) -> Result<()> {
        let arrays = std::mem::take(&mut self.growing);
        let stored = self.store_entry(&arrays, time, step, values);
        self.growing = arrays;
        stored?;
        self.commit()
    }

    fn store_entry(
        &mut self,
        arrays: &[StoredArray],
        time: f64,
        step: u64,
        values: &[Values],
    ) -> Result<()> {
        let entry = self.times.len() as u64;
        let own = &arrays[2..];
        if own.len() != values.len() {
            let text = format!("{} arrays are planned, {} given", own.len(), values.len());
            return Err(SnapshotError::Request(text));
        }
        for (array, values) in own.iter().zip(values) {
            self.store(array, entry, values)?;
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

    /// Writes the metadata with the present number of entries; those of the group last.
    fn commit(&mut self) -> Result<()> {
        let documents = self.documents();
        for array in 0..self.growing.len() {
            let name = self.growing[array].name.clone();
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
        let growing = self.growing.iter().map(|array| {
            let mut metadata = array.metadata.clone();
            metadata["shape"][0] = json!(self.times.len());
            (array.name.clone(), metadata)
        });
        let mut all: Vec<(String, Value)> = fixed.chain(growing).collect();
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
        let arrays = arrays.chain(self.growing.iter().map(|array| &array.name));
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
