//! Snapshots in memory: all values of all levels at once.

use crate::store::SnapshotPlan;
use crate::{Attributes, LevelPlan, Result, SnapshotError, Values, files};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A snapshot in memory, without particles and blobs.
#[derive(Clone, Debug)]
pub struct SnapshotData {
    /// Attributes.
    pub attributes: Attributes,
    /// Headers of the levels and of their fields.
    pub levels: Vec<LevelPlan>,
    /// Values of all arrays of each level, those of [`ORIGIN`](crate::ORIGIN) and [`LEAF`](crate::LEAF) among them.
    pub arrays: Vec<BTreeMap<String, Values>>,
}

impl SnapshotData {
    /// Writes the snapshot to the directory `path`: under a temporary name, which it gets when all is on disk. An existing
    /// snapshot is replaced.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; [`SnapshotError::Request`] for headers or values that the format does not support.
    pub fn store(&self, path: &Path) -> Result<()> {
        let partial = partial_path(path);
        files::remove_tree(&partial)?;
        let stored = self.store_in(&partial);
        let published = stored.and_then(|plan| plan.publish(&partial, path, true));
        if published.is_err() {
            // the error of the snapshot matters
            let _ = files::remove_tree(&partial);
        }
        published.map(|_| ())
    }

    /// Stores and syncs all arrays in the new directory `partial`.
    fn store_in(&self, partial: &Path) -> Result<SnapshotPlan> {
        let plan = SnapshotPlan::new(&self.attributes, &self.levels)?;
        plan.create(partial)?;
        let mut shards = Vec::new();
        for (level, arrays) in self.levels.iter().zip(&self.arrays) {
            let (number, patches) = (level.header.level, level.header.patches);
            let size = plan.shard_patches(number) as u64;
            for (name, values) in arrays {
                let firsts = (0..patches).step_by(size as usize);
                let rows = firsts.map(|first| first..(first + size).min(patches));
                shards.extend(rows.map(|rows| (number, name, values, patches, rows)));
            }
        }
        let store = |(level, name, values, patches, rows): (u8, &String, &Values, u64, _)| {
            let rows: std::ops::Range<u64> = rows;
            let (first, list) = (rows.start, rows.collect::<Vec<_>>());
            let length = values.len() / patches as usize;
            plan.store_shard(partial, level, name, first, &values.rows(length, &list))?;
            plan.sync_shard(partial, level, name, first)
        };
        shards.into_par_iter().try_for_each(store)?;
        Ok(plan)
    }
}

/// Returns the temporary name of a file or directory.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// Writes a file under a temporary name, which it gets when its content is on disk.
///
/// # Errors
/// [`SnapshotError::Io`].
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = partial_path(path);
    let written = files::write(&partial, bytes).and_then(|_| files::sync(&partial));
    let written = written.and_then(|()| {
        let renamed = std::fs::rename(&partial, path);
        renamed.map_err(|error| SnapshotError::io("rename the finished file to", path, &error))
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written?;
    files::sync(path.parent().unwrap_or(Path::new(".")))
}
