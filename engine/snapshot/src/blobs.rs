//! Byte arrays besides the fields that a restart needs: plugin states and patch components.

use crate::header::{BLOB_GROUPS, is_name};
use crate::zarr::ArrayLayout;
use crate::zarr::Encoder;
use crate::{DataType, Result, SnapshotError, Values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// Describes a [`Blob`]: the attributes of its array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobHeader {
    /// Path in the snapshot: one of [`BLOB_GROUPS`], `/`, and a name of letters, digits and `_`.
    #[serde(skip)]
    pub path: String,
    /// Version of the encoding, set by the owner.
    pub version: u32,
    /// `true` if the digest covers the bytes; `false` if they describe how a run computed, not what.
    pub in_digest: bool,
    /// Number of bytes.
    pub length: u64,
}

/// A named byte array with the version of its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Attributes of the array.
    pub header: BlobHeader,
    /// The content, `header.length` bytes.
    pub bytes: Vec<u8>,
}

impl Blob {
    /// Creates the blob at `path`.
    pub fn new(path: String, version: u32, in_digest: bool, bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        let header = BlobHeader {
            path,
            version,
            in_digest,
            length,
        };
        Self { header, bytes }
    }

    /// Rejects paths that the format does not support.
    fn validate(&self) -> Result<()> {
        match self.header.path.split_once('/') {
            Some((group, name)) if BLOB_GROUPS.contains(&group) && is_name(name) => Ok(()),
            _ => Err(SnapshotError::Request(format!(
                "blob {:?}: the path must be one of the groups {BLOB_GROUPS:?}, `/`, and a name of letters, digits and `_`",
                self.header.path
            ))),
        }
    }

    /// Returns the array's metadata document, the path of its only shard in the snapshot, and the shard.
    pub(crate) fn encoded(&self) -> Result<(Value, std::path::PathBuf, Vec<u8>)> {
        self.validate()?;
        let attributes = match serde_json::to_value(&self.header) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let name = self
            .header
            .path
            .split_once('/')
            .map_or("", |(_, name)| name);
        let layout = ArrayLayout {
            path: self.header.path.clone(),
            data_type: DataType::U8,
            // an array has no dimension of length 0
            shape: vec![1, self.header.length.max(1)],
            shard: 1,
            inner: 1,
            // readers such as xarray require one length per dimension name in a group
            dimensions: vec!["part".into(), format!("byte_{name}")],
            attributes,
        };
        let encode = || {
            let encoder = Encoder::new(&layout)?;
            let values = Values::U8(self.bytes.clone());
            let shard = encoder.encode(&values)?;
            Ok((encoder.metadata()?, encoder.shard_path(0), shard))
        };
        encode().map_err(SnapshotError::Request)
    }
}

/// Returns the blobs among the documents of a snapshot by path, with their documents.
pub(crate) fn find_blobs(
    snapshot: &Path,
    documents: &Map<String, Value>,
) -> Result<Vec<(BlobHeader, Value)>> {
    let is_part = |path: &str| {
        let group = path.split_once('/').map(|(group, _)| group);
        group.is_some_and(|group| BLOB_GROUPS.contains(&group))
    };
    let part = |(path, document): (&String, &Value)| {
        let header = BlobHeader::deserialize(&document["attributes"]).map_err(|error| {
            SnapshotError::corrupt(&snapshot.join(path), format!("attributes: {error}"))
        })?;
        let path = path.clone();
        Ok((BlobHeader { path, ..header }, document.clone()))
    };
    let parts = documents.iter().filter(|(path, _)| is_part(path));
    let mut parts: Vec<_> = parts.map(part).collect::<Result<_>>()?;
    parts.sort_by(|a, b| a.0.path.cmp(&b.0.path));
    Ok(parts)
}
