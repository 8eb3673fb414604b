//! Address ranges of the operating system with pages mapped from the front.

use crate::backend::AddressRange;
use crate::{DeviceError, format_bytes};
use std::ffi::c_void;

/// Reserved pages; mapped ones can be read and written, and are zero at first.
pub(super) struct PageRange {
    address: *mut c_void,
    reserved: usize,
    mapped: usize,
}

// SAFETY: the value owns the memory exclusively
unsafe impl Send for PageRange {}
// SAFETY: shared references do not change the memory
unsafe impl Sync for PageRange {}

impl PageRange {
    const SIZE: usize = 1 << 16;

    pub(super) fn reserve(bytes: usize) -> Result<Self, DeviceError> {
        let reserved = bytes.next_multiple_of(Self::SIZE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping affects no other memory
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserved,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            let doing = format!("cannot reserve {}", format_bytes(bytes as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        Ok(Self {
            address,
            reserved,
            mapped: 0,
        })
    }
}

impl AddressRange for PageRange {
    fn address(&self) -> u64 {
        self.address as u64
    }

    fn mapped(&self) -> usize {
        self.mapped
    }

    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError> {
        let mapped = bytes.next_multiple_of(Self::SIZE).min(self.reserved);
        // SAFETY: the pages belong to this mapping
        let answer =
            unsafe { libc::mprotect(self.address, mapped, libc::PROT_READ | libc::PROT_WRITE) };
        if answer != 0 {
            let doing = format!("cannot map {}", format_bytes(mapped as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        self.mapped = mapped;
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) -> Result<(), DeviceError> {
        let mapped = bytes.next_multiple_of(Self::SIZE);
        if mapped >= self.mapped {
            return Ok(());
        }
        let behind = self.address.wrapping_byte_add(mapped);
        // SAFETY: the pages belong to this mapping, and nobody uses them any more
        let answers = unsafe {
            let length = self.mapped - mapped;
            [
                libc::madvise(behind, length, libc::MADV_DONTNEED),
                libc::mprotect(behind, length, libc::PROT_NONE),
            ]
        };
        if answers != [0, 0] {
            let doing = format!("cannot free all but {}", format_bytes(mapped as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        self.mapped = mapped;
        Ok(())
    }
}

impl Drop for PageRange {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, which nobody uses afterwards
        unsafe { libc::munmap(self.address, self.reserved) };
    }
}
