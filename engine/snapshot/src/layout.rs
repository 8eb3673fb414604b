//! How arrays are stored, and what is read of those of others.

use crate::header::DataType;
use serde_json::{Map, Value};

/// How one array is stored.
pub(crate) struct Layout {
    /// Place in the snapshot, e.g. `level_0/pressure`.
    pub path: String,
    /// Element type.
    pub data_type: DataType,
    /// Shape of the whole array; the first dimension is the patch.
    pub shape: Vec<u64>,
    /// Patches of a shard, a multiple of `inner`.
    pub shard: u64,
    /// Patches of an inner chunk.
    pub inner: u64,
    /// Names of all dimensions.
    pub dimensions: Vec<String>,
    /// The array's attributes.
    pub attributes: Map<String, Value>,
}

/// A whole array that anyone wrote.
pub(crate) struct Plain {
    pub shape: Vec<u64>,
    /// Names of its dimensions, if it has some.
    pub dimensions: Option<Vec<String>>,
    pub values: Vec<f64>,
}
