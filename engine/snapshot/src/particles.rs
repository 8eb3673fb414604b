//! Particles in snapshots. Each kind is a group of arrays with one row per particle, sorted by level, Hilbert
//! order of the patch and identity. Each level has an array with the number of particles per patch.

use crate::blobs::BLOB_GROUPS;
use crate::header::is_name;
use crate::{DataType, FieldHeader, Result, SnapshotError};
use serde::{Deserialize, Serialize};

/// Describes a kind of particles: the attributes of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParticlesHeader {
    /// Path in the snapshot: a group, `/`, and a name, each of letters, digits and `_`, such as
    /// `particles/stars`.
    #[serde(skip)]
    pub path: String,
    /// Number of particles.
    pub count: u64,
    /// Version of the meaning of the arrays, set by their owner.
    pub version: u32,
}

impl ParticlesHeader {
    /// Returns the name of the array of each level with the number of particles per patch: `[patch]`, u32.
    #[must_use]
    pub fn counts(&self) -> String {
        Self::counts_of(&self.path)
    }

    /// Returns this name for the kind at `path`.
    #[must_use]
    pub fn counts_of(path: &str) -> String {
        path.replace('/', "_")
    }

    /// Returns the header of this array.
    pub(crate) fn counts_header(&self) -> FieldHeader {
        let long_name = format!("number of {} in the patch", self.path);
        FieldHeader {
            dimensions: vec![],
            shape: vec![],
            ..FieldHeader::cells(&self.counts(), DataType::U32, "1", 1.0, &long_name)
        }
    }

    /// Rejects paths that the format does not support.
    pub(crate) fn validate(&self) -> Result<()> {
        let is_free = |group: &str| !BLOB_GROUPS.contains(&group) && !group.starts_with("level_");
        match self.path.split_once('/') {
            Some((group, name)) if is_name(group) && is_free(group) && is_name(name) => Ok(()),
            _ => Err(SnapshotError::Request(format!(
                "particles {:?}: the path must be a group (none of {BLOB_GROUPS:?} and no level), `/`, and a name, each of letters, digits \
                 and `_`",
                self.path
            ))),
        }
    }
}

/// Describes a kind of particles for the writer.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticlesPlan {
    /// Attributes of the group.
    pub header: ParticlesHeader,
    /// Name of the first dimension of the arrays, such as `particle`.
    pub dimension: String,
    /// The arrays.
    pub columns: Vec<FieldHeader>,
}
