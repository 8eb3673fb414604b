//! Copies to and from an emulated device, whose memory is host memory.

use crate::DeviceError;
use crate::backend::{CopyStream, Fence};
use crate::parallel::lock;
use std::sync::Mutex;

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
