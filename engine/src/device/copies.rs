//! Copies to the host that go on beside the device's other work.

use super::backend::{Copies, Pending};
use super::{Buffer, Device, DeviceError, Pinned, place};
use bytemuck::Pod;
use std::sync::Arc;

/// A second stream of a device, for copies to page-locked memory while the first stream works. The copies take place in the
/// order of their calls.
pub struct CopyStream {
    device: Device,
    copies: Box<dyn Copies>,
}

impl CopyStream {
    pub(super) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            device: device.clone(),
            copies: device.backend().copies()?,
        })
    }

    /// What is asked for from now on comes after all work that the device has been given so far. Work given later takes no
    /// notice of the copies.
    ///
    /// # Errors
    /// The device fails.
    pub fn follow(&self) -> Result<(), DeviceError> {
        self.copies.follow()
    }

    /// Starts to copy `length` elements of `from`, from `offset` on, to the front of `to`. They are to stay as they are until
    /// the transfer is done.
    ///
    /// # Errors
    /// Elements beyond an end; the device fails.
    pub fn start<T: Pod>(
        &self,
        from: &Arc<Buffer<T>>,
        offset: usize,
        length: usize,
        mut to: Pinned<T>,
    ) -> Result<Transfer<T>, DeviceError> {
        let address = place(&**from, offset, length)?;
        if length > to.len() {
            return Err(DeviceError::Range(format!(
                "{length} elements are more than the {} of the page-locked memory",
                to.len()
            )));
        }
        let bytes = length * size_of::<T>();
        let pending = match bytes {
            0 => None,
            _ => {
                let target = to.as_mut_ptr().cast();
                Some(self.copies.start(address, target, bytes)?)
            }
        };
        self.device.tally().downloaded(bytes);
        Ok(Transfer {
            pending,
            to: Some(to),
            _from: from.clone(),
        })
    }
}

impl Device {
    /// A second stream, for copies to page-locked memory beside the device's work.
    ///
    /// # Errors
    /// The device fails.
    pub fn copy_stream(&self) -> Result<CopyStream, DeviceError> {
        CopyStream::new(self)
    }
}

/// A copy under way, with both its ends. Dropping it waits.
pub struct Transfer<T: Pod> {
    /// The copy, until its end is known.
    pending: Option<Box<dyn Pending>>,
    /// Where it goes; none once the caller has it.
    to: Option<Pinned<T>>,
    _from: Arc<Buffer<T>>,
}

impl<T: Pod> Transfer<T> {
    /// Whether the values have arrived.
    ///
    /// # Errors
    /// The device fails.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.pending
            .as_ref()
            .map_or(Ok(true), |copy| copy.is_done())
    }

    /// Waits for the values and gives the memory back with them.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(mut self) -> Result<Pinned<T>, DeviceError> {
        if let Some(copy) = self.pending.take() {
            copy.wait()?;
        }
        let to = self.to.take();
        to.ok_or_else(|| DeviceError::Range("the transfer was waited for before".into()))
    }
}

impl<T: Pod> Drop for Transfer<T> {
    fn drop(&mut self) {
        if let Some(copy) = self.pending.take() {
            // of failures there is nobody to tell
            let _ = copy.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::device::{Device, DeviceKind};
    use std::sync::Arc;

    const LENGTH: usize = 3 << 20;

    /// The devices that this machine has.
    fn devices() -> Vec<Device> {
        let kinds = [DeviceKind::Emulated, DeviceKind::Cuda];
        let opened =
            kinds.map(|kind| Device::open(kind).inspect_err(|why| println!("skipped: {why}")));
        opened.into_iter().flatten().collect()
    }

    #[test]
    fn transfers_follow_the_work_before_them_and_bring_what_was_there_then() {
        for device in devices() {
            let source = Arc::new(device.buffer::<u32>(LENGTH).unwrap());
            let stream = device.copy_stream().unwrap();
            let values: Vec<u32> = (0..LENGTH as u32).collect();
            device.upload(&*source, 0, &values).unwrap();
            stream.follow().unwrap();
            let parts: Vec<_> = [0, 1, 2]
                .map(|n| {
                    let to = device.pinned::<u32>((1 << 20) + 5).unwrap();
                    stream.start(&source, n << 20, 1 << 20, to).unwrap()
                })
                .into_iter()
                .collect();
            // the source lives as long as somebody copies from it
            drop(source);
            for (n, part) in parts.into_iter().enumerate() {
                while !part.is_done().unwrap() {
                    std::thread::yield_now();
                }
                let found = part.wait().unwrap();
                assert!(found[..1 << 20] == values[n << 20..][..1 << 20], "part {n}");
                assert_eq!(found[1 << 20..], [0; 5]);
            }
            assert_eq!(device.counters().bytes_down, 12 << 20);
        }
    }

    #[test]
    fn transfers_may_be_dropped_and_wait_in_other_threads() {
        for device in devices() {
            let source = Arc::new(device.buffer::<u8>(LENGTH).unwrap());
            let stream = device.copy_stream().unwrap();
            let start = || {
                let to = device.pinned(LENGTH).unwrap();
                stream.start(&source, 0, LENGTH, to).unwrap()
            };
            drop(start());
            let transfer = start();
            let waiting = std::thread::spawn(move || transfer.wait().map(|found| found.len()));
            assert_eq!(waiting.join().unwrap(), Ok(LENGTH));
            let nothing = stream.start(&source, LENGTH, 0, device.pinned(0).unwrap());
            assert!(nothing.unwrap().is_done().unwrap());
        }
    }

    #[test]
    fn transfers_beyond_an_end_are_refused() {
        for device in devices() {
            let source = Arc::new(device.buffer::<u64>(10).unwrap());
            let stream = device.copy_stream().unwrap();
            for (offset, length, room) in [(5, 6, 10), (0, 10, 9)] {
                let to = device.pinned(room).unwrap();
                let refusal = stream.start(&source, offset, length, to).map(|_| ());
                let text = refusal.unwrap_err().to_string();
                assert!(
                    text.contains("beyond") || text.contains("more than"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn lent_memory_counts_as_free() {
        for device in devices() {
            let lent = device.lend::<u64>(1 << 20).unwrap();
            assert_eq!((lent.len(), device.loans().bytes()), (1 << 20, 8 << 20));
            let memory = device.memory().unwrap();
            assert!(memory.free >= 8 << 20 && memory.free <= memory.total);
            // memory that others can use is had at once
            assert!(device.buffer::<u8>(1 << 10).is_ok());
            drop(lent);
            assert_eq!(device.loans().bytes(), 0);
        }
    }
}
