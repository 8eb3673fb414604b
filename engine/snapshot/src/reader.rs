//! Reader of snapshots, and their verification against checksums.

use crate::blobs::{BlobHeader, find_blobs};
use crate::checksums::{FILE, ROOT, check, lines};
use crate::entries::{
    ArrayGroup, Arrays, LevelEntry, ParticlesEntry, level_entry, parse, particles_entries,
};
use crate::files::{self, SNAPSHOTS};
use crate::groups::{SHARD_PARTICLES, SHARD_PATCHES, level_path, particle_sharding, sharding};
use crate::header::ORIGIN;
use crate::zarr::Decoder;
use crate::{
    Attributes, FORMAT_VERSION, FieldHeader, LEAF, LevelHeader, ParticlesHeader, Result,
    SnapshotData, SnapshotError, Values, bounds, checksums,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A complete snapshot, open for reading. Headers are in memory; arrays are read on request.
pub struct Snapshot {
    path: PathBuf,
    /// Version of the format.
    pub(crate) version: u64,
    attributes: Attributes,
    levels: Vec<LevelEntry>,
    /// Kinds of particles by ascending path.
    particles: Vec<ParticlesEntry>,
    /// Blobs by ascending path, with their metadata documents.
    pub(crate) parts: Vec<(BlobHeader, Value)>,
    /// Values of a snapshot in memory, by group and array.
    memory: BTreeMap<(String, String), Values>,
}

/// Reads the root metadata document, or returns why `path` is no snapshot.
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

/// Returns the format version; rejects other Zarr stores and newer versions.
fn require_format(path: &Path, attributes: &Value) -> Result<u64> {
    if attributes["format"] != "nestar-snapshot" {
        return Err(SnapshotError::foreign(
            path,
            "a Zarr store without the attribute format = \"nestar-snapshot\"",
        ));
    }
    match attributes["format_version"].as_u64() {
        Some(version @ 1..=FORMAT_VERSION) => Ok(version),
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

impl Snapshot {
    /// Opens the snapshot directory `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Foreign`] (nothing, a file or other Zarr data), [`SnapshotError::Newer`],
    /// [`SnapshotError::Corrupt`], [`SnapshotError::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let document = root_document(path)?;
        let attributes = &document["attributes"];
        let version = require_format(path, attributes)?;
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
        let levels: Vec<LevelEntry> = levels.collect::<Result<_>>()?;
        let attributes = parse(path, attributes)?;
        bounds::check_attributes(path, &attributes)?;
        Ok(Self {
            version,
            attributes,
            particles: particles_entries(path, documents, &levels)?,
            levels,
            parts: find_blobs(path, documents)?,
            path: path.to_path_buf(),
            memory: BTreeMap::new(),
        })
    }

    /// Wraps a snapshot in memory, whose fields are read like those of one on disk. It has neither particles nor a path.
    #[must_use]
    pub fn in_memory(data: SnapshotData) -> Self {
        let mut memory = BTreeMap::new();
        let mut levels = Vec::new();
        for (plan, arrays) in data.levels.into_iter().zip(data.arrays) {
            let own = [FieldHeader::origin(), FieldHeader::leaf()];
            let headers = own.into_iter().chain(plan.fields);
            let entries = headers.map(|header| (header.name.clone(), (header, Value::Null)));
            levels.push(LevelEntry {
                arrays: entries.collect(),
                header: plan.header,
            });
            let group = level_path(levels[levels.len() - 1].header.level);
            let named = |(array, values)| ((group.clone(), array), values);
            memory.extend(arrays.into_iter().map(named));
        }
        Self {
            path: PathBuf::new(),
            version: 1,
            attributes: data.attributes,
            levels,
            particles: Vec::new(),
            parts: Vec::new(),
            memory,
        }
    }

    /// Returns the path of the snapshot.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the headers of all blobs by ascending path.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobHeader> {
        self.parts.iter().map(|(header, _)| header)
    }

    /// Reads the blob at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Corrupt`] for a missing, truncated or altered shard.
    pub fn read_blob(&self, path: &str) -> Result<Vec<u8>> {
        let found = self.parts.iter().find(|(header, _)| header.path == path);
        let (header, document) = found.ok_or_else(|| SnapshotError::Missing {
            path: self.path().into(),
            wanted: format!("part {path:?}"),
            known: self.blobs().map(|header| header.path.clone()).collect(),
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

    /// Returns the attributes of the snapshot.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the headers of all levels, coarse to fine.
    pub fn levels(&self) -> impl ExactSizeIterator<Item = &LevelHeader> {
        self.levels.iter().map(|entry| &entry.header)
    }

    /// Returns the headers of all kinds of particles by ascending path.
    pub fn particles(&self) -> impl ExactSizeIterator<Item = &ParticlesHeader> {
        self.particles.iter().map(|entry| &entry.header)
    }

    /// Returns the arrays of the kind of particles at `path`, sorted by name; empty for an unknown kind.
    pub fn columns(&self, path: &str) -> Vec<&FieldHeader> {
        let entry = self
            .particles
            .iter()
            .find(|entry| entry.header.path == path);
        let arrays = entry.into_iter().flat_map(|entry| entry.arrays.values());
        arrays.map(|(header, _)| header).collect()
    }

    /// Returns the fields of a level, sorted by name, without [`ORIGIN`], [`LEAF`] and the numbers of
    /// particles; empty for an unknown level.
    pub fn fields(&self, level: u8) -> Vec<&FieldHeader> {
        let entry = self.levels.iter().find(|entry| entry.header.level == level);
        let headers = entry
            .into_iter()
            .flat_map(|entry| entry.arrays.values().map(|(header, _)| header));
        let counts: Vec<String> = self.particles().map(ParticlesHeader::counts).collect();
        let is_field = |name: &String| name != ORIGIN && name != LEAF && !counts.contains(name);
        headers.filter(|header| is_field(&header.name)).collect()
    }

    /// Returns all groups of arrays: levels, then kinds of particles.
    pub(crate) fn groups(&self) -> impl Iterator<Item = ArrayGroup<'_>> {
        let levels = self.levels.iter().map(|entry| ArrayGroup {
            path: level_path(entry.header.level),
            rows: entry.header.patches,
            step: SHARD_PATCHES,
            arrays: &entry.arrays,
        });
        let particles = self.particles.iter().map(|entry| ArrayGroup {
            path: entry.header.path.clone(),
            rows: entry.header.count,
            step: SHARD_PARTICLES,
            arrays: &entry.arrays,
        });
        levels.chain(particles)
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

    /// Returns the decoder of an array of a group.
    fn decoder_in(&self, group: &str, arrays: &Arrays, array: &str) -> Result<Decoder> {
        let missing = || SnapshotError::Missing {
            path: self.path.clone(),
            wanted: format!("array {array:?} in {group}"),
            known: arrays.keys().cloned().collect(),
        };
        let (_, document) = arrays.get(array).ok_or_else(missing)?;
        Decoder::open(&self.path, &format!("{group}/{array}"), document)
    }

    /// Reads a range of rows of an array of any group.
    pub(crate) fn read_rows(
        &self,
        group: &str,
        arrays: &Arrays,
        array: &str,
        rows: Range<u64>,
    ) -> Result<Values> {
        let list: Vec<u64> = rows.clone().collect();
        if let Some(held) = self.rows_in_memory(group, arrays, array, &list) {
            return Ok(held);
        }
        let decoder = self.decoder_in(group, arrays, array)?;
        decoder.require(&rows)?;
        decoder.read(&list)
    }

    /// Returns rows of an array that is in memory.
    fn rows_in_memory(
        &self,
        group: &str,
        arrays: &Arrays,
        array: &str,
        rows: &[u64],
    ) -> Option<Values> {
        let held = self.memory.get(&(group.to_string(), array.to_string()))?;
        let (header, _) = arrays.get(array)?;
        Some(held.rows(header.values_per_patch(), rows))
    }

    /// Reads a range of particles of the kind at `path`: shape `[particle]` and the array's own shape.
    ///
    /// # Errors
    /// As [`Snapshot::read`]; [`SnapshotError::Request`] for a range beyond the last particle.
    pub fn read_particles(&self, path: &str, array: &str, range: Range<u64>) -> Result<Values> {
        let entry = self
            .particles
            .iter()
            .find(|entry| entry.header.path == path);
        let entry = entry.ok_or_else(|| SnapshotError::Missing {
            path: self.path.clone(),
            wanted: format!("particles {path:?}"),
            known: self.particles().map(|header| header.path.clone()).collect(),
        })?;
        let count = entry.header.count;
        if range.end > count {
            let text = format!("there are {count} particles {path:?}: the range must end before");
            return Err(SnapshotError::Request(text));
        }
        self.read_rows(path, &entry.arrays, array, range)
    }

    /// Returns the particles per shard, the most efficient unit for reading.
    pub fn shard_particles(particles: u64) -> u64 {
        particle_sharding(particles).0
    }

    /// Returns the patches per shard of a level with `patches` patches, the most efficient unit for reading.
    pub fn shard_patches(patches: usize) -> usize {
        sharding(patches as u64).0 as usize
    }

    /// Reads an array of a level: shape `[patch]` and the field's own shape.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Corrupt`] for a missing, truncated or altered shard.
    pub fn read(&self, level: u8, array: &str) -> Result<Values> {
        let patches = self.entry(level)?.header.patches;
        self.read_patches(level, array, 0..patches)
    }

    /// Reads a range of patches.
    ///
    /// # Errors
    /// As [`Snapshot::read`]; [`SnapshotError::Request`] for a range beyond the level's patches.
    pub fn read_patches(&self, level: u8, array: &str, range: Range<u64>) -> Result<Values> {
        let entry = self.entry(level)?;
        let count = entry.header.patches;
        if range.end > count {
            return Err(too_few(level, count));
        }
        self.read_rows(&level_path(level), &entry.arrays, array, range)
    }

    /// Reads selected patches in ascending order; decodes only the inner chunks that contain them.
    ///
    /// # Errors
    /// As [`Snapshot::read`]; [`SnapshotError::Request`] for patches that do not ascend or do not exist.
    pub fn read_selected(&self, level: u8, array: &str, patches: &[u64]) -> Result<Values> {
        let entry = self.entry(level)?;
        let count = entry.header.patches;
        if !patches.is_sorted_by(|a, b| a < b) || patches.last().is_some_and(|&last| last >= count)
        {
            return Err(too_few(level, count));
        }
        let group = level_path(level);
        match self.rows_in_memory(&group, &entry.arrays, array, patches) {
            Some(held) => Ok(held),
            None => self.decoder_in(&group, &entry.arrays, array)?.read(patches),
        }
    }

    /// Returns the bytes on disk.
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

/// Returns the number and the path of the latest complete snapshot in the run directory `directory`, if any.
///
/// # Errors
/// [`SnapshotError::Io`] if the directory cannot be listed.
pub fn latest(directory: &Path) -> Result<Option<(u32, PathBuf)>> {
    Ok(numbered(directory)?.pop())
}

/// Returns the complete snapshots in the run directory `directory`, by ascending number.
///
/// # Errors
/// As [`latest`].
pub fn list_complete(directory: &Path) -> Result<Vec<PathBuf>> {
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

impl Snapshot {
    /// Reads everything and compares it with its checksums; `progress` receives the name of each array before it
    /// is read.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] for missing, truncated or altered data; [`SnapshotError::Io`].
    pub fn verify(&self, mut progress: impl FnMut(&str)) -> Result<()> {
        self.verify_documents()?;
        for group in self.groups() {
            for name in group.arrays.keys() {
                progress(&format!("{}/{name}", group.path));
                for range in group.row_ranges() {
                    self.read_rows(&group.path, group.arrays, name, range)?;
                }
            }
        }
        for part in self.blobs() {
            progress(&part.path);
            self.read_blob(&part.path)?;
        }
        Ok(())
    }

    /// Reads the metadata documents of all groups and arrays and compares them with their checksums. The reader itself uses the copies in
    /// the root's document only, so that it does not notice damage that other readers of the store would.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] for a missing or altered document.
    pub fn verify_documents(&self) -> Result<()> {
        let Some(lines) = lines(self.path())? else {
            return Ok(());
        };
        for line in lines.lines() {
            let name = line.split_once("  ").map_or(line, |(_, name)| name);
            let file = self.path().join(name);
            let bytes = std::fs::read(&file)
                .map_err(|error| SnapshotError::corrupt(&file, error.to_string()))?;
            check(self.path(), &lines, name, &bytes)?;
        }
        self.require_all_listed(&lines)
    }

    /// Rejects documents without a checksum.
    fn require_all_listed(&self, lines: &str) -> Result<()> {
        let listed = |name: &str| {
            lines
                .lines()
                .any(|line| line.ends_with(&format!("  {name}")))
        };
        let mut names = vec![ROOT.to_string()];
        for group in self.groups() {
            let path = group.path;
            names.push(format!("{path}/{ROOT}"));
            let arrays = group.arrays.keys();
            names.extend(arrays.map(|array| format!("{path}/{array}/{ROOT}")));
        }
        names.extend(self.blobs().map(|part| format!("{}/{ROOT}", part.path)));
        match names.iter().find(|name| !listed(name)) {
            Some(name) => {
                let text = format!("it has no line for {name}");
                Err(SnapshotError::corrupt(&self.path().join(FILE), text))
            }
            None => Ok(()),
        }
    }
}
