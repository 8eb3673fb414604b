//! Copies beside the work of an emulated device.

use crate::device::DeviceError;
use crate::device::backend::{Copies, Pending};
use std::sync::{Mutex, PoisonError};

/// Copies take place when somebody asks for their end: so late that a test sees whatever was changed, or read, too early.
#[derive(Default)]
pub(super) struct Late {
    /// Those to the device.
    up: Mutex<Vec<Copy>>,
}

/// A copy to come.
struct Copy {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

impl Copy {
    fn perform(self) {
        // SAFETY: who started the copy keeps both ends, of so many bytes, until now
        unsafe { std::ptr::copy_nonoverlapping(self.from, self.to, self.bytes) };
    }
}

// SAFETY: both ends live until the copy's end, and nobody else touches the target
unsafe impl Send for Copy {}

impl Copies for Late {
    fn follow(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn start(&self, from: u64, to: *mut u8, bytes: usize) -> Result<Box<dyn Pending>, DeviceError> {
        let from = from as *const u8;
        Ok(Box::new(Mutex::new(Some(Copy { from, to, bytes }))))
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        let to = to as *mut u8;
        let mut up = self.up.lock().unwrap_or_else(PoisonError::into_inner);
        up.push(Copy { from, to, bytes });
        Ok(())
    }

    fn precede(&self) -> Result<Box<dyn Pending>, DeviceError> {
        let mut up = self.up.lock().unwrap_or_else(PoisonError::into_inner);
        up.drain(..).for_each(Copy::perform);
        Ok(Box::new(Mutex::new(None)))
    }
}

impl Pending for Mutex<Option<Copy>> {
    fn is_done(&self) -> Result<bool, DeviceError> {
        self.wait().map(|()| true)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let copy = self.lock().unwrap_or_else(PoisonError::into_inner).take();
        copy.into_iter().for_each(Copy::perform);
        Ok(())
    }
}
