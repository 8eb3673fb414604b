//! How arrays are stored, and what is read of those of others.

use crate::header::DataType;
use serde_json::{Map, Value};
use std::num::NonZeroU64;

/// How one array is stored.
pub(crate) struct ArrayLayout {
    /// Place in the snapshot, e.g. `level_0/pressure`.
    pub path: String,
    /// Element type.
    pub data_type: DataType,
    /// Shape of the whole array; the first dimension is the patch, or the item.
    pub shape: Vec<u64>,
    /// Patches or items of a shard, a multiple of `inner`.
    pub shard: u64,
    /// Patches or items of an inner chunk.
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

/// `shape` with the first dimension replaced by `patches`.
pub(crate) fn chunk_shape(shape: &[u64], patches: u64) -> Vec<u64> {
    std::iter::once(patches)
        .chain(shape[1..].iter().copied())
        .collect()
}

/// `shape` as the codecs want it; every dimension is at least 1.
pub(crate) fn non_zero(shape: &[u64]) -> Vec<NonZeroU64> {
    shape
        .iter()
        .map(|&n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN))
        .collect()
}

/// The indices of chunk `number` of a grid of chunks, counted along the last dimension first.
pub(crate) fn indices(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut indices = vec![0; grid.len()];
    for (index, length) in indices.iter_mut().zip(grid).rev() {
        *index = number % length;
        number /= length;
    }
    indices
}
