//! A stretch of steps, and what each kernel of a device took in it.

use nestar::engine::device::{DeviceCounters, KernelCounters, LinkCounters, LinkTimes};
use nestar::engine::step::RunCounters;

/// A stretch of root steps.
#[derive(Clone, Default)]
pub struct TimedSteps {
    /// Wall seconds, the device idle at both ends.
    pub wall: f64,
    /// What the steps did, and where the host spent its time.
    pub run: RunCounters,
    /// What the device did.
    pub device: Option<DeviceCounters>,
    /// What this rank and others sent each other.
    pub halos: LinkCounters,
}

impl TimedSteps {
    /// Cell updates per second.
    pub fn rate(&self) -> f64 {
        self.run.cell_updates as f64 / self.wall
    }
}

/// The kernels in a stretch of steps in which each was timed.
pub struct KernelProfile {
    /// Wall seconds of the stretch; timing makes launches slower.
    pub wall: f64,
    /// Cell updates of the stretch.
    pub cell_updates: u64,
    /// The kernels, the longest first.
    pub kernels: Vec<KernelTime>,
    /// Times of the exchanges over a direct link.
    pub link: LinkTimes,
}

/// A kernel.
pub struct KernelTime {
    /// Its name in the source.
    pub name: String,
    /// Launches.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Cells per second, where it is known how many it worked on.
    pub cells_per_second: Option<f64>,
    /// Bytes per second, of those that it had to read and write at least, where that is known.
    pub bytes_per_second: Option<f64>,
}

impl KernelProfile {
    /// The kernels of `stretch`.
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

    /// Seconds of all kernels.
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
