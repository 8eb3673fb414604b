//! Items: what lies in patches in any number, such as the particles of a species. What is known of all of them stands in arrays, one
//! behind the other by level, by the patch's place on its level and by identity; an array of each level says how many a patch has.

use crate::header::is_name;
use crate::parts::BLOB_GROUPS;
use crate::{DataType, FieldHeader, Result, SnapshotError};
use serde::{Deserialize, Serialize};

/// What describes a kind of items: the attributes of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParticlesHeader {
    /// Place in the snapshot: a group, `/`, and a name, each of letters, digits and `_`, for example `particles/stars`.
    #[serde(skip)]
    pub path: String,
    /// How many there are.
    pub count: u64,
    /// Version of what the arrays mean, which the owner of the items counts.
    pub version: u32,
}

impl ParticlesHeader {
    /// Name of the array of each level that says how many items lie in a patch: `[patch]`, u32.
    #[must_use]
    pub fn counts(&self) -> String {
        Self::counts_of(&self.path)
    }

    /// The same, of the kind at `path`.
    #[must_use]
    pub fn counts_of(path: &str) -> String {
        path.replace('/', "_")
    }

    /// The header of that array.
    pub(crate) fn counts_header(&self) -> FieldHeader {
        let long_name = format!("number of {} in the patch", self.path);
        FieldHeader {
            dimensions: vec![],
            shape: vec![],
            ..FieldHeader::cells(&self.counts(), DataType::U32, "1", 1.0, &long_name)
        }
    }

    /// Refuses places that the format has no room for.
    pub(crate) fn validate(&self) -> Result<()> {
        let is_free = |group: &str| !BLOB_GROUPS.contains(&group) && !group.starts_with("level_");
        match self.path.split_once('/') {
            Some((group, name)) if is_name(group) && is_free(group) && is_name(name) => Ok(()),
            _ => Err(SnapshotError::Request(format!(
                "items {:?}: their place is a group that is none of {BLOB_GROUPS:?} and no level, `/`, and a name, each of letters, digits \
                 and `_`",
                self.path
            ))),
        }
    }
}

/// What the writer is told about a kind of items.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticlesPlan {
    /// The attributes.
    pub header: ParticlesHeader,
    /// Name of the first dimension of the arrays, for example `particle`.
    pub dimension: String,
    /// The arrays.
    pub columns: Vec<FieldHeader>,
}
