//! Invalid numbers in metadata: an error names file and key before memory is allocated.

use crate::common::{Folder, attributes, level, write};
use nestar_snapshot::{
    Blob, DataType, LEAF, Result, Role, Snapshot, SnapshotError, SnapshotPlan, SnapshotWriter,
    digest, read_uniform, summary,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A snapshot without checksums of the metadata, as older versions wrote it.
fn unchecked(folder: &Folder) -> (PathBuf, Value) {
    let levels = [level(0, 64, DataType::F64), level(1, 40, DataType::F32)];
    let path = write(&folder.target(0), &attributes(), &levels)
        .path()
        .to_path_buf();
    std::fs::remove_file(path.join("checksums")).unwrap();
    let text = std::fs::read(path.join("zarr.json")).unwrap();
    let mut document: Value = serde_json::from_slice(&text).unwrap();
    document["attributes"]
        .as_object_mut()
        .unwrap()
        .remove("checksums");
    (path, document)
}

/// Uses a snapshot in every way that commands do.
fn used(path: &Path) -> Result<()> {
    let snapshot = Snapshot::open(path)?;
    snapshot.read(0, LEAF)?;
    summary(&snapshot)?;
    digest(&snapshot)?;
    snapshot.verify(|_| ())
}

fn written(path: &Path, document: &Value) -> Result<()> {
    std::fs::write(path.join("zarr.json"), document.to_string()).unwrap();
    used(path)
}

/// Pointers to all numbers of a document.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Number(_) => found.push(at.to_string()),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(n, item)| numbers(item, &format!("{at}/{n}"), found));
        }
        Value::Object(map) => map
            .iter()
            .for_each(|(key, item)| numbers(item, &format!("{at}/{}", escaped(key)), found)),
        _ => {}
    }
}

#[test]
fn impossible_numbers_are_refused_by_file_and_key() {
    let folder = Folder::new();
    let (path, document) = unchecked(&folder);
    assert_eq!(written(&path, &document), Ok(()));
    let level = "/consolidated_metadata/metadata/level_0/attributes";
    let leaf = "/consolidated_metadata/metadata/level_0~1leaf/shape/0";
    for (key, number, name) in [
        ("/attributes/root_cells/1", json!(0), "root_cells[1]"),
        ("/attributes/root_cells/2", json!(u64::MAX), "root_cells[2]"),
        (
            "/attributes/domain_right_edge/0",
            json!(-7.0),
            "domain_right_edge[0]",
        ),
        ("/attributes/levels/0", json!(1u64 << 60), "levels"),
        (&format!("{level}/patches"), json!(1u64 << 60), "patches"),
        (&format!("{level}/level"), json!(200), "level is 200"),
        (&format!("{level}/cell_width/0"), json!(0.0), "cell_width"),
        (leaf, json!(1u64 << 60), "leaf"),
    ] {
        let mut changed = document.clone();
        *changed
            .pointer_mut(key)
            .unwrap_or_else(|| panic!("no {key}")) = number;
        let error = written(&path, &changed).expect_err(key);
        assert!(
            matches!(error, SnapshotError::Corrupt { .. }),
            "{key}: {error}"
        );
        assert!(error.to_string().contains(name), "{key}: {error}");
    }
}

#[test]
fn no_number_of_the_metadata_takes_memory_or_panics() {
    let folder = Folder::new();
    let (path, document) = unchecked(&folder);
    let mut all = Vec::new();
    numbers(&document, "", &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for key in &all {
        for number in [
            json!(0),
            json!(-1),
            json!(1u64 << 31),
            json!(1u64 << 60),
            json!(u64::MAX),
            json!(1e308),
        ] {
            let mut changed = document.clone();
            *changed.pointer_mut(key).expect("a number") = number;
            // whether it is an error depends on the key
            let _ = written(&path, &changed);
        }
    }
}

#[test]
fn patches_that_their_files_cannot_hold_are_refused_before_they_are_read() {
    let folder = Folder::new();
    let (path, mut document) = unchecked(&folder);
    let many = json!(1u64 << 31);
    let metadata = &mut document["consolidated_metadata"]["metadata"];
    metadata["level_0"]["attributes"]["patches"] = many.clone();
    for name in ["origin", "leaf", "density", "energy", "magnetic_x_face"] {
        let array = &mut metadata[format!("level_0/{name}")];
        array["shape"][0] = many.clone();
        array["chunk_grid"]["configuration"]["chunk_shape"][0] = many.clone();
        array["codecs"][0]["configuration"]["chunk_shape"][0] = many.clone();
    }
    let error = written(&path, &document)
        .expect_err("memory for 2^31 patches")
        .to_string();
    assert!(
        error.contains("cannot be in") && error.contains("level_0"),
        "{error}"
    );
}

#[test]
fn a_state_of_zeros_that_is_stored_as_nothing_is_read() {
    let folder = Folder::new();
    let state = Blob::new("state/table".into(), 1, true, vec![0; 64 << 20]);
    let target = folder.target(0);
    let mut plan = SnapshotPlan::new(&attributes(), &[]).unwrap();
    plan.add_blob(&state).unwrap();
    let writer = SnapshotWriter::begin_share(&target, plan, Role::Only, &[]);
    let path = writer.unwrap().finish().unwrap().wait().unwrap().path;
    let snapshot = Snapshot::open(&path).unwrap();
    assert!(snapshot.file_bytes().unwrap() < 16 << 20);
    assert_eq!(snapshot.read_blob("state/table"), Ok(state.bytes));
}

#[test]
fn uniform_arrays_that_their_files_cannot_hold_are_refused() {
    let folder = Folder::new();
    let path = folder.0.join("big.zarr");
    std::fs::create_dir_all(&path).unwrap();
    let mut document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [8, 8, 8], "data_type": "float64", "fill_value": 0.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8, 8]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    });
    std::fs::write(path.join("c.0.0.0"), vec![0; 4096]).unwrap();
    let mut read = |shape: [u64; 3], chunk: [u64; 3]| {
        document["shape"] = json!(shape);
        document["chunk_grid"]["configuration"]["chunk_shape"] = json!(chunk);
        std::fs::write(path.join("zarr.json"), document.to_string()).unwrap();
        read_uniform(&path, &["density"])
    };
    assert!(read([8, 8, 8], [8, 8, 8]).is_ok());
    for (shape, chunk) in [
        ([1 << 20, 1 << 20, 1 << 20], [8, 8, 8]),
        ([u64::MAX, 8, 8], [8, 8, 8]),
        ([8, 8, 8], [1 << 40, 8, 8]),
        ([1 << 20, 1 << 20, 1 << 20], [1 << 20, 1 << 20, 1 << 20]),
        ([0, 8, 8], [8, 8, 8]),
    ] {
        let error = read(shape, chunk).map(|_| ());
        // an array without cells is refused by who asks for it
        assert!(shape[0] == 0 || error.is_err(), "{shape:?}");
    }
}
