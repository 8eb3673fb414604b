//! Groups of arrays in a snapshot, and their division into shards.

use crate::zarr::ArrayLayout;
use crate::zarr::Encoder;
use crate::{FieldHeader, Result, SnapshotError};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Largest number of patches in a shard (4 MiB of f64 cells).
pub const SHARD_PATCHES: u64 = 1024;
/// Patches per inner chunk (128 KiB of f64 cells), the smallest unit that readers decode.
const INNER_PATCHES: u64 = 32;
/// Largest number of particles in a shard (2 MiB of f64).
pub(crate) const SHARD_PARTICLES: u64 = 1 << 18;
/// Particles per inner chunk (128 KiB of f64).
const INNER_PARTICLES: u64 = 1 << 14;

/// An array of a snapshot plan.
pub(crate) struct PlannedArray {
    /// The array's header.
    pub header: FieldHeader,
    /// Index of its group in [`SnapshotPlan::groups`](crate::SnapshotPlan).
    pub group: usize,
    /// Rows per shard.
    pub shard: u64,
    pub encoder: Encoder,
}

/// A group of arrays with the same number of rows.
pub(crate) struct PlannedGroup {
    /// Path in the snapshot.
    pub path: String,
    /// Rows of each array.
    pub rows: u64,
    /// Name of the first dimension.
    pub dimension: String,
    /// Rows per shard and per inner chunk.
    pub sharding: (u64, u64),
}

impl PlannedGroup {
    /// Plans the group of a level.
    pub fn of_level(level: u8, patches: u64) -> Self {
        Self {
            path: level_path(level),
            rows: patches,
            dimension: "patch".into(),
            sharding: sharding(patches),
        }
    }

    /// Returns the numbers of all shards.
    pub fn shards(&self) -> Range<u64> {
        0..self.rows.div_ceil(self.sharding.0)
    }
}

/// Returns the path of a level's group.
pub(crate) fn level_path(level: u8) -> String {
    format!("level_{level}")
}

/// Returns the patches per shard and per inner chunk; shards have equal sizes to reduce padding.
pub(crate) fn sharding(patches: u64) -> (u64, u64) {
    sharding_by(patches, [SHARD_PATCHES, INNER_PATCHES])
}

/// Returns the particles per shard and per inner chunk.
pub(crate) fn particle_sharding(particles: u64) -> (u64, u64) {
    sharding_by(particles, [SHARD_PARTICLES, INNER_PARTICLES])
}

fn sharding_by(rows: u64, [most, inner]: [u64; 2]) -> (u64, u64) {
    let inner = rows.clamp(1, inner);
    let shards = rows.div_ceil(most).max(1);
    let shard = rows.div_ceil(shards).div_ceil(inner).max(1) * inner;
    (shard, inner)
}

/// Converts a header to attributes.
pub(crate) fn to_map<T: serde::Serialize>(header: &T) -> Result<Map<String, Value>> {
    match serde_json::to_value(header) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(SnapshotError::Request(
            "a header is not an object".to_string(),
        )),
        Err(error) => Err(SnapshotError::Request(format!(
            "snapshot attributes: {error}"
        ))),
    }
}

/// Plans an array of the group with index `group`.
pub(crate) fn planned_array(
    group: &PlannedGroup,
    number: usize,
    field: &FieldHeader,
) -> Result<PlannedArray> {
    let (shard, inner) = group.sharding;
    let mut attributes = json!({
        "units": field.units,
        "cgs_factor": field.cgs_factor,
        "cgs_units": field.cgs_units,
        "long_name": field.long_name,
    });
    if let Some(exponent) = field.scale_factor_exponent {
        attributes["scale_factor_exponent"] = json!(exponent);
    }
    if field.derived {
        attributes["derived"] = json!(true);
    }
    let layout = ArrayLayout {
        path: format!("{}/{}", group.path, field.name),
        data_type: field.data_type,
        shape: std::iter::once(group.rows)
            .chain(field.shape.iter().copied())
            .collect(),
        shard,
        inner,
        dimensions: std::iter::once(group.dimension.clone())
            .chain(field.dimensions.iter().cloned())
            .collect(),
        attributes: to_map(&attributes)?,
    };
    Ok(PlannedArray {
        header: field.clone(),
        group: number,
        shard,
        encoder: Encoder::new(&layout).map_err(SnapshotError::Request)?,
    })
}

#[cfg(test)]
mod tests {
    use super::sharding;

    #[test]
    fn shards_hold_all_patches_with_little_padding() {
        assert_eq!(sharding(0), (1, 1));
        assert_eq!(sharding(1), (1, 1));
        assert_eq!(sharding(7), (7, 7));
        assert_eq!(sharding(32), (32, 32));
        assert_eq!(sharding(33), (64, 32));
        assert_eq!(sharding(1024), (1024, 32));
        assert_eq!(sharding(1025), (544, 32));
        for patches in 1..5000 {
            let (shard, inner) = sharding(patches);
            assert_eq!(shard % inner, 0);
            let stored = patches.div_ceil(shard) * shard;
            assert!(shard <= 1024 && stored < patches + 32 * patches.div_ceil(shard));
        }
    }
}
