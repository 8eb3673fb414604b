//! Reading snapshots.

use crate::bounds;
use crate::checksums;
use crate::files::{self, SNAPSHOTS};
use crate::header::ORIGIN;
use crate::parts::{PartHeader, described};
use crate::store::{is_structural, sharding};
use crate::zarr::Decoder;
use crate::{
    Attributes, DataType, FORMAT_VERSION, FieldHeader, LEAF, LevelHeader, Result, SnapshotError,
    Values,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A complete snapshot, open for reading: headers are in memory, arrays are read on request.
pub struct Snapshot {
    path: PathBuf,
    attributes: Attributes,
    levels: Vec<LevelEntry>,
    /// By ascending path, with their metadata documents.
    pub(crate) parts: Vec<(PartHeader, Value)>,
}

/// One level: its header and its arrays, sorted by name, with their metadata documents.
struct LevelEntry {
    header: LevelHeader,
    arrays: BTreeMap<String, (FieldHeader, Value)>,
}

/// Why `path` cannot be a snapshot, or its root metadata document.
fn root_document(path: &Path) -> Result<Value> {
    if !path.exists() {
        return Err(SnapshotError::foreign(
            path,
            "there is nothing with this name",
        ));
    }
    if !path.is_dir() {
        return Err(SnapshotError::foreign(
            path,
            "it is a file; a snapshot is a directory NNNNNN.zarr",
        ));
    }
    let file = path.join("zarr.json");
    if !file.is_file() {
        let detail = if path.join(SNAPSHOTS).is_dir() {
            "it is the directory of a run: name one of its snapshots/NNNNNN.zarr"
        } else {
            "it has no zarr.json"
        };
        return Err(SnapshotError::foreign(path, detail));
    }
    let text = std::fs::read(&file).map_err(|error| SnapshotError::io("read", &file, &error))?;
    checksums::check_root(path, &text)?;
    serde_json::from_slice(&text).map_err(|error| SnapshotError::corrupt(&file, error.to_string()))
}

/// Refuses what is no snapshot, or a newer one.
fn require_format(path: &Path, attributes: &Value) -> Result<()> {
    if attributes["format"] != "nestar-snapshot" {
        return Err(SnapshotError::foreign(
            path,
            "a Zarr store without the attribute format = \"nestar-snapshot\"",
        ));
    }
    match attributes["format_version"].as_u64() {
        Some(1..=FORMAT_VERSION) => Ok(()),
        Some(found) if found > FORMAT_VERSION => Err(SnapshotError::Newer {
            path: path.into(),
            found,
        }),
        _ => Err(SnapshotError::foreign(
            path,
            "its format_version is not a positive integer",
        )),
    }
}

/// Reads a header out of a group's attributes.
fn parse<T: serde::de::DeserializeOwned>(path: &Path, attributes: &Value) -> Result<T> {
    serde_json::from_value(attributes.clone()).map_err(|error| {
        SnapshotError::corrupt(&path.join("zarr.json"), format!("attributes: {error}"))
    })
}

/// The header of an array, from its metadata document.
fn field_header(path: &Path, name: &str, document: &Value, patches: u64) -> Result<FieldHeader> {
    let broken = |what: &str| {
        SnapshotError::corrupt(
            &path.join(name),
            format!("its metadata have no valid {what}"),
        )
    };
    let shape: Option<Vec<u64>> = serde_json::from_value(document["shape"].clone()).ok();
    let shape = shape
        .filter(|shape| shape.first() == Some(&patches))
        .ok_or_else(|| broken("shape"))?;
    let names: Option<Vec<String>> =
        serde_json::from_value(document["dimension_names"].clone()).ok();
    let names = names
        .filter(|names| names.len() == shape.len())
        .ok_or_else(|| broken("dimension_names"))?;
    if bounds::row_bytes(&shape[1..], 8).is_none() {
        return Err(broken("shape"));
    }
    let text = |key: &str| {
        document["attributes"][key]
            .as_str()
            .map(str::to_string)
            .ok_or_else(|| broken(key))
    };
    Ok(FieldHeader {
        name: name.to_string(),
        data_type: document["data_type"]
            .as_str()
            .and_then(DataType::from_name)
            .ok_or_else(|| broken("data_type"))?,
        dimensions: names[1..].to_vec(),
        shape: shape[1..].to_vec(),
        units: text("units")?,
        cgs_factor: document["attributes"]["cgs_factor"]
            .as_f64()
            .ok_or_else(|| broken("cgs_factor"))?,
        long_name: text("long_name")?,
    })
}

/// One level out of the consolidated metadata.
fn level_entry(path: &Path, level: u64, documents: &Map<String, Value>) -> Result<LevelEntry> {
    let group = format!("level_{level}");
    let missing = |name: &str| {
        SnapshotError::corrupt(
            &path.join(&group).join(name),
            "the metadata do not describe it",
        )
    };
    let document = documents.get(&group).ok_or_else(|| missing(""))?;
    let header: LevelHeader = parse(&path.join(&group), &document["attributes"])?;
    bounds::check_level(&path.join(&group), level, &header)?;
    let mut arrays = BTreeMap::new();
    for (key, document) in documents {
        let name = key
            .strip_prefix(&group)
            .and_then(|rest| rest.strip_prefix('/'));
        if let Some(name) = name {
            let header = field_header(&path.join(&group), name, document, header.patches)?;
            arrays.insert(name.to_string(), (header, document.clone()));
        }
    }
    match [ORIGIN, LEAF]
        .into_iter()
        .find(|name| !arrays.contains_key(*name))
    {
        Some(name) => Err(missing(name)),
        None => Ok(LevelEntry { header, arrays }),
    }
}

impl Snapshot {
    /// Opens the snapshot directory `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Foreign`] (nothing there, a file, something else's Zarr), [`SnapshotError::Newer`],
    /// [`SnapshotError::Corrupt`], [`SnapshotError::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let document = root_document(path)?;
        let attributes = &document["attributes"];
        require_format(path, attributes)?;
        checksums::require(path, attributes)?;
        let none = Map::new();
        let documents = document["consolidated_metadata"]["metadata"]
            .as_object()
            .unwrap_or(&none);
        let numbers: Vec<u64> = parse(path, &attributes["levels"])?;
        if !numbers.is_sorted_by(|a, b| a < b) {
            let file = path.join("zarr.json");
            return Err(SnapshotError::corrupt(&file, "`levels` does not ascend"));
        }
        let levels = numbers
            .into_iter()
            .map(|level| level_entry(path, level, documents));
        let attributes = parse(path, attributes)?;
        bounds::check_attributes(path, &attributes)?;
        Ok(Self {
            attributes,
            levels: levels.collect::<Result<_>>()?,
            parts: described(path, documents)?,
            path: path.to_path_buf(),
        })
    }

    /// The snapshot's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The parts, by ascending path.
    pub fn parts(&self) -> impl Iterator<Item = &PartHeader> {
        self.parts.iter().map(|(header, _)| header)
    }

    /// The bytes of the part at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Corrupt`] for a missing, truncated or altered shard.
    pub fn read_part(&self, path: &str) -> Result<Vec<u8>> {
        let found = self.parts.iter().find(|(header, _)| header.path == path);
        let (header, document) = found.ok_or_else(|| SnapshotError::Missing {
            path: self.path().into(),
            wanted: format!("part {path:?}"),
            known: self.parts().map(|header| header.path.clone()).collect(),
        })?;
        let decoder = Decoder::open(self.path(), path, document)?;
        decoder.require(&(0..1))?;
        let values = decoder.read(&[0])?;
        let mut bytes = values.bytes().to_vec();
        bytes.truncate(header.length as usize);
        if bytes.len() as u64 == header.length {
            return Ok(bytes);
        }
        let text = format!("it has {} bytes of {}", bytes.len(), header.length);
        Err(SnapshotError::corrupt(&self.path().join(path), text))
    }

    /// The attributes of the whole snapshot.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The levels present, coarse to fine.
    pub fn levels(&self) -> impl ExactSizeIterator<Item = &LevelHeader> {
        self.levels.iter().map(|entry| &entry.header)
    }

    /// The fields of a level, sorted by name, without [`ORIGIN`] and [`LEAF`]; empty for a level that is not there.
    pub fn fields(&self, level: u8) -> Vec<&FieldHeader> {
        let entry = self.levels.iter().find(|entry| entry.header.level == level);
        let headers = entry
            .into_iter()
            .flat_map(|entry| entry.arrays.values().map(|(header, _)| header));
        headers
            .filter(|header| !is_structural(&header.name))
            .collect()
    }

    /// All arrays of a level in the order of their names, [`ORIGIN`] and [`LEAF`] included.
    pub(crate) fn arrays(&self, level: u8) -> Result<Vec<&FieldHeader>> {
        Ok(self
            .entry(level)?
            .arrays
            .values()
            .map(|(header, _)| header)
            .collect())
    }

    fn entry(&self, level: u8) -> Result<&LevelEntry> {
        let found = self.levels.iter().find(|entry| entry.header.level == level);
        found.ok_or_else(|| SnapshotError::Missing {
            path: self.path.clone(),
            wanted: format!("level {level}"),
            known: self
                .levels
                .iter()
                .map(|entry| format!("level {}", entry.header.level))
                .collect(),
        })
    }

    /// The array's decoder and the number of its patches.
    fn decoder(&self, level: u8, array: &str) -> Result<(Decoder, u64)> {
        let entry = self.entry(level)?;
        let (_, document) = entry
            .arrays
            .get(array)
            .ok_or_else(|| SnapshotError::Missing {
                path: self.path.clone(),
                wanted: format!("array {array:?} on level {level}"),
                known: entry.arrays.keys().cloned().collect(),
            })?;
        let decoder = Decoder::open(&self.path, &format!("level_{level}/{array}"), document)?;
        Ok((decoder, entry.header.patches))
    }

    /// Patches of a whole shard of a level of `patches` patches: what is best read at a time.
    pub fn shard_patches(patches: usize) -> usize {
        sharding(patches as u64).0 as usize
    }

    /// All values of an array: shape `[patch]` and the field's own shape.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Corrupt`] for a missing, truncated or altered shard.
    pub fn read(&self, level: u8, array: &str) -> Result<Values> {
        let patches = self.entry(level)?.header.patches;
        self.read_patches(level, array, 0..patches)
    }

    /// The values of a range of patches.
    ///
    /// # Errors
    /// As [`Snapshot::read`]; [`SnapshotError::Request`] for a range beyond the level's patches.
    pub fn read_patches(&self, level: u8, array: &str, range: Range<u64>) -> Result<Values> {
        let (decoder, count) = self.decoder(level, array)?;
        if range.end > count {
            return Err(too_few(level, count));
        }
        decoder.require(&range)?;
        decoder.read(&range.collect::<Vec<_>>())
    }

    /// The values of some patches, given in ascending order; only the inner chunks with these patches are decoded.
    ///
    /// # Errors
    /// As [`Snapshot::read`]; [`SnapshotError::Request`] for patches that do not ascend or are not there.
    pub fn read_selected(&self, level: u8, array: &str, patches: &[u64]) -> Result<Values> {
        let (decoder, count) = self.decoder(level, array)?;
        if !patches.is_sorted_by(|a, b| a < b) || patches.last().is_some_and(|&last| last >= count)
        {
            return Err(too_few(level, count));
        }
        decoder.read(patches)
    }

    /// Bytes on disk.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn file_bytes(&self) -> Result<u64> {
        files::tree_bytes(&self.path)
    }
}

fn too_few(level: u8, count: u64) -> SnapshotError {
    SnapshotError::Request(format!(
        "level {level} has {count} patches: the patches to read must ascend and be less"
    ))
}

/// The complete snapshot with the highest number in the run directory `directory`, with that number; `None` if there
/// is none.
///
/// # Errors
/// [`SnapshotError::Io`] if the directory cannot be listed.
pub fn latest(directory: &Path) -> Result<Option<(u32, PathBuf)>> {
    Ok(numbered(directory)?.pop())
}

/// The complete snapshots in the run directory `directory`, by ascending number.
///
/// # Errors
/// As [`latest`].
pub fn complete(directory: &Path) -> Result<Vec<PathBuf>> {
    Ok(numbered(directory)?
        .into_iter()
        .map(|(_, path)| path)
        .collect())
}

fn numbered(directory: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let snapshots = directory.join(SNAPSHOTS);
    if !snapshots.is_dir() {
        return Ok(Vec::new());
    }
    let numbered = files::entries(&snapshots)?.into_iter().filter_map(|path| {
        let number: u32 = path
            .file_name()?
            .to_str()?
            .strip_suffix(".zarr")?
            .parse()
            .ok()?;
        Some((number, path))
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort();
    Ok(numbered)
}
