//! Bytes beside the fields that the program needs to continue: the state of plugins, components of patches.

use crate::header::is_name;
use crate::layout::ArrayLayout;
use crate::zarr::Encoder;
use crate::{DataType, Result, SnapshotError, Values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// The groups that hold [`Blob`]s.
pub const BLOB_GROUPS: [&str; 2] = ["components", "state"];

/// What describes a [`Blob`]: the attributes of its array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobHeader {
    /// Place in the snapshot: one of [`BLOB_GROUPS`], `/`, and a name of letters, digits and `_`.
    #[serde(skip)]
    pub path: String,
    /// Version of the encoding, which the owner of the bytes counts.
    pub version: u32,
    /// Whether the digest covers the bytes; false where they tell how a run computed, not what.
    pub in_digest: bool,
    /// Number of bytes.
    pub length: u64,
}

/// A named sequence of bytes with the version of its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// What describes it.
    pub header: BlobHeader,
    /// The content, `header.length` bytes.
    pub bytes: Vec<u8>,
}

impl Blob {
    /// The part at `path`.
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

    /// Refuses places that the format has no room for.
    fn validate(&self) -> Result<()> {
        match self.header.path.split_once('/') {
            Some((group, name)) if BLOB_GROUPS.contains(&group) && is_name(name) => Ok(()),
            _ => Err(SnapshotError::Request(format!(
                "part {:?}: its place is one of the groups {BLOB_GROUPS:?}, `/`, and a name of letters, digits and `_`",
                self.header.path
            ))),
        }
    }

    /// The array's metadata document, the path of its only shard below the snapshot's directory, and that shard.
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
            // dimensions of one name have one length in a group, for readers such as xarray
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

/// The parts among the documents of a snapshot, by path, each with its document.
pub(crate) fn described(
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
