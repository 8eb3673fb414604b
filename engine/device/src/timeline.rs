//! Timeline of a device, divided among numbered owners.

use crate::DeviceError;
use crate::backend::Backend;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Divides the time of a device's stream into intervals of numbered owners. An interval includes the time in which the
/// device waits for the host.
pub struct Timeline {
    backend: Arc<dyn Backend>,
    /// Nanoseconds per owner.
    owners: Vec<Arc<AtomicU64>>,
}

impl Timeline {
    pub(super) fn new(backend: &Arc<dyn Backend>, owners: usize) -> Self {
        Self {
            backend: backend.clone(),
            owners: (0..owners).map(|_| Arc::default()).collect(),
        }
    }

    /// Begins an interval of `owner` after all work so far, and ends the previous interval.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn begin(&self, owner: usize) -> Result<(), DeviceError> {
        self.backend.begin_interval(&self.owners[owner])
    }

    /// Ends the interval of `owner` at the end of all work so far, waits for that work, and continues with a new interval
    /// of `owner`.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn synchronise(&self, owner: usize) -> Result<(), DeviceError> {
        self.begin(owner)?;
        self.backend.synchronise()
    }

    /// Sets all times to zero; intervals that have not been [synchronised](Timeline::synchronise) are counted from their beginning.
    pub fn reset(&self) {
        self.owners.iter().for_each(|sum| sum.store(0, Relaxed));
    }

    /// Returns the seconds of all intervals of `owner` that ended before the last synchronisation.
    ///
    /// # Panics
    /// If there is no such owner.
    #[must_use]
    pub fn seconds(&self, owner: usize) -> f64 {
        self.owners[owner].load(Relaxed) as f64 * 1e-9
    }
}
