//! What is on its way, kept until MPI needs it no more.

use super::{CALLS, ffi};
use std::ffi::c_int;
use std::sync::PoisonError;

/// Data under way, owned until it has left or arrived.
pub struct Transfer<T> {
    requests: Vec<ffi::MPI_Request>,
    /// What goes out, where it is not `values`.
    pub(super) given: Vec<T>,
    pub(super) values: Vec<T>,
    /// Where the parts of the ranks lie in `values`, where they differ.
    pub(super) lengths: Vec<c_int>,
    pub(super) starts: Vec<c_int>,
    /// What MPI says of each request, where bytes are received.
    statuses: Vec<ffi::MPI_Status>,
    received: usize,
}

// SAFETY: handles that all threads may use, one call at a time
unsafe impl<T: Send> Send for Transfer<T> {}

impl<T> Transfer<T> {
    pub(super) fn new(mut given: Vec<T>, mut values: Vec<T>) -> Self {
        // an empty vector may lie at address 1, which is how a library says `MPI_IN_PLACE`
        for buffer in [&mut given, &mut values] {
            if buffer.capacity() == 0 {
                buffer.reserve(1);
            }
        }
        Self {
            requests: Vec::with_capacity(1),
            given,
            values,
            lengths: Vec::new(),
            starts: Vec::new(),
            statuses: Vec::new(),
            received: 0,
        }
    }

    /// Lets the bytes that arrive be counted; all requests are there, and receive bytes.
    pub(super) fn count(&mut self) {
        // SAFETY: plain data, which MPI overwrites
        let blank: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        self.statuses.resize(self.requests.len(), blank);
    }

    /// Bytes that have arrived, where they are counted.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Room for one more request.
    pub(super) fn request(&mut self) -> *mut ffi::MPI_Request {
        // SAFETY: a constant of the library
        self.requests.push(unsafe { ffi::RSMPI_REQUEST_NULL });
        let last = self.requests.len() - 1;
        &mut self.requests[last]
    }

    /// Whether all has left and arrived.
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

    /// The data, received or to be used again.
    ///
    /// # Panics
    /// If it is still under way.
    pub fn take(mut self) -> Vec<T> {
        assert!(self.requests.is_empty(), "the data is still under way");
        std::mem::take(&mut self.values)
    }
}

impl<T> Drop for Transfer<T> {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // MPI still reads or writes the memory
            std::mem::forget(std::mem::take(&mut self.given));
            std::mem::forget(std::mem::take(&mut self.values));
            std::mem::forget(std::mem::take(&mut self.lengths));
            std::mem::forget(std::mem::take(&mut self.starts));
        }
    }
}
