//! Where a rank sits: which of the host's devices and cores are its own.

use std::num::NonZero;

/// A rank's place on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Number of this rank among those of its host, from 0; it uses the device of this number.
    pub local_rank: usize,
    /// Ranks of this host.
    pub local_size: usize,
    /// Cores for this rank: threads of a run that leaves their number open.
    pub cores: usize,
}

impl Placement {
    /// The place of rank `local` of `locals` that share the cores of this process.
    #[must_use]
    pub fn shared(local_rank: usize, local_size: usize) -> Self {
        let cores = Self::process_cores() / local_size.max(1);
        Self {
            local_rank,
            local_size,
            cores: cores.max(1),
        }
    }

    /// Cores of the host, whether this process may use them or not.
    #[must_use]
    pub fn host_cores() -> usize {
        let listed = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = listed
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count();
        cores.max(Self::process_cores())
    }

    /// Cores that this process may use.
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
