//! Counts launches, synchronisations and traffic of a device.

use super::parallel::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Counters of a device since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceCounters {
    /// Number of kernel launches.
    pub launches: u64,
    /// Number of times that the host waited for the device.
    pub synchronisations: u64,
    /// Number of sources whose compilation was started.
    pub compilations: u64,
    /// Number of allocations.
    pub allocations: u64,
    /// Bytes copied from the host to the device.
    pub bytes_up: u64,
    /// Bytes copied from the device to the host.
    pub bytes_down: u64,
    /// Counters of each kernel, by name.
    pub kernels: Vec<KernelCounters>,
}

/// Counters of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounters {
    /// Name in the source.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Number of launches while profiling was on.
    pub timed: u64,
    /// Device time of these launches, seconds.
    pub seconds: f64,
    /// Number of cells processed, as reported by the callers.
    pub cells: u64,
    /// Minimum number of bytes read and written, as reported by the callers.
    pub bytes: u64,
}

/// Counters of one kernel name, shared by all its handles.
#[derive(Debug, Default)]
pub(super) struct AtomicKernelCounters {
    launches: AtomicU64,
    timed: AtomicU64,
    nanoseconds: AtomicU64,
    cells: AtomicU64,
    bytes: AtomicU64,
}

impl AtomicKernelCounters {
    /// Adds the work of a launch.
    pub(super) fn count_work(&self, cells: u64, bytes: u64) {
        self.cells.fetch_add(cells, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Adds the time of a launch.
    pub(super) fn add_time(&self, nanoseconds: u64) {
        self.timed.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// Returns the number of measured times.
    pub(super) fn timed(&self) -> u64 {
        self.timed.load(Relaxed)
    }

    /// Returns the sum of all times, seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.nanoseconds.load(Relaxed) as f64 * 1e-9
    }
}

/// Counters of a device.
#[derive(Debug, Default)]
pub(super) struct AtomicCounters {
    launches: AtomicU64,
    synchronisations: AtomicU64,
    compilations: AtomicU64,
    allocations: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    profiling: AtomicBool,
    kernels: Mutex<BTreeMap<String, Arc<AtomicKernelCounters>>>,
}

impl AtomicCounters {
    pub(super) fn count_launch(&self, kernel: &AtomicKernelCounters) {
        self.launches.fetch_add(1, Relaxed);
        kernel.launches.fetch_add(1, Relaxed);
    }

    pub(super) fn count_synchronisation(&self) {
        self.synchronisations.fetch_add(1, Relaxed);
    }

    pub(super) fn count_compilation(&self) {
        self.compilations.fetch_add(1, Relaxed);
    }

    pub(super) fn count_allocation(&self) {
        self.allocations.fetch_add(1, Relaxed);
    }

    pub(super) fn count_upload(&self, bytes: usize) {
        self.bytes_up.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn count_download(&self, bytes: usize) {
        self.bytes_down.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn profile(&self, on: bool) {
        self.profiling.store(on, Relaxed);
    }

    pub(super) fn profiling(&self) -> bool {
        self.profiling.load(Relaxed)
    }

    /// Returns the counters of the kernels with a name.
    pub(super) fn kernel(&self, name: &str) -> Arc<AtomicKernelCounters> {
        let mut kernels = lock(&self.kernels);
        kernels.entry(name.to_string()).or_default().clone()
    }

    /// Returns the present values of all counters.
    pub(super) fn read(&self) -> DeviceCounters {
        let kernels = lock(&self.kernels);
        let kernel = |(name, counters): (&String, &Arc<AtomicKernelCounters>)| KernelCounters {
            name: name.clone(),
            launches: counters.launches.load(Relaxed),
            timed: counters.timed(),
            seconds: counters.seconds(),
            cells: counters.cells.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
        };
        DeviceCounters {
            launches: self.launches.load(Relaxed),
            synchronisations: self.synchronisations.load(Relaxed),
            compilations: self.compilations.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            bytes_up: self.bytes_up.load(Relaxed),
            bytes_down: self.bytes_down.load(Relaxed),
            kernels: kernels.iter().map(kernel).collect(),
        }
    }
}
