//! `provenance.json`: what made a run.

use crate::device::{ComputeDevice, Device};
use crate::error::Error;
use crate::simulation::Simulation;
use std::path::Path;

/// The program that runs.
#[derive(Clone, Debug, Default)]
pub struct BuildInfo {
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, where known.
    pub commit: String,
    /// Flags it was built with.
    pub flags: String,
}

/// Writes `provenance.json` into the run's directory.
///
/// # Errors
/// The file cannot be written.
pub fn write(sim: &Simulation, build: &BuildInfo, directory: &Path) -> Result<(), Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let device = sim.world.resource::<ComputeDevice>().device.as_ref();
    let device = device.map_or_else(|| "cpu".to_string(), Device::describe);
    let provenance = serde_json::json!({
        "program": "nestar",
        "version": build.version,
        "commit": build.commit,
        "build_flags": build.flags,
        "host": host.trim(),
        "device": device,
        "ranks": 1,
        "threads": rayon::current_num_threads(),
        "precision": format!("{:?}", sim.precision()).to_lowercase(),
        "start_time_utc": humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
    });
    write_whole(
        &directory.join("provenance.json"),
        &format!("{provenance:#}\n"),
    )
}

/// Writes a text file beside its place and renames it, so that it is whole or not there.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    std::fs::write(&beside, text).map_err(Error::file("cannot write", &beside))?;
    std::fs::rename(&beside, path).map_err(Error::file("cannot write", path))
}
