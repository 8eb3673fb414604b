//! Storage layout of arrays, and arrays of other programs.

use crate::header::DataType;
use serde_json::{Map, Value};
use std::num::NonZeroU64;

/// Describes how an array is stored.
pub(crate) struct ArrayLayout {
    /// Path in the snapshot, such as `level_0/pressure`.
    pub path: String,
    /// Element type.
    pub data_type: DataType,
    /// Shape of the whole array; the first dimension is the patch or the particle.
    pub shape: Vec<u64>,
    /// Patches or particles per shard, a multiple of `inner`.
    pub shard: u64,
    /// Patches or particles per inner chunk.
    pub inner: u64,
    /// Names of all dimensions.
    pub dimensions: Vec<String>,
    /// Attributes of the array.
    pub attributes: Map<String, Value>,
}

/// An array of any program, read completely.
pub(crate) struct Plain {
    pub shape: Vec<u64>,
    /// Names of the dimensions, if any.
    pub dimensions: Option<Vec<String>>,
    pub values: Vec<f64>,
}

/// Returns `shape` with the first dimension replaced by `patches`.
pub(crate) fn chunk_shape(shape: &[u64], patches: u64) -> Vec<u64> {
    std::iter::once(patches)
        .chain(shape[1..].iter().copied())
        .collect()
}

/// Returns `shape` as the codecs need it; every dimension is at least 1.
pub(crate) fn non_zero(shape: &[u64]) -> Vec<NonZeroU64> {
    shape
        .iter()
        .map(|&n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN))
        .collect()
}

/// Returns the indices of chunk `number` in a grid of chunks; the last dimension varies fastest.
pub(crate) fn indices(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut indices = vec![0; grid.len()];
    for (index, length) in indices.iter_mut().zip(grid).rev() {
        *index = number % length;
        number /= length;
    }
    indices
}
