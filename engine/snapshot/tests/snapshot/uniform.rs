//! Initial states on a uniform grid, as others write them.

use crate::common::{Folder, write_array};
use nestar_snapshot::read_uniform;
use serde_json::{Value, json};
use std::path::Path;

/// A group with `density` (f64), `dye` (f32) and some arrays that do not fit.
fn group() -> Folder {
    let folder = Folder::new();
    std::fs::write(
        folder.0.join("zarr.json"),
        r#"{"zarr_format":3,"node_type":"group"}"#,
    )
    .unwrap();
    let wide: Vec<u8> = (0..24)
        .flat_map(|i| (f64::from(i) / 3.0).to_le_bytes())
        .collect();
    let narrow: Vec<u8> = (0..24)
        .flat_map(|i| (i as f32 / 3.0).to_le_bytes())
        .collect();
    let write = |name: &str, shape: &[u64], data_type: &str, dimensions: Value, bytes: &[u8]| {
        write_array(&folder.0.join(name), shape, data_type, dimensions, bytes);
    };
    write(
        "density",
        &[2, 3, 4],
        "float64",
        json!(["z", "y", "x"]),
        &wide,
    );
    write("dye", &[2, 3, 4], "float32", json!(null), &narrow);
    write("flat", &[6, 4], "float64", json!(null), &wide);
    write(
        "turned",
        &[2, 3, 4],
        "float64",
        json!(["x", "y", "z"]),
        &wide,
    );
    write("other", &[4, 3, 2], "float64", json!(null), &wide);
    write("text", &[2, 3, 4], "bool", json!(null), &wide[..24]);
    let mut holes = wide.clone();
    holes[23 * 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    write("holes", &[2, 3, 4], "float64", json!(null), &holes);
    folder
}

#[test]
fn arrays_of_a_group_are_read_as_f64() {
    let folder = group();
    let arrays = read_uniform(&folder.0, &["density", "dye"]).unwrap();
    assert_eq!(arrays[0].name, "density");
    assert_eq!(arrays[1].shape, [2, 3, 4]);
    assert!(
        arrays[0]
            .values
            .iter()
            .enumerate()
            .all(|(i, &value)| value == i as f64 / 3.0)
    );
    assert!(
        arrays[1]
            .values
            .iter()
            .enumerate()
            .all(|(i, &value)| value == f64::from(i as f32 / 3.0))
    );
    let alone = read_uniform(&folder.0.join("density"), &["rho"]).unwrap();
    assert_eq!(alone[0].values, arrays[0].values);
}

#[test]
fn a_missing_chunk_is_refused_and_not_read_as_zeros() {
    let folder = group();
    let chunk = folder.0.join("density/c/0/0/0");
    assert!(chunk.is_file());
    std::fs::remove_file(chunk).unwrap();
    let error = read_uniform(&folder.0, &["density"])
        .unwrap_err()
        .to_string();
    for text in [
        "density",
        "c/0/0/0 is missing and would be read as 0;",
        "write_empty_chunks",
    ] {
        assert!(error.contains(text), "no {text:?} in {error}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let folder = group();
    let error = |names: &[&str]| read_uniform(&folder.0, names).unwrap_err().to_string();
    assert!(error(&["flat"]).contains("[6, 4]; three dimensions"));
    assert!(error(&["turned"]).contains("x, y, z; transpose"));
    assert!(error(&["density", "other"]).contains("[4, 3, 2], that of density is [2, 3, 4]"));
    assert!(error(&["text"]).contains("bool"));
    assert!(error(&["holes"]).contains("[1, 2, 3] is NaN"));
    assert!(error(&["velocity"]).contains("density, dye, flat"));
    let other = |path: &Path, names: &[&str]| read_uniform(path, names).unwrap_err().to_string();
    assert!(other(&folder.0.join("nothing"), &["a"]).contains("nothing with this name"));
    assert!(other(&folder.0.join("density/c"), &["a"]).contains("no zarr.json"));
    assert!(other(&folder.0.join("density"), &["a", "b"]).contains("it is one array"));
}
