//! Device memory: buffers of fixed length, growable ranges with fixed addresses, and transient allocations.

use super::backend::AddressRange;
use super::parallel::lock;
use super::{Device, DeviceError, DeviceMemory};
use bytemuck::Pod;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Device memory that copies read and write.
pub trait DeviceSlice<T> {
    /// Returns the address of the first element on the device.
    fn address(&self) -> u64;
    /// Returns the number of elements.
    fn len(&self) -> usize;
    /// Returns `true` if there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, S: DeviceSlice<T> + ?Sized> DeviceSlice<T> for &S {
    fn address(&self) -> u64 {
        (**self).address()
    }
    fn len(&self) -> usize {
        (**self).len()
    }
}

impl<T, S: DeviceSlice<T> + ?Sized> DeviceSlice<T> for &mut S {
    fn address(&self) -> u64 {
        (**self).address()
    }
    fn len(&self) -> usize {
        (**self).len()
    }
}

/// Part of a buffer: address and number of elements.
pub struct DeviceSpan(u64, usize);

impl DeviceSpan {
    /// Describes `length` bytes of device memory at `address`.
    pub fn of(address: u64, length: usize) -> Self {
        Self(address, length)
    }
}

impl<T> DeviceSlice<T> for DeviceSpan {
    fn address(&self) -> u64 {
        self.0
    }
    fn len(&self) -> usize {
        self.1
    }
}

/// Device memory of fixed length, freed on drop.
pub struct Buffer<T> {
    device: Device,
    address: u64,
    length: usize,
    transient: bool,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    /// Allocates `length` elements, set to zero.
    pub(super) fn new(device: &Device, length: usize) -> Result<Self, DeviceError> {
        let mut buffer = Self::empty(device);
        let bytes = bytes_of::<T>(length)?;
        if bytes > 0 {
            let backend = device.backend();
            device.atomic_counters().count_allocation();
            buffer.address = device
                .transient_memory()
                .retry_when_released(|| backend.allocate(bytes))?;
            buffer.length = length;
            backend.zero(buffer.address, bytes)?;
        }
        Ok(buffer)
    }

    /// Allocates `length` elements of transient memory with unspecified content.
    pub(super) fn transient(device: &Device, length: usize) -> Result<Self, DeviceError> {
        let mut buffer = Self::empty(device);
        let bytes = bytes_of::<T>(length)?;
        if bytes > 0 {
            buffer.address = device.backend().allocate(bytes)?;
            (buffer.length, buffer.transient) = (length, true);
            device.transient_memory().add(bytes);
        }
        Ok(buffer)
    }

    fn empty(device: &Device) -> Self {
        Self {
            device: device.clone(),
            address: 0,
            length: 0,
            transient: false,
            elements: PhantomData,
        }
    }
}

impl<T> Buffer<T> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }

    /// Returns the address of the first element for kernel parameters; 0 without elements.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.length > 0 {
            self.device.backend().release(self.address, self.bytes());
        }
        if self.transient {
            self.device.transient_memory().remove(self.bytes());
        }
    }
}

impl<T> DeviceSlice<T> for Buffer<T> {
    fn address(&self) -> u64 {
        self.address
    }
    fn len(&self) -> usize {
        self.length
    }
}

/// Buffer that is reused and grows on demand, because allocation is slow.
pub struct ReusableBuffer<T>(Option<Buffer<T>>);

impl<T> Default for ReusableBuffer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> ReusableBuffer<T> {
    /// Provides at least `length` elements.
    ///
    /// A buffer that is too short is replaced, and its content is lost. The new one has half as much headroom, but at
    /// most 16 MiB or one eighth, whichever is more.
    pub fn provide(&mut self, device: &Device, length: usize) -> Result<&Buffer<T>, DeviceError> {
        let buffer = match self.0.take() {
            Some(buffer) if buffer.len() >= length => buffer,
            small => {
                // Free the old buffer first.
                drop(small);
                let little = (16 << 20) / size_of::<T>().max(1);
                device.buffer(length + (length / 2).min(little.max(length / 8)))?
            }
        };
        Ok(self.0.insert(buffer))
    }

    /// Copies `values` to the buffer, which grows if needed.
    pub fn set(&mut self, device: &Device, values: &[T]) -> Result<(), DeviceError> {
        device.upload(self.provide(device, values.len())?, 0, values)
    }

    /// Returns the present buffer.
    pub fn buffer(&self) -> Option<&Buffer<T>> {
        self.0.as_ref()
    }

