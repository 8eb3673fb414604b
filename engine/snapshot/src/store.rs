//! A snapshot on disk: its plan, its metadata, its shards, its publication.
//!
//! The steps are separate so that several processes can write one snapshot: one calls [`Plan::create`], all call
//! [`Plan::store_shard`] and [`Plan::sync_shard`] for disjoint shards, and one calls [`Plan::publish`] when every shard is there.

use crate::checksums;
use crate::header::{LEAF, ORIGIN, PATCH_SIZE};
use crate::layout::Layout;
use crate::zarr::Encoder;
use crate::{
    Attributes, FORMAT_VERSION, FieldHeader, Level, Part, Result, SnapshotError, Values, files,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most patches in one shard (4 MiB of f64 cells).
pub const SHARD_PATCHES: u64 = 1024;
/// Patches of an inner chunk (128 KiB of f64 cells): the least that a reader decodes.
const INNER_PATCHES: u64 = 32;

/// One array of the plan.
pub(crate) struct PlannedArray {
    /// The array's header.
    pub header: FieldHeader,
    /// Patches of a whole shard.
    pub shard: u64,
    /// Patches of the level.
    pub patches: u64,
    encoder: Encoder,
}

/// Everything that is known of a snapshot before its data.
pub struct Plan {
    /// Metadata documents by path below the snapshot's directory, without the root's; sorted, because readers of
    /// consolidated metadata expect it.
    documents: BTreeMap<String, Value>,
    root: Map<String, Value>,
    pub(crate) arrays: Vec<(u8, PlannedArray)>,
    /// Shards of the parts, by file below the snapshot's directory.
    parts: BTreeMap<PathBuf, Vec<u8>>,
}

/// Patches of a shard and of an inner chunk for a level of `patches`: shards of equal size, so that little is padded.
pub(crate) fn sharding(patches: u64) -> (u64, u64) {
    let inner = patches.clamp(1, INNER_PATCHES);
    let shards = patches.div_ceil(SHARD_PATCHES).max(1);
    let shard = patches.div_ceil(shards).div_ceil(inner).max(1) * inner;
    (shard, inner)
}

/// Refuses a float that JSON has no notation for.
fn finite(name: &str, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(SnapshotError::Request(format!(
        "snapshot attribute `{name}` is {values:?}: it must be finite"
    )))
}

/// A group's metadata document.
fn group(attributes: Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// The attributes of a header.
fn to_map<T: serde::Serialize>(header: &T) -> Result<Map<String, Value>> {
    match serde_json::to_value(header) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(SnapshotError::Request(
            "a header is not an object".to_string(),
        )),
        Err(error) => Err(SnapshotError::Request(format!(
            "snapshot attributes: {error}"
        ))),
    }
}

/// The attributes of the root group.
fn root_attributes(attributes: &Attributes, levels: &[Level]) -> Result<Map<String, Value>> {
    finite("time", &[attributes.time])?;
    finite("domain_left_edge", &attributes.domain_left_edge)?;
    finite("domain_right_edge", &attributes.domain_right_edge)?;
    let units = &attributes.units;
    finite("units", &[units.length_cgs, units.mass_cgs, units.time_cgs])?;
    for (name, value) in &attributes.facts {
        finite(name, &[*value])?;
    }
    let numbers: Vec<u8> = levels.iter().map(|level| level.header.level).collect();
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(SnapshotError::Request(format!(
            "levels {numbers:?} must ascend"
        )));
    }
    let mut root = Map::new();
    root.insert("format".into(), json!("nestar-snapshot"));
    root.insert("format_version".into(), json!(FORMAT_VERSION));
    let (name, kind) = checksums::ATTRIBUTE;
    root.insert(name.into(), json!(kind));
    root.extend(to_map(attributes)?);
    root.insert("patch_size".into(), json!(PATCH_SIZE));
    root.insert("refinement_ratio".into(), json!(2));
    root.insert("levels".into(), json!(numbers));
    Ok(root)
}

impl Plan {
    /// Plans a snapshot; `levels` ascend. Every level also gets the arrays `origin` and `leaf`.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] for headers that the format has no room for.
    pub fn new(attributes: &Attributes, levels: &[Level]) -> Result<Self> {
        let mut plan = Self {
            documents: BTreeMap::new(),
            root: root_attributes(attributes, levels)?,
            arrays: Vec::new(),
            parts: BTreeMap::new(),
        };
        for level in levels {
            plan.add_level(level)?;
        }
        Ok(plan)
    }

