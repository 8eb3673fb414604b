//! Memory of the emulated device, which is host memory: address ranges and copies.

use crate::backend::{AddressRange, CopyStream, Fence};
use crate::parallel::lock;
use crate::{DeviceError, format_bytes};
use std::ffi::c_void;
use std::sync::Mutex;

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

/// A queue of copies.
///
/// Concurrent copies run only when somebody waits for them. So tests detect data that is changed or read too early.
pub(super) struct EmulatedCopyStream {
    late: bool,
    waiting: Mutex<Vec<QueuedCopy>>,
}

/// A queued copy.
struct QueuedCopy {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

// SAFETY: both ends are valid until the copy has ended, and nobody else accesses the target
unsafe impl Send for QueuedCopy {}

impl EmulatedCopyStream {
    pub(super) fn new(late: bool) -> Self {
        Self {
            late,
            waiting: Mutex::default(),
        }
    }

    fn add(&self, copy: QueuedCopy) {
        let mut waiting = lock(&self.waiting);
        waiting.push(copy);
        if !self.late {
            perform(&mut waiting);
        }
    }
}

fn perform(copies: &mut Vec<QueuedCopy>) {
    for QueuedCopy { from, to, bytes } in copies.drain(..) {
        // SAFETY: the caller who queued the copy keeps both ends valid
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}

impl CopyStream for EmulatedCopyStream {
    fn wait_for_main_stream(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        let from = from as *const u8;
        self.add(QueuedCopy { from, to, bytes });
        Ok(())
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        let to = to as *mut u8;
        self.add(QueuedCopy { from, to, bytes });
        Ok(())
    }

    fn record_fence(&self) -> Result<Box<dyn Fence>, DeviceError> {
        let mut waiting = lock(&self.waiting);
        Ok(Box::new(Mutex::new(std::mem::take(&mut *waiting))))
    }

    fn block_main_stream(&self) -> Result<Box<dyn Fence>, DeviceError> {
        let mark = self.record_fence()?;
        mark.wait()?;
        Ok(mark)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.waiting.wait()
    }
}

impl Fence for Mutex<Vec<QueuedCopy>> {
    fn is_done(&self) -> Result<bool, DeviceError> {
        self.wait().map(|()| true)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        perform(&mut lock(self));
        Ok(())
    }
}
