//! A snapshot on disk: plan, metadata, shards and publication.
//!
//! The steps are separate so that several processes can write one snapshot. One process calls
//! [`SnapshotPlan::create`], all call [`SnapshotPlan::store_shard`] and [`SnapshotPlan::sync_shard`] for
//! disjoint shards, and one calls [`SnapshotPlan::publish`] when all shards exist.
//!
//! A *row* holds the values of one patch or one particle.

use crate::checksums;
use crate::groups::{
    PlannedArray, PlannedGroup, level_path, particle_sharding, planned_array, to_map,
};
use crate::header::PATCH_SIZE;
use crate::{
    Attributes, Blob, FORMAT_VERSION, FieldHeader, LevelPlan, ParticlesPlan, Result, SnapshotError,
    Values, files,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Format version of snapshots without particles, which older programs can read.
const VERSION_WITHOUT_PARTICLES: u64 = 1;

/// Describes a snapshot before its data is written.
pub struct SnapshotPlan {
    /// Metadata documents by path in the snapshot, without the root's; sorted, as readers of consolidated
    /// metadata expect.
    documents: BTreeMap<String, Value>,
    root: Map<String, Value>,
    /// Groups: levels, then kinds of particles.
    pub(crate) groups: Vec<PlannedGroup>,
    pub(crate) arrays: Vec<PlannedArray>,
    /// Shards of the blobs, by path in the snapshot.
    parts: BTreeMap<PathBuf, Vec<u8>>,
}

/// Rejects floats that JSON cannot represent.
fn finite(name: &str, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(SnapshotError::Request(format!(
        "snapshot attribute `{name}` is {values:?}: it must be finite"
    )))
}

/// Returns a group's metadata document.
fn group(attributes: Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// Returns the attributes of the root group.
fn root_attributes(attributes: &Attributes, levels: &[LevelPlan]) -> Result<Map<String, Value>> {
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
    root.insert("format_version".into(), json!(VERSION_WITHOUT_PARTICLES));
    let (name, kind) = checksums::ATTRIBUTE;
    root.insert(name.into(), json!(kind));
    root.extend(to_map(attributes)?);
    root.insert("patch_size".into(), json!(PATCH_SIZE));
    root.insert("refinement_ratio".into(), json!(2));
    root.insert("levels".into(), json!(numbers));
    Ok(root)
}

impl SnapshotPlan {
    /// Plans a snapshot; `levels` ascend. Every level also gets the arrays `origin` and `leaf`.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] for headers that the format does not support.
    pub fn new(attributes: &Attributes, levels: &[LevelPlan]) -> Result<Self> {
        let mut plan = Self {
            documents: BTreeMap::new(),
            root: root_attributes(attributes, levels)?,
            groups: Vec::new(),
            arrays: Vec::new(),
            parts: BTreeMap::new(),
        };
        for level in levels {
            plan.add_level(level)?;
        }
        Ok(plan)
    }

    /// Plans one level.
    fn add_level(&mut self, level: &LevelPlan) -> Result<()> {
        let header = &level.header;
        finite("time of a level", &[header.time, header.dt])?;
        finite("cell_width", &header.cell_width)?;
        let planned = PlannedGroup::of_level(header.level, header.patches);
        let path = planned.path.clone();
        self.documents.insert(path, group(to_map(header)?));
        self.groups.push(planned);
        let own = [FieldHeader::origin(), FieldHeader::leaf()];
        let mut fields = own.iter().chain(&level.fields);
        fields.try_for_each(|field| self.add_array(self.groups.len() - 1, field))
    }

    /// Plans an array of a group.
    fn add_array(&mut self, group: usize, field: &FieldHeader) -> Result<()> {
        field.validate()?;
        let array = planned_array(&self.groups[group], group, field)?;
        let document = array.encoder.metadata().map_err(SnapshotError::Request)?;
        let path = &self.groups[group].path;
        let place = format!("{path}/{}", field.name);
        if self.documents.insert(place, document).is_some() {
            let text = format!("{path} has two arrays named {:?}", field.name);
            return Err(SnapshotError::Request(text));
        }
        self.arrays.push(array);
        Ok(())
    }

    /// Adds a kind of particles, with an array of each level for the number per patch
    /// ([`ParticlesHeader::counts`](crate::ParticlesHeader::counts)).
    ///
    /// # Errors
    /// [`SnapshotError::Request`] for headers that the format does not support, or a path that is used
    /// already.
    pub fn add_particles(&mut self, particles: &ParticlesPlan) -> Result<()> {
        let header = &particles.header;
        header.validate()?;
        let levels = 0..self.groups.len();
        let is_level = |n: &usize| self.groups[*n].path.starts_with("level_");
        for level in levels.filter(is_level).collect::<Vec<_>>() {
            self.add_array(level, &header.counts_header())?;
        }
        let taken = self.add_group(&header.path, group(to_map(header)?));
        if taken {
            let text = format!("there are two kinds of particles {:?}", header.path);
            return Err(SnapshotError::Request(text));
        }
        self.groups.push(PlannedGroup {
            path: header.path.clone(),
            rows: header.count,
            dimension: particles.dimension.clone(),
            sharding: particle_sharding(header.count),
        });
        self.root["format_version"] = json!(FORMAT_VERSION);
        let mut columns = particles.columns.iter();
        columns.try_for_each(|column| self.add_array(self.groups.len() - 1, column))
    }

    /// Adds a document to a group below the root; returns `true` if one was replaced.
    fn add_group(&mut self, path: &str, document: Value) -> bool {
        if let Some((parent, _)) = path.split_once('/') {
            let parent = self.documents.entry(parent.to_string());
            parent.or_insert_with(|| group(Map::new()));
        }
        self.documents.insert(path.to_string(), document).is_some()
    }

    /// Adds a blob, which [`SnapshotPlan::create`] stores.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] for a path that the format does not support or that is used already.
    pub fn add_blob(&mut self, part: &Blob) -> Result<()> {
        let (document, file, shard) = part.encoded()?;
        let path = &part.header.path;
        if self.add_group(path, document) {
            let text = format!("there are two blobs {path:?}");
            return Err(SnapshotError::Request(text));
        }
        self.parts.insert(file, shard);
        Ok(())
    }

    /// Returns the patches per shard of `level`; 1 for an unknown level.
    pub fn shard_patches(&self, level: u8) -> usize {
        let path = level_path(level);
        let group = self.groups.iter().find(|group| group.path == path);
        group.map_or(1, |group| group.sharding.0 as usize)
    }

    /// Returns the index of an array in the plan.
    pub(crate) fn find(&self, group: &str, name: &str) -> Result<usize> {
        let is_it = |array: &PlannedArray| {
            self.groups[array.group].path == group && array.header.name == name
        };
        let found = self.arrays.iter().position(is_it);
        let none = || SnapshotError::Request(format!("no array {name:?} is planned in {group}"));
        found.ok_or_else(none)
    }

    /// Returns the name of an array for messages.
    pub(crate) fn name(&self, index: usize) -> String {
        let array = &self.arrays[index];
        format!("{}/{}", self.groups[array.group].path, array.header.name)
    }

    /// Rejects values that are not exactly one shard of the array.
    pub(crate) fn check(&self, index: usize, first: u64, values: &Values) -> Result<()> {
        let array = &self.arrays[index];
        let all = self.groups[array.group].rows;
        let rows = array.shard.min(all.saturating_sub(first));
        let expected = rows as usize * array.header.values_per_patch();
        if first.is_multiple_of(array.shard)
            && rows > 0
            && values.len() == expected
            && values.data_type() == array.header.data_type
        {
            return Ok(());
        }
        Err(SnapshotError::Request(format!(
            "{} from {first}: got {} values of {}; a shard begins at a multiple of {} and this one has {expected} values of {}",
            self.name(index),
            values.len(),
            values.data_type().name(),
            array.shard,
            array.header.data_type.name(),
        )))
    }

    /// Creates the new directory `directory` with all metadata and blobs; returns the bytes written.
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

    /// Compresses and stores one shard: the values of patches from `first_patch`, a multiple of
    /// [`SnapshotPlan::shard_patches`]; returns the bytes written.
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
        let index = self.find(&level_path(level), array)?;
        self.check(index, first_patch, values)?;
        self.store(directory, index, first_patch, values)
    }

    /// Stores a shard of the array at `index`, which [`SnapshotPlan::check`] has accepted.
    pub(crate) fn store(
        &self,
        directory: &Path,
        index: usize,
        first: u64,
        values: &Values,
    ) -> Result<u64> {
        let encoder = &self.arrays[index].encoder;
        let bytes = encoder.encode(values).map_err(|why| {
            SnapshotError::Request(format!(
                "{} cannot be compressed: {why}; if memory is short, allow more (ulimit -v) or use fewer threads",
                self.name(index)
            ))
        })?;
        files::write(&self.shard_file(directory, index, first), &bytes)
    }

    /// Syncs a stored shard to disk. Only the process that stored it can do so, since other hosts may not
    /// have its data.
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
        let index = self.find(&level_path(level), array)?;
        self.sync(directory, index, first_patch)
    }

    /// Syncs a stored shard of the array at `index`.
    pub(crate) fn sync(&self, directory: &Path, index: usize, first: u64) -> Result<()> {
        files::sync(&self.shard_file(directory, index, first))
    }

    fn shard_file(&self, directory: &Path, index: usize, first: u64) -> PathBuf {
        let array = &self.arrays[index];
        directory.join(array.encoder.shard_path(first / array.shard))
    }

    /// Writes the root metadata and checksums, and renames `partial` to `complete`; returns the bytes
    /// written. It syncs all metadata and directories first; shards are synced already.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Exists`] if `complete` exists and `replace` is `false`.
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
        // arrays before the levels that contain them
        let groups = self.documents.keys().rev().map(|path| partial.join(path));
        for group in groups.chain([partial.to_path_buf()]) {
            files::sync(&group.join("zarr.json"))?;
            files::sync(&group)?;
        }
        files::publish(partial, complete, replace)?;
        Ok(bytes)
    }
}
