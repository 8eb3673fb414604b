//! Assigns devices and cores of a host to ranks.

use std::num::NonZero;

/// Placement of a rank on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of this rank among the ranks of its host, from 0; also the index of its device.
    pub local_rank: usize,
    /// Number of ranks on this host.
    pub local_size: usize,
    /// Number of cores of this rank, the default number of threads.
    pub cores: usize,
}

impl Placement {
    /// Returns the placement of rank `local_rank` of `local_size` that share the cores of this process evenly.
    #[must_use]
    pub fn shared(local_rank: usize, local_size: usize) -> Self {
        let cores = Self::process_cores() / local_size.max(1);
        Self {
            local_rank,
            local_size,
            cores: cores.max(1),
        }
    }

    /// Returns the number of cores of the host, available to this process or not.
    #[must_use]
    pub fn host_cores() -> usize {
        let listed = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = listed
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count();
        cores.max(Self::process_cores())
    }

    /// Returns the number of cores available to this process.
    #[must_use]
    pub fn process_cores() -> usize {
        std::thread::available_parallelism().map_or(1, NonZero::get)
    }
}

impl Default for Placement {
    fn default() -> Self {
        Self::shared(0, 1)
    }
}
