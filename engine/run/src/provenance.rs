//! `provenance.json`: describes the program and the machine of a run.

use crate::files;
use nestar_engine_comm::{Ranks, RanksError};
use nestar_engine_device::{ComputeDevice, Device};
use nestar_engine_step::{Engine, Error};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Describes the program and its build.
#[derive(Clone, Debug, Default)]
pub struct BuildInfo {
    /// Name of the program.
    pub program: String,
    /// Version of the program.
    pub program_version: String,
    /// Commit of the program, if known.
    pub program_commit: String,
    /// Version of the engine.
    pub version: String,
    /// Commit of the engine, if known.
    pub commit: String,
    /// Build flags of both.
    pub flags: String,
}

/// Lists the host and the device of each rank.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Compute devices of the ranks.
    pub devices: Vec<String>,
    /// Number of ranks in this rank's process.
    pub in_process: u64,
}

/// Host, device and process of a rank.
#[derive(Serialize, Deserialize)]
struct RankEntry {
    host: String,
    device: String,
    process: u32,
}

impl Roster {
    /// Gathers the hosts and devices of all ranks. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn gather(sim: &Engine) -> Result<Self, RanksError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let device = sim.world.resource::<ComputeDevice>().device.as_ref();
        let own = RankEntry {
            host: host.trim().to_string(),
            device: device.map_or_else(|| "cpu".to_string(), Device::describe),
            process: std::process::id(),
        };
        let bytes = serde_json::to_vec(&own).unwrap_or_default();
        let ranks = sim.world.resource::<Ranks>().communicator();
        let read = |bytes: Vec<u8>| serde_json::from_slice::<RankEntry>(&bytes);
        let all: Result<Vec<RankEntry>, _> =
            ranks.all_gather(&bytes)?.into_iter().map(read).collect();
        let all = all.map_err(|e| {
            RanksError::Transport(format!("a description of a rank is damaged: {e}"))
        })?;
        let beside = |entry: &&RankEntry| (&entry.host, entry.process) == (&own.host, own.process);
        let in_process = all.iter().filter(beside).count() as u64;
        let (hosts, devices) = all.into_iter().map(|e| (e.host, e.device)).unzip();
        Ok(Self {
            hosts,
            devices,
            in_process,
        })
    }
}

/// Writes `provenance.json` into the run's directory; `host`, `device` and `threads` are those of the writing
/// rank.
///
/// # Errors
/// The file cannot be written.
pub fn write(
    sim: &Engine,
    build: &BuildInfo,
    roster: &Roster,
    directory: &Path,
) -> Result<(), Error> {
    let rank = sim.world.resource::<Ranks>().rank();
    let provenance = serde_json::json!({
        "program": build.program,
        "program_version": build.program_version,
        "program_commit": build.program_commit,
        "version": build.version,
        "commit": build.commit,
        "build_flags": build.flags,
        "host": roster.hosts.get(rank),
        "device": roster.devices.get(rank),
        "ranks": roster.hosts.len(),
        "hosts": roster.hosts,
        "devices": roster.devices,
        "threads": rayon::current_num_threads(),
        "precision": format!("{:?}", sim.precision()).to_lowercase(),
        "start_time_utc": humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
    });
    files::write_atomically(
        &directory.join("provenance.json"),
        &format!("{provenance:#}\n"),
    )
}
