//! How much memory a run takes.

use nestar::engine::Simulation;
use nestar::engine::device::ComputeDevice;
use nestar::engine::field::{FieldRegistry, Precision};
use nestar::engine::mesh::Topology;
use nestar::engine::patch::CELLS;

/// Banks of every row: before and after the level's step.
const BANKS: usize = 2;

/// Bytes of one patch in the pools of all fields.
pub fn patch_bytes(sim: &Simulation) -> u64 {
    let fields = sim.world.resource::<FieldRegistry>().operations();
    let components: usize = fields
        .iter()
        .map(|field| (field.components)(&sim.world).len())
        .sum();
    let size = match sim.precision() {
        Precision::Single => size_of::<f32>(),
        Precision::Double => size_of::<f64>(),
    };
    (components * CELLS * BANKS * size) as u64
}

/// Patches of the root grid.
pub fn root_patches(sim: &Simulation) -> u64 {
    let root = sim.world.resource::<Topology>().domain.root;
    root.iter().map(|&n| n as u64).product()
}

/// Why the root grid alone cannot be held, if so and if the system says it: a program that takes more memory than there is
/// gets killed without a word.
pub fn too_little(sim: &Simulation) -> Option<String> {
    let needed = root_patches(sim) * patch_bytes(sim);
    let available = match &sim.world.resource::<ComputeDevice>().device {
        Some(device) => device.memory().ok().map(|memory| memory.free),
        None => available(),
    };
    let available = available.filter(|&bytes| bytes < needed)?;
    Some(format!(
        "the fields of the root grid need {}, of which {} are available here; take fewer domain.cells, or \
         run.precision = \"single\"",
        shown(needed),
        shown(available)
    ))
}

/// Memory and swap space of the host that programs can still take, where the system says it.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some((kibibytes("MemAvailable:")? + kibibytes("SwapFree:").unwrap_or(0)) << 10)
}

/// A number of bytes for people.
pub fn shown(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_shown_in_the_fitting_unit() {
        assert_eq!(super::shown(1023), "1023 B");
        assert_eq!(super::shown(40 << 10), "40.0 KiB");
        assert_eq!(super::shown(3 << 29), "1.5 GiB");
        assert_eq!(super::shown(5 << 50), "5120.0 TiB");
    }
}