    /// Plans one level.
    fn add_level(&mut self, level: &Level) -> Result<()> {
        let header = &level.header;
        finite("time of a level", &[header.time, header.dt])?;
        finite("cell_width", &header.cell_width)?;
        let path = format!("level_{}", header.level);
        self.documents.insert(path.clone(), group(to_map(header)?));
        let own = [FieldHeader::origin(), FieldHeader::leaf()];
        for field in own.iter().chain(&level.fields) {
            field.validate()?;
            let array = planned_array(&path, header.patches, field)?;
            let document = array.encoder.metadata().map_err(SnapshotError::Request)?;
            if self
                .documents
                .insert(format!("{path}/{}", field.name), document)
                .is_some()
            {
                let text = format!(
                    "level {} has two arrays named {:?}",
                    header.level, field.name
                );
                return Err(SnapshotError::Request(text));
            }
            self.arrays.push((header.level, array));
        }
        Ok(())
    }

    /// Adds a part, which [`Plan::create`] stores.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] for a place that the format has no room for or that is taken.
    pub fn add_part(&mut self, part: &Part) -> Result<()> {
        let (document, file, shard) = part.encoded()?;
        let path = &part.header.path;
        if let Some((parent, _)) = path.split_once('/') {
            self.documents
                .entry(parent.to_string())
                .or_insert_with(|| group(Map::new()));
        }
        if self.documents.insert(path.clone(), document).is_some() {
            let text = format!("there are two parts {path:?}");
            return Err(SnapshotError::Request(text));
        }
        self.parts.insert(file, shard);
        Ok(())
    }

    /// Patches of a whole shard of `level`; 1 for a level that the plan does not have.
    pub fn shard_patches(&self, level: u8) -> usize {
        let array = self.arrays.iter().find(|(number, _)| *number == level);
        array.map_or(1, |(_, array)| array.shard as usize)
    }

    /// Where the array stands in the plan.
    pub(crate) fn find(&self, level: u8, name: &str) -> Result<usize> {
        let found = self
            .arrays
            .iter()
            .position(|(number, array)| *number == level && array.header.name == name);
        found.ok_or_else(|| {
            SnapshotError::Request(format!("no array {name:?} is planned on level {level}"))
        })
    }

    /// Refuses values that are not exactly one shard of the array.
    pub(crate) fn check(&self, index: usize, first_patch: u64, values: &Values) -> Result<()> {
        let (level, array) = &self.arrays[index];
        let patches = array.shard.min(array.patches.saturating_sub(first_patch));
        let expected = patches as usize * array.header.values_per_patch();
        if first_patch.is_multiple_of(array.shard)
            && patches > 0
            && values.len() == expected
            && values.data_type() == array.header.data_type
        {
            return Ok(());
        }
        Err(SnapshotError::Request(format!(
            "level {level}, array {:?}, patch {first_patch}: got {} values of {}; a shard begins at a multiple of {} and \
             this one has {expected} values of {}",
            array.header.name,
            values.len(),
            values.data_type().name(),
            array.shard,
            array.header.data_type.name(),
        )))
    }

