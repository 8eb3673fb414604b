//! What each kernel of a device took.

use super::measure::Stretch;
use nestar::engine::device::KernelCounters;

/// Kernels that read and write all values of every cell of a level, once a launch.
const READS_AND_WRITES_ALL: &[&str] = &["fluid_step"];

/// The kernels in a stretch of steps in which each was timed.
pub struct Profile {
    /// Wall seconds of the stretch; timing makes launches slower.
    pub wall: f64,
    /// Cell updates of the stretch.
    pub cell_updates: u64,
    /// The kernels, the longest first.
    pub kernels: Vec<KernelTime>,
}

/// A kernel.
pub struct KernelTime {
    /// Its name in the source.
    pub name: String,
    /// Launches.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Cells per second, for kernels launched once for every step of a level: they work on all its cells.
    pub cells_per_second: Option<f64>,
    /// Bytes per second that the values of the cells make, read and written once, for kernels that do no less.
    pub bytes_per_second: Option<f64>,
}

impl Profile {
    /// The kernels of `stretch`; `cell_bytes` is what the values of a cell take.
    pub fn of(stretch: &Stretch, cell_bytes: usize) -> Self {
        let device = stretch.device.iter();
        let mut kernels: Vec<KernelTime> = device
            .flat_map(|device| &device.kernels)
            .filter(|kernel| kernel.timed > 0)
            .map(|kernel| KernelTime::of(kernel, stretch, cell_bytes))
            .collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Self {
            wall: stretch.wall,
            cell_updates: stretch.run.cell_updates,
            kernels,
        }
    }

    /// Seconds of all kernels.
    pub fn seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }
}

impl KernelTime {
    fn of(kernel: &KernelCounters, stretch: &Stretch, cell_bytes: usize) -> Self {
        let steps = stretch.run.level_steps + stretch.run.retried_steps;
        let all = kernel.timed == steps && stretch.run.retried_steps == 0 && kernel.seconds > 0.0;
        let rate = all.then(|| stretch.run.cell_updates as f64 / kernel.seconds);
        let known = READS_AND_WRITES_ALL.contains(&kernel.name.as_str());
        Self {
            name: kernel.name.clone(),
            launches: kernel.timed,
            seconds: kernel.seconds,
            cells_per_second: rate,
            bytes_per_second: rate
                .filter(|_| known)
                .map(|rate| 2.0 * rate * cell_bytes as f64),
        }
    }
}
