//! Reads entries of a series, which a run may be writing.

use crate::series::{SeriesArray, TIME, read_metadata};
use crate::zarr::Decoder;
use crate::{DataType, Result, SnapshotError};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The entries that a series has when it is opened.
pub struct SeriesReader {
    path: PathBuf,
    attributes: Map<String, Value>,
    /// Metadata of the arrays by name.
    arrays: Map<String, Value>,
}

impl SeriesReader {
    /// Opens the series `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Io`] if there is none; [`SnapshotError::Corrupt`].
    pub fn open(path: &Path) -> Result<Self> {
        let mut root = read_metadata(path)?;
        let table = |value: &mut Value| value.as_object_mut().map(std::mem::take);
        Ok(Self {
            path: path.to_path_buf(),
            attributes: table(&mut root["attributes"]).unwrap_or_default(),
            arrays: table(&mut root["consolidated_metadata"]["metadata"]).unwrap_or_default(),
        })
    }

    /// Returns the attributes of the group.
    #[must_use]
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let time = self.arrays.get(TIME);
        time.and_then(|time| time["shape"][0].as_u64()).unwrap_or(0)
    }

    /// Describes an array, without the dimension `time`; `None` if there is no such array.
    #[must_use]
    pub fn array(&self, name: &str) -> Option<SeriesArray> {
        let metadata = self.arrays.get(name)?;
        let names = metadata["dimension_names"].as_array()?.iter();
        let names = names.map(|name| name.as_str().unwrap_or_default().to_string());
        let shape = metadata["shape"].as_array()?.iter().map(Value::as_u64);
        let (dimensions, shape) = (
            names.collect::<Vec<_>>(),
            shape.collect::<Option<Vec<_>>>()?,
        );
        let first = usize::from(dimensions.first().is_some_and(|first| first == TIME));
        Some(SeriesArray {
            name: name.into(),
            data_type: DataType::from_name(metadata["data_type"].as_str()?)?,
            dimensions: dimensions.get(first..)?.to_vec(),
            shape: shape.get(first..)?.to_vec(),
            attributes: metadata["attributes"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Returns the names of the arrays that grow, sorted; `time` and `step` are among them.
    pub fn growing(&self) -> impl Iterator<Item = &str> {
        let grows = |metadata: &Value| metadata["dimension_names"][0] == TIME;
        let arrays = self.arrays.iter();
        arrays.filter_map(move |(name, metadata)| grows(metadata).then_some(name.as_str()))
    }

    /// Reads strictly ascending entries of an array that grows, or strictly ascending elements of another one.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`] with the existing names; [`SnapshotError::Request`] for an entry that is not there;
    /// [`SnapshotError::Io`]; [`SnapshotError::Corrupt`].
    pub fn read(&self, name: &str, entries: &[u64]) -> Result<Vec<f64>> {
        let metadata = self
            .arrays
            .get(name)
            .ok_or_else(|| SnapshotError::Missing {
                path: self.path.clone(),
                wanted: format!("array {name:?}"),
                known: self.arrays.keys().cloned().collect(),
            })?;
        let count = metadata["shape"][0].as_u64().unwrap_or(0);
        if let Some(entry) = entries.iter().find(|entry| **entry >= count) {
            let text = format!("{} has no entry {entry} of {name}", self.path.display());
            return Err(SnapshotError::Request(text));
        }
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let values = Decoder::open(&self.path, name, metadata)?.read(entries)?;
        Ok(values.into_f64())
    }
}
