//! Memory of the machine, from the operating system, and the ranks that share it.

use super::demand::{TABLES, needed, total_rows};
use super::{LimitSource, MemoryLimit, machine};
use crate::Settings;
use bevy_ecs::prelude::*;
use nestar_engine_comm::{Ranks, RanksError};
use nestar_engine_data::Stores;
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_device::{ComputeDevice, Device};
use nestar_engine_mesh::Topology;
use std::path::{Path, PathBuf};

/// Returns the bytes that this process can still allocate. Considers free memory and swap, control groups
/// (batch systems, containers) and the address-space limit (`ulimit -v`). `None` if unknown.
#[must_use]
pub fn free() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let granted = group_free(Path::new("/sys/fs/cgroup"), &groups);
    let system = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| system_free(&text));
    let text = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let space = space_free(&text("/proc/self/limits"), &text("/proc/self/status"));
    system.into_iter().chain(granted).chain(space).min()
}

/// Returns the bytes of address space that the process limits leave.
fn space_free(limits: &str, status: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(entry(status, "VmSize:")?))
}

/// Returns the memory of the machine in bytes.
#[must_use]
pub fn total() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    entry(&text, "MemTotal:")
}

fn system_free(meminfo: &str) -> Option<u64> {
    Some(entry(meminfo, "MemAvailable:")? + entry(meminfo, "SwapFree:").unwrap_or(0))
}

/// Returns an entry of `/proc/meminfo` in bytes.
fn entry(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the bytes that the tightest control group leaves. `mount` is the mount point, `groups` the text of
/// `/proc/self/cgroup`.
fn group_free(mount: &Path, groups: &str) -> Option<u64> {
    let mut tightest = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, files) = if controllers.is_empty() {
            (mount.to_path_buf(), ["memory.max", "memory.current"])
        } else if controllers.split(',').any(|name| name == "memory") {
            let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
            (mount.join("memory"), files)
        } else {
            continue;
        };
        for group in ancestors(&root, path) {
            tightest = tightest.into_iter().chain(left(&group, files)).min();
        }
    }
    tightest
}

/// Returns the folders of a control group and its ancestors. A container may show only the root folder.
fn ancestors(root: &Path, path: &str) -> Vec<PathBuf> {
    let group = root.join(path.trim_start_matches('/'));
    let inside = group.ancestors().take_while(|p| p.starts_with(root));
    inside.map(Path::to_path_buf).collect()
}

/// Returns the bytes that a control group leaves; file caches count as free.
fn left(group: &Path, [limit, taken]: [&str; 2]) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(group.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let statistics = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached = statistics
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "))
        .and_then(|bytes| bytes.trim().parse::<u64>().ok());
    // a group without a limit says "max", or a number larger than any machine
    let limit = number(limit).filter(|&bytes| bytes < 1 << 60)?;
    let taken = number(taken)?.saturating_sub(cached.unwrap_or(0));
    Some(limit.saturating_sub(taken))
}

/// Reciprocal of the fraction of memory reserved for other uses, such as snapshots in transit.
const RESERVE: u64 = 16;

/// Number of ranks that share the memory of this rank's device or host, including this rank.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySharers(pub u64);

impl Default for MemorySharers {
    fn default() -> Self {
        Self(1)
    }
}

impl MemorySharers {
    /// Counts the ranks that share the memory of `device`, or of the host without a device. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn find(ranks: &Ranks, device: Option<&Device>) -> Result<Self, RanksError> {
        let own = device.and_then(Device::identity);
        let words = own.map_or_else(Vec::new, |identity| identity.to_vec());
        let all = ranks.communicator().all_gather(&words)?;
        let sharers = match own {
            // an emulated device uses host memory
            None => ranks.communicator().placement().local_size,
            Some(_) => all.iter().filter(|other| **other == words).count(),
        };
        Ok(Self(sharers.max(1) as u64))
    }
}

/// Returns the limit set by `run.memory_limit`.
pub(super) fn limit(world: &World) -> Option<MemoryLimit> {
    let limit = world.resource::<Settings>().run.memory_limit;
    (limit > 0).then_some(MemoryLimit {
        bytes: limit << 20,
        source: LimitSource::Limit,
    })
}

