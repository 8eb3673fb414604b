//! Messages in flight, whose memory is kept until MPI has finished with it.

use super::{CALLS, ffi};
use std::ffi::c_int;
use std::sync::PoisonError;

/// A message in flight in memory `M`, owned until it was sent or received.
pub struct Transfer<M> {
    requests: Vec<ffi::MPI_Request>,
    /// `None` after it was taken.
    memory: Option<M>,
    /// Status of each request of a receive.
    statuses: Vec<ffi::MPI_Status>,
    received: usize,
}

// SAFETY: all threads may use the handles, one call at a time
unsafe impl<M: Send> Send for Transfer<M> {}

impl<M> Transfer<M> {
    pub(super) fn new(memory: M) -> Self {
        Self {
            requests: Vec::with_capacity(1),
            memory: Some(memory),
            statuses: Vec::new(),
            received: 0,
        }
    }

    /// Returns the memory that MPI reads and writes.
    pub(super) fn memory(&mut self) -> &mut M {
        self.memory.as_mut().expect("the memory has not been taken")
    }

    /// Counts received bytes. All requests must exist and be receives.
    pub(super) fn count(&mut self) {
        // SAFETY: plain data that MPI overwrites
        let blank: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        self.statuses.resize(self.requests.len(), blank);
    }

    /// Returns the number of bytes received, if they are counted.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Adds a request and returns a pointer to it.
    pub(super) fn request(&mut self) -> *mut ffi::MPI_Request {
        // SAFETY: a constant of the library
        self.requests.push(unsafe { ffi::RSMPI_REQUEST_NULL });
        let last = self.requests.len() - 1;
        &mut self.requests[last]
    }

    /// Returns `true` if all requests have completed.
    pub fn is_done(&mut self) -> bool {
        let mut done = 1;
        if !self.requests.is_empty() {
            let statuses = match &mut self.statuses[..] {
                // SAFETY: a constant of the library
                [] => unsafe { ffi::RSMPI_STATUSES_IGNORE },
                statuses => statuses.as_mut_ptr(),
            };
            mpi!(MPI_Testall(
                self.requests.len() as c_int,
                self.requests.as_mut_ptr(),
                &mut done,
                statuses
            ));
            if done != 0 {
                self.requests.clear();
                for status in self.statuses.drain(..) {
                    let mut length = 0;
                    mpi!(MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut length));
                    self.received += length as usize;
                }
            }
        }
        done != 0
    }

    /// Returns the memory.
    ///
    /// # Panics
    /// The message is still in flight.
    pub fn take(mut self) -> M {
        assert!(self.requests.is_empty(), "the message is still in flight");
        self.memory.take().expect("the memory has not been taken")
    }
}

impl<M> Drop for Transfer<M> {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // MPI still accesses the memory.
            std::mem::forget(self.memory.take());
        }
    }
}