    /// Returns the address of the first element; 0 without a buffer.
    pub fn address(&self) -> u64 {
        self.buffer().map_or(0, Buffer::address)
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.buffer().map_or(0, Buffer::bytes)
    }
}

/// Device memory that grows without moving, freed on drop.
///
/// The address range is reserved at the start; memory is mapped to it in slabs.
pub struct Growable<T> {
    device: Device,
    range: Option<Box<dyn AddressRange>>,
    length: usize,
    most: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> Growable<T> {
    /// Reserves addresses for `most` elements without mapping memory.
    pub(super) fn new(device: &Device, most: usize) -> Result<Self, DeviceError> {
        let bytes = bytes_of::<T>(most)?;
        let range = match bytes {
            0 => None,
            bytes => Some(device.backend().reserve(bytes)?),
        };
        if let Some(range) = &range {
            device.reserved().add(range.address(), bytes);
        }
        Ok(Self {
            device: device.clone(),
            range,
            length: 0,
            most,
            elements: PhantomData,
        })
    }

    /// Grows to at least `length` elements; memory that was never used is zero. The address does not change.
    ///
    /// # Errors
    /// The length exceeds the reservation, or the memory of the device does not suffice.
    pub fn grow(&mut self, length: usize) -> Result<(), DeviceError> {
        if length <= self.length {
            return Ok(());
        }
        let most = self.most;
        match &mut self.range {
            Some(range) if length <= most => {
                let bytes = bytes_of::<T>(length)?;
                if bytes > range.mapped() {
                    self.device.atomic_counters().count_allocation();
                    self.device
                        .transient_memory()
                        .retry_when_released(|| range.grow(bytes))?;
                }
            }
            _ => {
                return Err(DeviceError::Range(format!(
                    "{length} elements exceed the {most} elements of reserved device memory"
                )));
            }
        }
        self.length = length;
        Ok(())
    }

    /// Shrinks to at most `length` elements and frees whole parts beyond them. The address does not change.
    ///
    /// # Errors
    /// Earlier work failed.
    pub fn shrink(&mut self, length: usize) -> Result<(), DeviceError> {
        self.length = self.length.min(length);
        match &mut self.range {
            Some(range) => range.shrink(self.length * size_of::<T>()),
            None => Ok(()),
        }
    }
}

impl<T> Growable<T> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the largest number of elements.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns the size of the mapped slabs in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.range.as_ref().map_or(0, |range| range.mapped())
    }

    /// Returns the address of the first element for kernel parameters, which never changes.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.range.as_ref().map_or(0, |range| range.address())
    }
}

impl<T> Drop for Growable<T> {
    fn drop(&mut self) {
        if let Some(range) = &self.range {
            self.device.reserved().remove(range.address());
        }
    }
}

impl<T> DeviceSlice<T> for Growable<T> {
    fn address(&self) -> u64 {
        Growable::address(self)
    }
    fn len(&self) -> usize {
        self.length
    }
}

/// Reserved address ranges of a device: start and size in bytes.
#[derive(Debug, Default)]
pub(super) struct Reserved(Mutex<BTreeMap<u64, usize>>);

impl Reserved {
    /// Returns `true` if an address lies in growable memory.
    pub(super) fn holds(&self, address: u64) -> bool {
        let ranges = lock(&self.0);
        let before = ranges.range(..=address).next_back();
        before.is_some_and(|(start, bytes)| address - start < *bytes as u64)
    }

    fn add(&self, address: u64, bytes: usize) {
        lock(&self.0).insert(address, bytes);
    }

    fn remove(&self, address: u64) {
        lock(&self.0).remove(&address);
    }
}

/// Returns the size of `length` elements in bytes.
fn bytes_of<T>(length: usize) -> Result<usize, DeviceError> {
    length
        .checked_mul(size_of::<T>())
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| DeviceError::Range(format!("{length} elements exceed the address space")))
}

/// Returns the address of element `offset`, if `length` elements from there on are in bounds.
pub(super) fn place<T: Pod>(
    memory: &impl DeviceSlice<T>,
    offset: usize,
    length: usize,
) -> Result<u64, DeviceError> {
    let end = offset.checked_add(length);
    if end.is_none_or(|end| end > memory.len()) {
        return Err(DeviceError::Range(format!(
            "{length} elements at offset {offset} exceed the {} elements of the device memory",
            memory.len()
        )));
    }
    Ok(memory.address() + (offset * size_of::<T>()) as u64)
}

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
    use crate::memory::TransientMemory;
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
