//! Groups of arrays described by the metadata of a snapshot.

use crate::header::ORIGIN;
use crate::{
    DataType, FieldHeader, LEAF, LevelHeader, ParticlesHeader, Result, SnapshotError, bounds,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Arrays by name, with their metadata documents.
pub(crate) type Arrays = BTreeMap<String, (FieldHeader, Value)>;

/// Describes one level.
pub(crate) struct LevelEntry {
    pub header: LevelHeader,
    pub arrays: Arrays,
}

/// A group of arrays with the same number of rows.
pub(crate) struct ArrayGroup<'a> {
    /// Path in the snapshot.
    pub path: String,
    pub rows: u64,
    /// Number of rows to read at a time.
    pub step: u64,
    pub arrays: &'a Arrays,
}

impl ArrayGroup<'_> {
    /// Returns ranges of `step` rows that cover all rows.
    pub fn row_ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (rows, step) = (self.rows, self.step);
        let firsts = (0..rows).step_by(step as usize);
        firsts.map(move |first| first..(first + step).min(rows))
    }
}

/// Describes one kind of particles.
pub(crate) struct ParticlesEntry {
    pub header: ParticlesHeader,
    pub arrays: Arrays,
}

/// Parses a header from a group's attributes.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path, attributes: &Value) -> Result<T> {
    serde_json::from_value(attributes.clone()).map_err(|error| {
        SnapshotError::corrupt(&path.join("zarr.json"), format!("attributes: {error}"))
    })
}

/// Parses the header of an array from its metadata document.
fn field_header(path: &Path, name: &str, document: &Value, rows: u64) -> Result<FieldHeader> {
    let broken = |what: &str| {
        SnapshotError::corrupt(
            &path.join(name),
            format!("its metadata have no valid {what}"),
        )
    };
    let shape: Option<Vec<u64>> = serde_json::from_value(document["shape"].clone()).ok();
    let shape = shape
        .filter(|shape| shape.first() == Some(&rows))
        .ok_or_else(|| broken("shape"))?;
    let names: Option<Vec<String>> =
        serde_json::from_value(document["dimension_names"].clone()).ok();
    let names = names
        .filter(|names| names.len() == shape.len())
        .ok_or_else(|| broken("dimension_names"))?;
    if bounds::row_bytes(&shape[1..], 8).is_none() {
        return Err(broken("shape"));
    }
    let text = |key: &str| {
        document["attributes"][key]
            .as_str()
            .map(str::to_string)
            .ok_or_else(|| broken(key))
    };
    Ok(FieldHeader {
        name: name.to_string(),
        data_type: document["data_type"]
            .as_str()
            .and_then(DataType::from_name)
            .ok_or_else(|| broken("data_type"))?,
        dimensions: names[1..].to_vec(),
        shape: shape[1..].to_vec(),
        units: text("units")?,
        cgs_factor: document["attributes"]["cgs_factor"]
            .as_f64()
            .ok_or_else(|| broken("cgs_factor"))?,
        // stores of earlier programs do not have it
        cgs_units: text("cgs_units").unwrap_or_else(|_| "1".into()),
        scale_factor_exponent: document["attributes"]["scale_factor_exponent"].as_f64(),
        long_name: text("long_name")?,
        derived: document["attributes"]["derived"] == true,
    })
}

/// Returns the arrays of a group; all have `rows` rows.
fn arrays(path: &Path, group: &str, rows: u64, documents: &Map<String, Value>) -> Result<Arrays> {
    let mut arrays = BTreeMap::new();
    for (key, document) in documents {
        let rest = key.strip_prefix(group);
        if let Some(name) = rest.and_then(|rest| rest.strip_prefix('/')) {
            let header = field_header(&path.join(group), name, document, rows)?;
            arrays.insert(name.to_string(), (header, document.clone()));
        }
    }
    Ok(arrays)
}

fn undescribed(path: &Path, array: &str) -> SnapshotError {
    SnapshotError::corrupt(&path.join(array), "the metadata do not describe it")
}

/// Parses one level from the consolidated metadata.
pub(crate) fn level_entry(
    path: &Path,
    level: u64,
    documents: &Map<String, Value>,
) -> Result<LevelEntry> {
    let group = format!("level_{level}");
    let place = path.join(&group);
    let document = documents.get(&group);
    let document = document.ok_or_else(|| undescribed(&place, ""))?;
    let header: LevelHeader = parse(&place, &document["attributes"])?;
    bounds::check_level(&place, level, &header)?;
    let arrays = arrays(path, &group, header.patches, documents)?;
    let lacking = [ORIGIN, LEAF]
        .into_iter()
        .find(|name| !arrays.contains_key(*name));
    match lacking {
        Some(name) => Err(undescribed(&place, name)),
        None => Ok(LevelEntry { header, arrays }),
    }
}

/// Parses all kinds of particles from the consolidated metadata, by ascending path. Each level has the number
/// of particles per patch.
pub(crate) fn particles_entries(
    path: &Path,
    documents: &Map<String, Value>,
    levels: &[LevelEntry],
) -> Result<Vec<ParticlesEntry>> {
    let is_kind =
        |key: &str, document: &Value| key.contains('/') && document["node_type"] == "group";
    let mut kinds: Vec<ParticlesEntry> = Vec::new();
    for (key, document) in documents.iter().filter(|(key, d)| is_kind(key, d)) {
        let header: ParticlesHeader = parse(&path.join(key), &document["attributes"])?;
        let header = ParticlesHeader {
            path: key.clone(),
            ..header
        };
        let counts = header.counts();
        for level in levels {
            let is_counts = |(array, _): &(FieldHeader, Value)| {
                array.data_type == DataType::U32 && array.shape.is_empty()
            };
            if !level.arrays.get(&counts).is_some_and(is_counts) {
                let place = path.join(format!("level_{}", level.header.level));
                return Err(undescribed(&place, &counts));
            }
        }
        let arrays = arrays(path, key, header.count, documents)?;
        kinds.push(ParticlesEntry { header, arrays });
    }
    kinds.sort_by(|a, b| a.header.path.cmp(&b.header.path));
    Ok(kinds)
}