/// Returns the memory available to the fields and tables of this rank, including what they use already;
/// `None` if unknown.
pub(super) fn available(world: &World) -> Option<MemoryLimit> {
    let (free, source) = match &world.resource::<ComputeDevice>().device {
        // if a device reports no memory, its allocations decide
        Some(device) => (device.memory().ok().map(|m| m.free), LimitSource::Device),
        None => (machine::free(), LimitSource::Machine),
    };
    let all = free? / world.resource::<MemorySharers>().0 + used_bytes(world);
    Some(MemoryLimit {
        bytes: all - all / RESERVE,
        source,
    })
}

/// Returns the host memory available to this rank if the fields are on a device; `None` without a device or
/// if unknown.
pub(super) fn host_limit(world: &World) -> Option<MemoryLimit> {
    world.resource::<ComputeDevice>().device.as_ref()?;
    let locals = world
        .resource::<Ranks>()
        .communicator()
        .placement()
        .local_size;
    let all = machine::free()? / locals.max(1) as u64;
    Some(MemoryLimit {
        bytes: all - all / RESERVE,
        source: LimitSource::Machine,
    })
}

/// Returns the bytes that fields, registers and tables of this rank use.
fn used_bytes(world: &World) -> u64 {
    let fields = world.resource::<Stores>().all();
    let banks: usize = fields.iter().map(|field| field.of(world).bytes()).sum();
    let more = match world.get_resource::<DeviceTopology>() {
        // device fields include their registers
        Some(tables) => tables.bytes() as u64,
        None => {
            let registers: usize = fields.iter().map(|f| f.of(world).register_bytes()).sum();
            registers as u64 + world.resource::<Topology>().capacity() as u64 * TABLES
        }
    };
    banks as u64 + more
}

/// Returns the bytes that the fields and tables of the present patches leave free.
#[must_use]
pub fn headroom(world: &World) -> u64 {
    let topology = world.resource::<Topology>();
    let rows = total_rows(topology, 0, 0);
    let ranks = world.resource::<Ranks>().size() as u64;
    let limit = limit(world).map(|room| room.bytes.saturating_sub(needed(world, rows)) / ranks);
    let found = available(world).map(|room| room.bytes.saturating_sub(used_bytes(world)));
    limit.into_iter().chain(found).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{group_free, space_free, system_free};

    #[test]
    fn a_limited_address_space_counts() {
        let limits = |soft: &str| {
            format!(
                "Max cpu time  unlimited  unlimited  seconds\nMax address space  {soft}  unlimited  bytes\n"
            )
        };
        let status = "Name: x\nVmSize:\t  2 kB\n";
        assert_eq!(space_free(&limits("8192"), status), Some(6144));
        assert_eq!(space_free(&limits("1024"), status), Some(0));
        assert_eq!(space_free(&limits("unlimited"), status), None);
    }

    #[test]
    fn free_memory_includes_swap() {
        let text = "MemTotal:  100 kB\nMemFree:  1 kB\nMemAvailable:   20 kB\nSwapFree: 4 kB\n";
        assert_eq!(system_free(text), Some(24 << 10));
        assert_eq!(system_free("MemTotal: 100 kB\n"), None);
    }

    #[test]
    fn the_tightest_control_group_counts_and_its_file_cache_does_not() {
        let mount =
            std::env::temp_dir().join(format!("nestar-control-groups-{}", std::process::id()));
        let job = mount.join("batch/job");
        std::fs::create_dir_all(&job).expect("the temporary directory can be written");
        let write = |folder: &std::path::Path, name: &str, text: &str| {
            std::fs::write(folder.join(name), text).expect("a file");
        };
        write(&job, "memory.max", "max\n");
        write(&job, "memory.current", "50\n");
        write(&mount.join("batch"), "memory.max", "1000\n");
        write(&mount.join("batch"), "memory.current", "700\n");
        write(
            &mount.join("batch"),
            "memory.stat",
            "anon 1\ninactive_file 100\n",
        );
        assert_eq!(group_free(&mount, "0::/batch/job\n"), Some(400));
        assert_eq!(group_free(&mount, "0::/elsewhere\n"), None);
        assert_eq!(group_free(&mount, "5:cpu:/batch/job\n"), None);
        std::fs::remove_dir_all(&mount).expect("the directory was ours");
    }
}
