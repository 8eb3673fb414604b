//! The Python package reads what this program writes, and the Python of README and the book runs.
//!
//! Needs a Python with `tools/python/requirements.txt` and the package `tools/python` installed, named by the environment
//! variable `NESTAR_PYTHON`.

use crate::{Outcome, Place};
use std::path::Path;
use std::process::Command;

/// Runs a script of `tools/python/tests` in a temporary directory. Without a Python it prints why it is skipped.
fn check(script: &str, arguments: &[&Path]) {
    let Some(python) = std::env::var_os("NESTAR_PYTHON") else {
        eprintln!(
            "skipped: NESTAR_PYTHON names no Python with tools/python/requirements.txt installed"
        );
        return;
    };
    let place = Place::new();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
    let output = Command::new(python)
        .arg(package.join("tests").join(script))
        .args(arguments)
        .current_dir(&place.0)
        .env("PYTHONPATH", &package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NESTAR_PROGRAM", env!("CARGO_BIN_EXE_nestar"))
        .output();
    let outcome = Outcome::of(output.expect("Python starts"));
    outcome.has_status(0);
    assert!(outcome.out.ends_with("python: ok\n"), "{}", outcome.out);
}

#[test]
fn slices_projections_and_profiles_equal_plain_loops_over_cells() {
    check("check_analysis.py", &[]);
}

#[test]
fn python_starts_runs_and_reports_errors_in_one_line() {
    check("check_runs.py", &[]);
}

#[test]
fn comoving_runs_have_the_units_of_their_times() {
    check("check_cosmology.py", &[]);
}

#[test]
fn yt_reads_all_fields_and_species_with_units() {
    check("check_yt.py", &[]);
}

#[test]
fn the_python_of_the_book_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check("check_book.py", &[&root]);
}

#[test]
fn exports_are_read_by_vtk_and_h5py() {
    check("check_export.py", &[]);
}

#[test]
fn files_of_the_installation_page_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check("check_install.py", &[&root]);
}
