//! Parcels between a device and its host: half of the way of halos where devices have no direct link.

use super::Parcel;
use crate::device::backend::{Copies, Pending};
use crate::device::{Device, DeviceError, Pinned};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smallest piece of page-locked memory, bytes.
const LEAST: usize = 64 << 10;

/// Parcels between a device and page-locked memory, beside the device's work.
pub(crate) struct HostWay {
    device: Device,
    copies: Box<dyn Copies>,
    /// Page-locked memory to use again.
    spare: Mutex<Vec<Pinned<u8>>>,
}

/// Parcels on their way to the host, one behind the other. Dropping them waits.
pub(crate) struct Fetched {
    parcels: Vec<Parcel>,
    /// Copies whose end is not known yet.
    pending: Vec<Box<dyn Pending>>,
    memory: Option<Pinned<u8>>,
}

impl HostWay {
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            device: device.clone(),
            copies: device.backend().copies()?,
            spare: Mutex::default(),
        })
    }

    /// Starts to bring parcels to the host, after the work that the device has been given so far.
    pub(crate) fn fetch(&self, parcels: &[Parcel]) -> Result<Fetched, DeviceError> {
        let bytes = parcels.iter().map(|parcel| parcel.bytes).sum();
        let mut fetched = Fetched {
            parcels: parcels.to_vec(),
            pending: Vec::with_capacity(parcels.len()),
            memory: None,
        };
        if bytes == 0 {
            return Ok(fetched);
        }
        self.copies.follow()?;
        let memory = fetched.memory.insert(self.memory(bytes)?);
        let mut start = 0;
        for parcel in parcels.iter().filter(|parcel| parcel.bytes > 0) {
            let to = memory[start..start + parcel.bytes].as_mut_ptr();
            let copy = self.copies.start(parcel.address, to, parcel.bytes)?;
            fetched.pending.push(copy);
            start += parcel.bytes;
        }
        self.device.tally().downloaded(bytes);
        Ok(fetched)
    }

    /// Waits for parcels and gives each with its content to `take`.
    pub(crate) fn unload(
        &self,
        mut fetched: Fetched,
        mut take: impl FnMut(&Parcel, &[u8]),
    ) -> Result<(), DeviceError> {
        fetched.wait()?;
        let memory = fetched.memory.take();
        let mut rest: &[u8] = memory.as_ref().map_or(&[], |memory| memory);
        for parcel in &fetched.parcels {
            let (content, behind) = rest.split_at(parcel.bytes);
            take(parcel, content);
            rest = behind;
        }
        self.spare().extend(memory);
        Ok(())
    }

    /// Sets the content of a parcel, after the work that the device has been given so far.
    pub(crate) fn deliver(&self, parcel: &Parcel, content: &[u8]) -> Result<(), DeviceError> {
        if content.is_empty() {
            return Ok(());
        }
        self.device.tally().uploaded(content.len());
        self.device.backend().upload(parcel.address, content)
    }

    /// Page-locked memory of at least so many bytes.
    fn memory(&self, bytes: usize) -> Result<Pinned<u8>, DeviceError> {
        match self.spare().pop() {
            Some(memory) if memory.len() >= bytes => Ok(memory),
            _ => self.device.pinned(bytes.next_power_of_two().max(LEAST)),
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Pinned<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetched {
    fn wait(&mut self) -> Result<(), DeviceError> {
        let mut result = Ok(());
        for copy in self.pending.drain(..) {
            // all of them, so that the memory is free also after a failure
            result = result.and(copy.wait());
        }
        result
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // of failures there is nobody to tell
        let _ = self.wait();
    }
}
