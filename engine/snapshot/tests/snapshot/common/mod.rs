//! Snapshots made of reproducible numbers, and folders that clean up after themselves.

mod disk;
pub mod stars;

pub use disk::{SmallDisk, random};

use nestar_snapshot::{
    Attributes, CgsUnits, DataType, FieldHeader, LEAF, LevelHeader, LevelPlan, ORIGIN,
    PendingSnapshot, Result, Snapshot, SnapshotTarget, SnapshotWriter, StoredPrecision, Values,
    WriterThreads,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of the test's own, removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "nestar-snapshot-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn target(&self, number: u32) -> SnapshotTarget {
        SnapshotTarget {
            directory: self.0.clone(),
            number,
            replace: false,
            queue_bytes: 1 << 20,
            threads: WriterThreads::new(1).unwrap(),
        }
    }

    /// Names of everything in `snapshots`, sorted.
    pub fn snapshots(&self) -> Vec<String> {
        names(&self.0.join("snapshots"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Names of a directory's entries, sorted; empty if it is not there.
pub fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![];
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into())
        .collect();
    names.sort();
    names
}

pub fn attributes() -> Attributes {
    Attributes {
        time: 0.1 + 0.2,
        step: 42,
        domain_left_edge: [-0.5, 0.0, 1.0 / 3.0],
        domain_right_edge: [0.5, 1.0, 2.0],
        root_cells: [64, 32, 16],
        boundary: json!({"x": ["outflow", "reflecting"], "y": "periodic", "z": {"lower": 1e-300, "é": [true, null]}}),
        precision: StoredPrecision::Double,
        units: CgsUnits {
            length_cgs: 3.0857e21,
            mass_cgs: 1.989e33,
            time_cgs: 3.15576e13,
            name: "galactic".into(),
            is_changing: false,
        },
        facts: [("gamma".into(), 5.0 / 3.0)].into(),
        config: "scenario = \"sedov\"\n".into(),
        view: None,
        restart: json!({"dt": "3fb999999999999a", "limiter": "courant"})
            .as_object()
            .unwrap()
            .clone(),
    }
}

pub fn level(level: u8, patches: u64, data_type: DataType) -> LevelPlan {
    let field = |name: &str| {
        FieldHeader::cells(
            name,
            data_type,
            "mass/length**3",
            6.77e-32,
            &format!("the {name}"),
        )
    };
    let face = FieldHeader {
        name: "magnetic_x_face".into(),
        dimensions: ["z", "y", "x_face"].map(String::from).to_vec(),
        shape: vec![8, 8, 9],
        scale_factor_exponent: Some(-2.5),
        ..field("magnetic_x_face")
    };
    let width = 1.0 / 64.0 / f64::from(1 << level);
    LevelPlan {
        header: LevelHeader {
            level,
            time: 0.1 + 0.2,
            dt: 1e-3 / 3.0,
            cell_width: [width, width * 2.0, width * 3.0],
            patches,
        },
        fields: vec![field("density"), field("energy"), face],
    }
}

/// A number that depends on all of its arguments; smooth enough to compress a little.
pub fn value(level: u8, name: &str, index: usize) -> f64 {
    let salt = f64::from(level) + name.len() as f64 * 0.37;
    (index as f64 * 0.001 + salt).sin() / 3.0 + 2.0
}

/// The whole array as the tests write it.
pub fn array(level: &LevelPlan, name: &str) -> Values {
    let number = level.header.level;
    let patches = level.header.patches as usize;
    if name == ORIGIN {
        return Values::I32((0..patches * 3).map(|i| (i * 8) as i32 - 16).collect());
    }
    if name == LEAF {
        return Values::U8((0..patches).map(|i| u8::from(i % 3 != 0)).collect());
    }
    let field = level
        .fields
        .iter()
        .find(|field| field.name == name)
        .unwrap();
    let numbers = (0..patches * field.values_per_patch()).map(|i| value(number, name, i));
    match field.data_type {
        DataType::F32 => Values::F32(numbers.map(|x| x as f32).collect()),
        _ => Values::F64(numbers.collect()),
    }
}

/// The part of an array from `first` to `end`, in elements.
pub fn part(values: &Values, first: usize, end: usize) -> Values {
    match values {
        Values::F32(v) => Values::F32(v[first..end].to_vec()),
        Values::F64(v) => Values::F64(v[first..end].to_vec()),
        Values::I32(v) => Values::I32(v[first..end].to_vec()),
        Values::U8(v) => Values::U8(v[first..end].to_vec()),
        Values::U32(v) => Values::U32(v[first..end].to_vec()),
        Values::U64(v) => Values::U64(v[first..end].to_vec()),
    }
}

/// Pushes one whole array, shard by shard.
pub fn push(
    writer: &mut SnapshotWriter,
    level: &LevelPlan,
    name: &str,
    values: &Values,
) -> Result<()> {
    let patches = level.header.patches as usize;
    let row = values.len() / patches.max(1);
    let shard = writer.shard_patches(level.header.level);
    for first in (0..patches).step_by(shard) {
        let end = (first + shard).min(patches);
        writer.push(
            level.header.level,
            name,
            first as u64,
            part(values, first * row, end * row),
        )?;
    }
    Ok(())
}

/// Writes a whole snapshot, with `edit` applied to each array.
pub fn write_edited(
    target: &SnapshotTarget,
    attributes: &Attributes,
    levels: &[LevelPlan],
    edit: impl Fn(u8, &str, &mut Values),
) -> Result<PendingSnapshot> {
    let mut writer = SnapshotWriter::begin(target, attributes, levels)?;
    for level in levels {
        let names = level.fields.iter().map(|field| field.name.as_str());
        for name in [ORIGIN, LEAF].into_iter().chain(names) {
            let mut values = array(level, name);
            edit(level.header.level, name, &mut values);
            push(&mut writer, level, name, &values)?;
        }
    }
    writer.finish()
}

/// Writes a whole snapshot and opens it.
pub fn write(target: &SnapshotTarget, attributes: &Attributes, levels: &[LevelPlan]) -> Snapshot {
    let done = write_edited(target, attributes, levels, |_, _, _| ())
        .unwrap()
        .wait()
        .unwrap();
    Snapshot::open(&done.path).unwrap()
}

/// Writes a plain Zarr version 3 array of one uncompressed chunk.
pub fn write_array(path: &Path, shape: &[u64], data_type: &str, dimensions: Value, bytes: &[u8]) {
    let chunk = shape.iter().map(|_| "0").collect::<Vec<_>>().join("/");
    let file = path.join("c").join(chunk);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": dimensions, "attributes": {},
    });
    std::fs::write(path.join("zarr.json"), document.to_string()).unwrap();
}
