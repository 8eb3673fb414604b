//! Memory of a device: buffers of fixed length, growable ranges with fixed addresses.

use super::backend::AddressRange;
use super::parallel::lock;
use super::{Device, DeviceError};
use bytemuck::Pod;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Mutex;

/// Device memory that copies read and write.
pub trait DeviceSlice<T> {
    /// Address of the first element on the device.
    fn address(&self) -> u64;
    /// Elements.
    fn len(&self) -> usize;
    /// Whether there are no elements.
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

/// A part of some buffer: address and number of elements.
pub(crate) struct DeviceSpan(u64, usize);

impl DeviceSpan {
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
    /// `length` zeroed elements.
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

    /// `length` elements of any value, lent.
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
    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes of device memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }

    /// Address of the first element, as it goes into parameters of kernels; 0 without elements.
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

/// Device memory that is kept from use to use, since memory is long in coming.
pub struct ReusableBuffer<T>(Option<Buffer<T>>);

impl<T> Default for ReusableBuffer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> ReusableBuffer<T> {
    /// At least `length` elements: what is too short is replaced by memory with half as much to spare, but no more than 16 MiB or an eighth, whichever
    /// is more, and what it held is lost.
    pub fn provide(&mut self, device: &Device, length: usize) -> Result<&Buffer<T>, DeviceError> {
        let buffer = match self.0.take() {
            Some(buffer) if buffer.len() >= length => buffer,
            small => {
                // the old one goes first, to make room
                drop(small);
                let little = (16 << 20) / size_of::<T>().max(1);
                device.buffer(length + (length / 2).min(little.max(length / 8)))?
            }
        };
        Ok(self.0.insert(buffer))
    }

    /// Provides for `values` and takes them over.
    pub fn set(&mut self, device: &Device, values: &[T]) -> Result<(), DeviceError> {
        device.upload(self.provide(device, values.len())?, 0, values)
    }

    /// The memory that there is.
    pub fn buffer(&self) -> Option<&Buffer<T>> {
        self.0.as_ref()
    }

    /// Address of the first element; 0 if there was never one.
    pub fn address(&self) -> u64 {
        self.buffer().map_or(0, Buffer::address)
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.buffer().map_or(0, Buffer::bytes)
    }
}

/// Device memory that grows without moving, freed on drop: addresses are reserved at the start, memory is mapped to them
/// in slabs.
pub struct Growable<T> {
    device: Device,
    range: Option<Box<dyn AddressRange>>,
    length: usize,
    most: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> Growable<T> {
    /// Addresses for `most` elements, none of them mapped.
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

    /// Makes the length at least `length`; what was never in use before is zero. The address stays.
    ///
    /// # Errors
    /// More than was reserved; the device's memory does not suffice.
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
                    "{length} elements of device memory are more than the {most} that were reserved"
                )));
            }
        }
        self.length = length;
        Ok(())
    }

    /// Makes the length at most `length`, and frees what is behind it, in whole parts. The address stays.
    ///
    /// # Errors
    /// A failure of earlier work.
    pub fn shrink(&mut self, length: usize) -> Result<(), DeviceError> {
        self.length = self.length.min(length);
        match &mut self.range {
            Some(range) => range.shrink(self.length * size_of::<T>()),
            None => Ok(()),
        }
    }
}

impl<T> Growable<T> {
    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Most elements.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes of device memory: whole slabs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.range.as_ref().map_or(0, |range| range.mapped())
    }

    /// Address of the first element, as it goes into parameters of kernels; it never changes.
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

/// The reserved addresses of a device: where each range begins, and its bytes.
#[derive(Debug, Default)]
pub(super) struct Reserved(Mutex<BTreeMap<u64, usize>>);

impl Reserved {
    /// Whether an address lies in memory that grows.
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

/// Bytes of `length` elements.
fn bytes_of<T>(length: usize) -> Result<usize, DeviceError> {
    length
        .checked_mul(size_of::<T>())
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| DeviceError::Range(format!("{length} elements are more than addresses")))
}

/// Address of element `offset`, if `length` elements follow it.
pub(super) fn place<T: Pod>(
    memory: &impl DeviceSlice<T>,
    offset: usize,
    length: usize,
) -> Result<u64, DeviceError> {
    let end = offset.checked_add(length);
    if end.is_none_or(|end| end > memory.len()) {
        return Err(DeviceError::Range(format!(
            "{length} elements from {offset} on reach beyond the {} of the device memory",
            memory.len()
        )));
    }
    Ok(memory.address() + (offset * size_of::<T>()) as u64)
}