    /// Creates the directories, the metadata of all arrays and levels and the parts in `directory`, which must not exist;
    /// returns the bytes written.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn create(&self, directory: &Path) -> Result<u64> {
        files::create_directory(directory)?;
        let mut bytes = 0;
        for (path, document) in &self.documents {
            let place = directory.join(path);
            files::create_directory(&place)?;
            bytes += files::write(&place.join("zarr.json"), document.to_string().as_bytes())?;
        }
        for (file, shard) in &self.parts {
            let place = directory.join(file);
            bytes += files::write(&place, shard)?;
            files::sync(&place)?;
        }
        Ok(bytes)
    }

    /// Compresses and stores one whole shard: the values of patches from `first_patch`, a multiple of
    /// [`Plan::shard_patches`]; returns the bytes written.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Request`] for values that are not one shard.
    pub fn store_shard(
        &self,
        directory: &Path,
        level: u8,
        array: &str,
        first_patch: u64,
        values: &Values,
    ) -> Result<u64> {
        let index = self.find(level, array)?;
        self.check(index, first_patch, values)?;
        let encoder = &self.arrays[index].1.encoder;
        let bytes = encoder.encode(values).map_err(SnapshotError::Request)?;
        files::write(&self.shard_file(directory, index, first_patch), &bytes)
    }

    /// Syncs a stored shard to the disk. Only who has stored it can do that: another host may know nothing of its bytes yet.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn sync_shard(
        &self,
        directory: &Path,
        level: u8,
        array: &str,
        first_patch: u64,
    ) -> Result<()> {
        let index = self.find(level, array)?;
        files::sync(&self.shard_file(directory, index, first_patch))
    }

    fn shard_file(&self, directory: &Path, index: usize, first_patch: u64) -> PathBuf {
        let (_, array) = &self.arrays[index];
        directory.join(array.encoder.shard_path(first_patch / array.shard))
    }

    /// Writes the root's metadata with the consolidated metadata of all arrays and the checksums of all metadata, syncs all metadata and directories of
    /// `partial`, whose shards are synced already, and renames it to `complete`; returns the bytes written.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Exists`] where `complete` is there and `replace` is not asked for.
    pub fn publish(&self, partial: &Path, complete: &Path, replace: bool) -> Result<u64> {
        let mut root = group(self.root.clone());
        let documents: Map<String, Value> = self.documents.clone().into_iter().collect();
        root["consolidated_metadata"] =
            json!({"kind": "inline", "must_understand": false, "metadata": documents});
        let root = root.to_string();
        let mut sums = checksums::line(checksums::ROOT, root.as_bytes());
        for (path, document) in &self.documents {
            let name = format!("{path}/zarr.json");
            sums += &checksums::line(&name, document.to_string().as_bytes());
        }
        let mut bytes = files::write(&partial.join(checksums::ROOT), root.as_bytes())?;
        let listed = partial.join(checksums::FILE);
        bytes += files::write(&listed, sums.as_bytes())?;
        files::sync(&listed)?;
        // arrays before the levels that they stand in
        let groups = self.documents.keys().rev().map(|path| partial.join(path));
        for group in groups.chain([partial.to_path_buf()]) {
            files::sync(&group.join("zarr.json"))?;
            files::sync(&group)?;
        }
        files::publish(partial, complete, replace)?;
        Ok(bytes)
    }
}

/// Plans one array of the level at `path`.
fn planned_array(path: &str, patches: u64, field: &FieldHeader) -> Result<PlannedArray> {
    let (shard, inner) = sharding(patches);
    let attributes =
        json!({"units": field.units, "cgs_factor": field.cgs_factor, "long_name": field.long_name});
    let layout = Layout {
        path: format!("{path}/{}", field.name),
        data_type: field.data_type,
        shape: std::iter::once(patches)
            .chain(field.shape.iter().copied())
            .collect(),
        shard,
        inner,
        dimensions: std::iter::once("patch".to_string())
            .chain(field.dimensions.iter().cloned())
            .collect(),
        attributes: to_map(&attributes)?,
    };
    Ok(PlannedArray {
        header: field.clone(),
        shard,
        patches,
        encoder: Encoder::new(&layout).map_err(SnapshotError::Request)?,
    })
}

/// Whether `name` is an array that the format adds to every level.
pub(crate) fn is_structural(name: &str) -> bool {
    name == ORIGIN || name == LEAF
}

#[cfg(test)]
mod tests {
    use super::sharding;

    #[test]
    fn shards_hold_all_patches_with_little_padding() {
        assert_eq!(sharding(0), (1, 1));
        assert_eq!(sharding(1), (1, 1));
        assert_eq!(sharding(7), (7, 7));
        assert_eq!(sharding(32), (32, 32));
        assert_eq!(sharding(33), (64, 32));
        assert_eq!(sharding(1024), (1024, 32));
        assert_eq!(sharding(1025), (544, 32));
        for patches in 1..5000 {
            let (shard, inner) = sharding(patches);
            assert_eq!(shard % inner, 0);
            let stored = patches.div_ceil(shard) * shard;
            assert!(shard <= 1024 && stored < patches + 32 * patches.div_ceil(shard));
        }
    }
}
