//! Copies beside the work of an emulated device.

use crate::device::DeviceError;
use crate::device::backend::{Copies, Pending};
use std::sync::{Mutex, PoisonError};

/// Copies take place when somebody asks for their end: so late that a test sees whatever was changed, or read, too early.
pub(super) struct Late;

/// A copy to come.
struct Copy {
    from: u64,
    to: *mut u8,
    bytes: usize,
}

// SAFETY: both ends live until the copy's end, and nobody else touches the target
unsafe impl Send for Copy {}

impl Copies for Late {
    fn follow(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn start(&self, from: u64, to: *mut u8, bytes: usize) -> Result<Box<dyn Pending>, DeviceError> {
        Ok(Box::new(Mutex::new(Some(Copy { from, to, bytes }))))
    }
}

impl Pending for Mutex<Option<Copy>> {
    fn is_done(&self) -> Result<bool, DeviceError> {
        self.wait().map(|()| true)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let copy = self.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Copy { from, to, bytes }) = copy {
            // SAFETY: who started the copy keeps both ends, of so many bytes, until now
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, bytes) };
        }
        Ok(())
    }
}
