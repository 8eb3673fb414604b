//! The public Python tools read what we write: zarr-python, xarray, and our small reader.
//!
//! Needs a Python with `tools/python/requirements.txt` installed, named by the environment variable `NESTAR_PYTHON`.

mod common;

use common::{Folder, attributes, level, write_edited};
use nestar_snapshot::{DataType, Snapshot, Values, digest};
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

#[test]
fn zarr_and_xarray_read_the_same_values_and_python_computes_the_same_digest() {
    let Some(python) = std::env::var_os("NESTAR_PYTHON") else {
        return eprintln!(
            "skipped: NESTAR_PYTHON names no Python with tools/python/requirements.txt installed"
        );
    };
    let folder = Folder::new();
    let levels = [
        level(0, 3, DataType::F64),
        level(1, 8, DataType::F32),
        level(10, 40, DataType::F64),
    ];
    let keep = |level: u8, name: &str, values: &mut Values| {
        place(level, name, values);
        std::fs::write(folder.0.join(format!("{name}.{level}.bin")), values.bytes()).unwrap();
    };
    let done = write_edited(&folder.target(0), &attributes(), &levels, keep)
        .unwrap()
        .wait()
        .unwrap();
    let digest = digest(&Snapshot::open(&done.path).unwrap()).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .arg(here.join("tests/check_snapshot.py"))
        .args([&done.path, &folder.0])
        .arg(digest)
        .env("PYTHONPATH", here.join("../../tools/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains("python: ok"),
        "{out}{error}"
    );
    assert!(!error.contains("Warning"), "{error}");
}
