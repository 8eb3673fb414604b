//! Digest of a snapshot's content.

use crate::entries::ArrayGroup;
use crate::{Result, Snapshot};
use serde_json::{Value, json};

/// Returns the digest of the snapshot's canonical content: 64 hexadecimal digits of BLAKE3.
///
/// It covers what the run computed and not how. It excludes the deck, the `restart` attribute, the last time
/// steps, units, precision, chunking, compression, and derived arrays. Two runs have the same digest exactly
/// if all arrays that are not derived have the same bits.
///
/// The hash is taken over these bytes, in this order:
///
/// 1. the *encoding* of the object `{format_version, time, step, domain_left_edge, domain_right_edge, root_cells,
///    boundary}` of the root's attributes, with all facts of the run;
/// 2. for each level, ascending: the *encoding* of `{level, time, cell_width}`; then for each array of the level,
///    names ascending bytewise, without derived ones: the *encoding* of `{name, dtype, shape}` (`dtype` as in Zarr, e.g. `"float64"`),
///    and the array's elements in row-major order, little-endian.
/// 3. for each kind of particles, paths ascending bytewise: the *encoding* of `{path, version, count}`; then its arrays as those of a
///    level.
/// 4. for each [blob](crate::Blob) that the digest covers, paths ascending bytewise: the *encoding* of
///    `{path, version, length}` and its bytes.
///
/// The *encoding* of a JSON value is a tag byte with its content:
/// `n` null; `t` true; `f` false; `d` any number, as the 8 little-endian bytes of its f64; `s` a string, as its length
/// in bytes (u64, little-endian) and its UTF-8; `a` an array, as its length (u64) and its encoded elements; `o` an
/// object, as its length (u64) and, keys ascending bytewise, each key encoded as a string and its encoded value.
///
/// # Errors
/// As [`Snapshot::read`] and [`Snapshot::verify_documents`].
pub fn digest(snapshot: &Snapshot) -> Result<String> {
    snapshot.verify_documents()?;
    let mut hasher = blake3::Hasher::new();
    let attributes = snapshot.attributes();
    let mut root = json!({
        "format_version": snapshot.version,
        "time": attributes.time,
        "step": attributes.step,
        "domain_left_edge": attributes.domain_left_edge,
        "domain_right_edge": attributes.domain_right_edge,
        "root_cells": attributes.root_cells,
        "boundary": attributes.boundary,
    });
    for (name, value) in &attributes.facts {
        root[name] = json!(value);
    }
    hasher.update(&encode(&root));
    let levels = snapshot.levels().map(
        |level| json!({"level": level.level, "time": level.time, "cell_width": level.cell_width}),
    );
    let particles = snapshot
        .particles()
        .map(|particles| json!({"path": particles.path, "version": particles.version, "count": particles.count}));
    for (header, group) in levels.chain(particles).zip(snapshot.groups()) {
        hasher.update(&encode(&header));
        hash_arrays(&mut hasher, snapshot, &group)?;
    }
    for part in snapshot.blobs().filter(|part| part.in_digest) {
        let header = json!({"path": part.path, "version": part.version, "length": part.length});
        hasher.update(&encode(&header));
        hasher.update(&snapshot.read_blob(&part.path)?);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Hashes the arrays of a group in ranges of rows.
fn hash_arrays(hasher: &mut blake3::Hasher, snapshot: &Snapshot, group: &ArrayGroup) -> Result<()> {
    let kept = group.arrays.iter().filter(|(_, (array, _))| !array.derived);
    for (name, (array, _)) in kept {
        let shape = [&[group.rows], &array.shape[..]].concat();
        let header = json!({"name": name, "dtype": array.data_type.name(), "shape": shape});
        hasher.update(&encode(&header));
        for range in group.row_ranges() {
            let values = snapshot.read_rows(&group.path, group.arrays, name, range)?;
            hasher.update(values.bytes());
        }
    }
    Ok(())
}

/// Encodes a JSON value as specified for [`digest`].
fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

fn encode_into(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(b'n'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Number(number) => {
            bytes.push(b'd');
            bytes.extend(number.as_f64().unwrap_or(f64::NAN).to_le_bytes());
        }
        Value::String(text) => encode_string(text, bytes),
        Value::Array(elements) => {
            bytes.push(b'a');
            bytes.extend((elements.len() as u64).to_le_bytes());
            elements
                .iter()
                .for_each(|element| encode_into(element, bytes));
        }
        Value::Object(map) => {
            bytes.push(b'o');
            bytes.extend((map.len() as u64).to_le_bytes());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            for (key, value) in entries {
                encode_string(key, bytes);
                encode_into(value, bytes);
            }
        }
    }
}

fn encode_string(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b's');
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::encode;
    use serde_json::json;

    #[test]
    fn encoding_has_sorted_keys_and_exact_floats() {
        let one = encode(&json!({"b": [1, null], "a": -0.0}));
        let other = encode(&json!({"a": -0.0, "b": [1.0, null]}));
        assert_eq!(one, other);
        let mut expected = b"o\x02\0\0\0\0\0\0\0s\x01\0\0\0\0\0\0\0ad".to_vec();
        expected.extend((-0.0f64).to_le_bytes());
        expected.extend(b"s\x01\0\0\0\0\0\0\0ba\x02\0\0\0\0\0\0\0d");
        expected.extend(1.0f64.to_le_bytes());
        expected.push(b'n');
        assert_eq!(one, expected);
        assert_ne!(encode(&json!(0.0)), encode(&json!(-0.0)));
    }
}
