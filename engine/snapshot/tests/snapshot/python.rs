//! The public Python tools read what we write: zarr-python, xarray, and our small reader.
//!
//! Needs a Python with `tools/python/requirements.txt` installed, named by the environment variable `NESTAR_PYTHON`.

use crate::common::{Folder, attributes, level, stars, write_edited};
use nestar_snapshot::{DataType, FieldHeader, Snapshot, Values, digest, read_uniform};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Puts the patches of a level side by side along x, so that their places are distinct; level 1 begins at x = 32.
fn place(level: u8, name: &str, values: &mut Values) {
    if let (Values::I32(v), "origin") = (&mut *values, name) {
        let begin = 32 * i32::from(level);
        v.iter_mut().enumerate().for_each(|(i, x)| {
            *x = if i % 3 == 0 {
                begin + 8 * (i as i32 / 3)
            } else {
                0
            }
        });
    }
}

/// Runs a script of this folder and returns what it prints; `None`, with the reason printed, without a Python.
pub fn run(script: &str, arguments: &[&OsStr]) -> Option<String> {
    let Some(python) = std::env::var_os("NESTAR_PYTHON") else {
        eprintln!(
            "skipped: NESTAR_PYTHON names no Python with tools/python/requirements.txt installed"
        );
        return None;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .arg(here.join("tests").join(script))
        .args(arguments)
        .env("PYTHONPATH", here.join("../../tools/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !error.contains("Warning: "),
        "{out}{error}"
    );
    Some(out)
}

#[test]
fn zarr_and_xarray_read_the_same_values_and_python_computes_the_same_digest() {
    let folder = Folder::new();
    let mut levels = [
        level(0, 3, DataType::F64),
        level(1, 8, DataType::F32),
        level(10, 40, DataType::F64),
    ];
    for level in &mut levels {
        let header = FieldHeader::cells("hot", DataType::F32, "K", 1.0, "temperature");
        level.fields.push(header.derived());
    }
    let keep = |level: u8, name: &str, values: &mut Values| {
        place(level, name, values);
        std::fs::write(folder.0.join(format!("{name}.{level}.bin")), values.bytes()).unwrap();
    };
    let done = write_edited(&folder.target(0), &attributes(), &levels, keep)
        .unwrap()
        .wait()
        .unwrap();
    let digest = digest(&Snapshot::open(&done.path).unwrap()).unwrap();
    let arguments = [done.path.as_os_str(), folder.0.as_os_str(), digest.as_ref()];
    if let Some(out) = run("check_snapshot.py", &arguments) {
        assert!(out.contains("python: ok"), "{out}");
    }
}

/// Every store that zarr-python writes is read to the bit.
#[test]
fn stores_of_all_codecs_orders_and_types_are_read() {
    let folder = Folder::new();
    let Some(names) = run("write_stores.py", &[folder.0.as_os_str()]) else {
        return;
    };
    assert!(names.lines().count() > 30, "{names}");
    for name in names.lines() {
        let arrays = read_uniform(&folder.0.join(name), &["density"]);
        let array = &arrays.unwrap_or_else(|error| panic!("{name}: {error}"))[0];
        assert_eq!(array.shape, [8, 6, 10], "{name}");
        for (n, &value) in array.values.iter().enumerate() {
            let [z, y, x] = [n / 60, n / 10 % 6, n % 10].map(|n| n as f64);
            assert_eq!(
                value,
                1.0 + x / 4.0 + 8.0 * y + 64.0 * z,
                "{name}, value {n}"
            );
        }
    }
}

#[test]
fn xarray_and_our_reader_read_items() {
    let folder = Folder::new();
    let snapshot = stars::write(&folder, 0, 20_000).unwrap();
    let digest = digest(&snapshot).unwrap();
    if let Some(out) = run(
        "check_particles.py",
        &[snapshot.path().as_os_str(), digest.as_ref()],
    ) {
        assert!(out.contains("python: ok"), "{out}");
    }
}

#[test]
fn initial_states_written_by_zarr_python_are_read() {
    let folder = Folder::new();
    if run("write_uniform.py", &[folder.0.as_os_str()]).is_none() {
        return;
    }
    for version in ["v2", "v3"] {
        let arrays = read_uniform(&folder.0.join(version), &["density", "pressure"]).unwrap();
        for (i, (&density, &pressure)) in arrays[0].values.iter().zip(&arrays[1].values).enumerate()
        {
            assert_eq!(density, i as f64 / 3.0, "{version}");
            assert_eq!(pressure, f64::from((i as f64 / 3.0) as f32), "{version}");
        }
        assert_eq!(arrays[1].shape, [2, 3, 4]);
    }
}
