//! Transient device memory, which is released soon, and allocations that wait for it.

use super::{Buffer, Device, DeviceError, DeviceMemory};
use bytemuck::Pod;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Present amount of transient memory.
#[derive(Debug, Default)]
struct TransientState {
    bytes: u64,
    /// Number of releases so far.
    releases: u64,
}

/// Accounts for transient memory.
#[derive(Debug, Default)]
pub(super) struct TransientMemory {
    state: Mutex<TransientState>,
    released: Condvar,
}

impl TransientMemory {
    /// Locks the state. Each change of it is complete in itself, even if another thread has panicked.
    fn lock(&self) -> MutexGuard<'_, TransientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the size of transient memory, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Registers transient memory.
    pub(super) fn add(&self, bytes: usize) {
        self.lock().bytes += bytes as u64;
    }

    /// Unregisters transient memory that was freed.
    pub(super) fn remove(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes as u64);
        state.releases += 1;
        self.released.notify_all();
    }

    /// Calls `attempt` until the memory suffices.
    ///
    /// After a failure it waits for transient memory to be released, if there is any.
    pub(super) fn retry_when_released<T>(
        &self,
        mut allocate: impl FnMut() -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        loop {
            let before = self.lock().releases;
            let error = match allocate() {
                Err(error @ DeviceError::Memory { .. }) => error,
                answer => return answer,
            };
            let mut state = self.lock();
            while state.releases == before && state.bytes > 0 {
                let waited = self.released.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            if state.releases == before {
                return Err(error);
            }
        }
    }
}

impl Device {
    /// Allocates transient memory of `length` elements with unspecified content.
    ///
    /// It counts as free until it is dropped, and other allocations wait for it. Its owner must neither allocate device
    /// memory nor wait for somebody who does.
    ///
    /// # Errors
    /// The memory of the device does not suffice at present.
    pub fn transient_buffer<T: Pod>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        Buffer::transient(self, length)
    }

    /// Returns free and total memory in bytes. Transient memory counts as free.
    ///
    /// # Errors
    /// The driver reports an error.
    pub fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        // Memory released between the two queries must not count twice.
        let transient = self.0.transient_memory.bytes();
        let DeviceMemory { free, total } = self.0.backend.memory()?;
        let transient = transient.min(self.0.transient_memory.bytes());
        Ok(DeviceMemory {
            free: (free + transient).min(total),
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::TransientMemory;
    use crate::{Device, DeviceError, DeviceKind};
    use std::sync::atomic::{AtomicU32, Ordering};

    const SHORT: DeviceError = DeviceError::Memory {
        asked: 2,
        free: 1,
        total: 3,
    };

    #[test]
    fn allocations_wait_until_enough_memory_is_released() {
        let (transient_memory, asked) = (TransientMemory::default(), AtomicU32::new(0));
        transient_memory.add(10);
        transient_memory.add(20);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                transient_memory.retry_when_released(|| {
                    match asked.fetch_add(1, Ordering::SeqCst) {
                        0 | 1 => Err(SHORT),
                        _ => Ok(()),
                    }
                })
            });
            for (bytes, attempts) in [(10, 1), (20, 2)] {
                while asked.load(Ordering::SeqCst) < attempts {
                    std::thread::yield_now();
                }
                assert!(!waiting.is_finished());
                transient_memory.remove(bytes);
            }
            assert_eq!(waiting.join().expect("no panic"), Ok(()));
        });
        assert_eq!((asked.into_inner(), transient_memory.bytes()), (3, 0));
    }

    #[test]
    fn without_transient_memory_errors_are_final() {
        let transient_memory = TransientMemory::default();
        assert_eq!(
            transient_memory.retry_when_released(|| Err::<(), _>(SHORT)),
            Err(SHORT)
        );
        transient_memory.add(1);
        let broken = || DeviceError::Kernel("broken".into());
        assert_eq!(
            transient_memory.retry_when_released(|| Err::<(), _>(broken())),
            Err(broken())
        );
    }

    #[test]
    fn transient_memory_counts_as_free() {
        for kind in [DeviceKind::Emulated, DeviceKind::Cuda] {
            let Ok(device) = Device::open(kind).inspect_err(|why| println!("skipped: {why}"))
            else {
                continue;
            };
            let transient = device.transient_buffer::<u64>(1 << 20).unwrap();
            assert_eq!(
                (transient.len(), device.transient_memory().bytes()),
                (1 << 20, 8 << 20)
            );
            let memory = device.memory().unwrap();
            assert!(memory.free >= 8 << 20 && memory.free <= memory.total);
            // Allocations that fit do not wait.
            assert!(device.buffer::<u8>(1 << 10).is_ok());
            drop(transient);
            assert_eq!(device.transient_memory().bytes(), 0);
        }
    }
}
