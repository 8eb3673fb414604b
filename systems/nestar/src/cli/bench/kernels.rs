//! Counters of timed steps, and times of device kernels.

use nestar::engine::device::{DeviceCounters, KernelCounters, LinkCounters, LinkTimes};
use nestar::engine::step::RunCounters;

/// Counters over a number of root steps.
#[derive(Clone, Default)]
pub struct TimedSteps {
    /// Wall time in seconds, with the device idle at both ends.
    pub wall: f64,
    /// Seconds of each plugin, the mesh and the output.
    pub times: Vec<(String, f64)>,
    /// Counters of the steps.
    pub run: RunCounters,
    /// Counters of the device.
    pub device: Option<DeviceCounters>,
    /// Halo traffic of this rank.
    pub halos: LinkCounters,
}

impl TimedSteps {
    /// Returns the cell updates per second.
    pub fn rate(&self) -> f64 {
        self.run.cell_updates as f64 / self.wall
    }
}

/// Times of all kernels in steps with kernel timing.
pub struct KernelProfile {
    /// Wall time in seconds; kernel timing slows down launches.
    pub wall: f64,
    /// Cell updates.
    pub cell_updates: u64,
    /// Kernels in descending order of time.
    pub kernels: Vec<KernelTime>,
    /// Times of halo exchanges over a direct link.
    pub link: LinkTimes,
}

/// Counters of one kernel.
pub struct KernelTime {
    /// Name in the source.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Cells per second, if the number of cells is known.
    pub cells_per_second: Option<f64>,
    /// Minimum memory traffic in bytes per second, if known.
    pub bytes_per_second: Option<f64>,
}

impl KernelProfile {
    /// Collects the kernel times of the timed steps.
    pub fn of(stretch: &TimedSteps) -> Self {
        let device = stretch.device.iter();
        let mut kernels: Vec<KernelTime> = device
            .flat_map(|device| &device.kernels)
            .filter(|kernel| kernel.timed > 0)
            .map(KernelTime::of)
            .collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Self {
            wall: stretch.wall,
            cell_updates: stretch.run.cell_updates,
            kernels,
            link: stretch.halos.times,
        }
    }

    /// Returns the seconds of all kernels.
    pub fn seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }
}

impl KernelTime {
    fn of(kernel: &KernelCounters) -> Self {
        let complete = kernel.timed == kernel.launches && kernel.seconds > 0.0;
        let rate = |amount: u64| {
            let known = complete && amount > 0;
            known.then(|| amount as f64 / kernel.seconds)
        };
        Self {
            name: kernel.name.clone(),
            launches: kernel.timed,
            seconds: kernel.seconds,
            cells_per_second: rate(kernel.cells),
            bytes_per_second: rate(kernel.bytes),
        }
    }
}
