//! Wraps MPI; the only module that uses it.
//!
//! All calls return at once, and waiting is done by polling. So calls of several threads are simply serialised, and a
//! waiting rank can yield its core.

use ::mpi::Threading;
use ::mpi::ffi;
use nestar_engine::comm::{MessageBuffer, Reduction};
use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Serialises MPI calls (`MPI_THREAD_SERIALIZED`).
static CALLS: Mutex<()> = Mutex::new(());

/// Calls MPI. On errors MPI ends the program with its own message, the default of its standard.
macro_rules! mpi {
    ($call:ident($($argument:expr),* $(,)?)) => {{
        let _one = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: MPI is running and no other call is active. Pointers refer to memory of the given sizes. It is valid
        // during the call for results, and owned by a `Transfer` for messages.
        let code = unsafe { ffi::$call($($argument),*) };
        assert_eq!(code, 0, concat!(stringify!($call), " failed"));
    }};
}

/// Starts MPI for this process and returns the communicator of all ranks.
///
/// Messages longer than `largest` bytes are split; MPI counts bytes in 31 bits.
///
/// # Errors
/// MPI runs already, or its library does not support calls from several threads.
pub fn start(largest: usize) -> Result<MpiComm, String> {
    let started = ::mpi::initialize_with_threading(Threading::Serialized);
    let (universe, threading) = started.ok_or("MPI is already running")?;
    // `finalise` ends MPI; dropping the value could end it too early or on the wrong thread.
    std::mem::forget(universe);
    if threading < Threading::Serialized {
        return Err(format!(
            "this MPI library supports calls from the main thread only ({threading:?}), but the run calls it from several threads: \
             use a library built with thread support (MPI_THREAD_SERIALIZED)"
        ));
    }
    Ok(MpiComm {
        // SAFETY: a constant of the library
        raw: unsafe { ffi::RSMPI_COMM_WORLD },
        largest,
    })
}

/// Finalises MPI. It must be called by the thread that started MPI; no call may follow.
pub fn finalise() {
    mpi!(MPI_Finalize());
}

/// Time in which the launcher can forward what the ranks have written; it drops the rest when a job is aborted.
const FORWARDING: Duration = Duration::from_millis(200);

/// Aborts all ranks with an exit status.
pub fn abort(status: u8) -> ! {
    std::thread::sleep(FORWARDING);
    // SAFETY: a constant of the library
    let world = unsafe { ffi::RSMPI_COMM_WORLD };
    mpi!(MPI_Abort(world, c_int::from(status)));
    std::process::exit(status.into())
}

/// Returns name and version of the library.
pub fn library() -> String {
    let text = ::mpi::environment::library_version().unwrap_or_default();
    // The rest describes how the library was built.
    let name = text.split([',', '\n', '\0']).next().unwrap_or_default();
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ")
}

/// Returns the MPI type of a byte.
fn bytes() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_UINT8_T }
}

/// Returns the MPI operation of a reduction.
fn operation(reduction: Reduction) -> ffi::MPI_Op {
    // SAFETY: constants of the library
    unsafe {
        match reduction {
            Reduction::Min => ffi::RSMPI_MIN,
            Reduction::Max => ffi::RSMPI_MAX,
            Reduction::Sum => ffi::RSMPI_SUM,
            Reduction::Or => ffi::RSMPI_BOR,
        }
    }
}

/// An MPI communicator. Handles are never freed.
#[derive(Clone, Copy)]
pub struct MpiComm {
    raw: ffi::MPI_Comm,
    largest: usize,
}

// SAFETY: all threads may use the handle, one call at a time
unsafe impl Send for MpiComm {}
// SAFETY: as above
unsafe impl Sync for MpiComm {}

impl MpiComm {
    /// Returns the number of this rank.
    pub fn rank(self) -> usize {
        let mut rank = 0;
        mpi!(MPI_Comm_rank(self.raw, &mut rank));
        rank as usize
    }

    /// Returns the number of ranks.
    pub fn size(self) -> usize {
        let mut size = 0;
        mpi!(MPI_Comm_size(self.raw, &mut size));
        size as usize
    }

    /// Returns the largest size of a message, bytes.
    pub fn largest(self) -> usize {
        self.largest
    }

    /// Duplicates the communicator. Blocks until all ranks call it.
    pub fn duplicate(self) -> Self {
        let mut other = self.raw;
        mpi!(MPI_Comm_dup(self.raw, &mut other));
        Self {
            raw: other,
            largest: self.largest,
        }
    }

    /// Returns the communicator of the ranks on this host. Blocks until all ranks call it.
    pub fn host(self) -> Self {
        let mut other = self.raw;
        mpi!(MPI_Comm_split_type(
            self.raw,
            ffi::RSMPI_COMM_TYPE_SHARED,
            0,
            ffi::RSMPI_INFO_NULL,
            &mut other
        ));
        Self {
            raw: other,
            largest: self.largest,
        }
    }

    /// Sends a message whose length the receiver knows.
    pub fn send(self, mut memory: MessageBuffer, peer: usize, tag: i32) -> Transfer<MessageBuffer> {
        let (from, length) = (memory.address(), memory.len());
        let mut transfer = Transfer::new(memory);
        for piece in pieces(length, self.largest) {
            let (start, length) = (from.wrapping_add(piece.start), piece.len() as c_int);
            let (to, request) = (peer as c_int, transfer.request());
            mpi!(MPI_Isend(
                start.cast(),
                length,
                bytes(),
                to,
                tag,
                self.raw,
                request
            ));
        }
        transfer
    }

    /// Sends an unexpected message; the transfer ends when the receiver has found it by [`MpiComm::probe_message`].
    pub fn send_synchronous(self, content: Vec<u8>, peer: usize, tag: i32) -> Transfer<Vec<u8>> {
        let mut transfer = Transfer::new(content);
        for piece in pieces(transfer.memory().len(), self.largest) {
            let (start, length) = (transfer.memory()[piece.clone()].as_ptr(), piece.len());
            let (to, request) = (peer as c_int, transfer.request());
            mpi!(MPI_Issend(
                start.cast(),
                length as c_int,
                bytes(),
                to,
                tag,
                self.raw,
                request
            ));
        }
        transfer
    }

    /// Receives a message into `memory` and counts its bytes.
    pub fn receive(
        self,
        mut memory: MessageBuffer,
        peer: usize,
        tag: i32,
    ) -> Transfer<MessageBuffer> {
        let (to, length) = (memory.address(), memory.len());
        let mut transfer = Transfer::new(memory);
        for piece in pieces(length, self.largest) {
            let (start, length) = (to.wrapping_add(piece.start), piece.len() as c_int);
            let (from, request) = (peer as c_int, transfer.request());
            mpi!(MPI_Irecv(
                start.cast(),
                length,
                bytes(),
                from,
                tag,
                self.raw,
                request
            ));
        }
        transfer.count();
        transfer
    }

    /// Starts receiving an unexpected message piece, if one has arrived; returns its sender. Pieces of a sender arrive
    /// in order.
    pub fn probe_message(self, tag: i32) -> Option<(usize, Transfer<Vec<u8>>)> {
        // SAFETY: plain data and a constant of the library
        let (mut status, mut message): (ffi::MPI_Status, _) =
            unsafe { (std::mem::zeroed(), ffi::RSMPI_MESSAGE_NULL) };
        let (mut found, mut length) = (0, 0);
        // SAFETY: a constant of the library
        let anybody = unsafe { ffi::RSMPI_ANY_SOURCE };
        mpi!(MPI_Improbe(
            anybody,
            tag,
            self.raw,
            &mut found,
            &mut message,
            &mut status
        ));
        if found == 0 {
            return None;
        }
        mpi!(MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut length));
        let mut transfer = Transfer::new(vec![0u8; length as usize]);
        let (start, request) = (transfer.memory().as_mut_ptr(), transfer.request());
        mpi!(MPI_Imrecv(
            start.cast(),
            length,
            ffi::RSMPI_UINT8_T,
            &mut message,
            request
        ));
        Some((status.MPI_SOURCE as usize, transfer))
    }

    /// Reduces the values of all ranks.
    pub fn reduce(self, given: Vec<u64>, reduction: Reduction) -> Transfer<Reduced> {
        let combined = with_allocation(vec![0; given.len()]);
        let given = with_allocation(given);
        let mut transfer = Transfer::new(Reduced { given, combined });
        let Reduced { given, combined } = transfer.memory();
        let (length, given) = (given.len() as c_int, given.as_ptr());
        let (combined, request) = (combined.as_mut_ptr(), transfer.request());
        mpi!(MPI_Iallreduce(
            given.cast(),
            combined.cast(),
            length,
            ffi::RSMPI_UINT64_T,
            operation(reduction),
            self.raw,
            request
        ));
        transfer
    }

    /// Gathers `lengths[rank]` bytes of each rank in rank order, fewer than 2^31 in total.
    pub fn gather(self, given: Vec<u8>, lengths: &[usize]) -> Transfer<Gathered> {
        let mut start = 0;
        let mut place = |&length: &usize| {
            start += length as c_int;
            start - length as c_int
        };
        let mut transfer = Transfer::new(Gathered {
            starts: lengths.iter().map(&mut place).collect(),
            lengths: lengths.iter().map(|&length| length as c_int).collect(),
            all: with_allocation(vec![0; lengths.iter().sum()]),
            given: with_allocation(given),
        });
        let memory = transfer.memory();
        let (given, length) = (memory.given.as_ptr(), memory.given.len() as c_int);
        let (lengths, starts) = (memory.lengths.as_ptr(), memory.starts.as_ptr());
        let (all, request) = (memory.all.as_mut_ptr(), transfer.request());
        mpi!(MPI_Iallgatherv(
            given.cast(),
            length,
            ffi::RSMPI_UINT8_T,
            all.cast(),
            lengths,
            starts,
            ffi::RSMPI_UINT8_T,
            self.raw,
            request
        ));
        transfer
    }

    /// Broadcasts the bytes of rank `root`. All ranks pass the same length, below 2^31.
    pub fn broadcast(self, bytes: Vec<u8>, root: usize) -> Transfer<Vec<u8>> {
        let mut transfer = Transfer::new(bytes);
        let (start, length) = (transfer.memory().as_mut_ptr(), transfer.memory().len());
        let (root, request) = (root as c_int, transfer.request());
        mpi!(MPI_Ibcast(
            start.cast(),
            length as c_int,
            ffi::RSMPI_UINT8_T,
            root,
            self.raw,
            request
        ));
        transfer
    }

    /// Completes when all ranks have called it.
    pub fn barrier(self) -> Transfer<()> {
        let mut transfer = Transfer::new(());
        let request = transfer.request();
        mpi!(MPI_Ibarrier(self.raw, request));
        transfer
    }
}

/// Buffers of a reduction.
pub struct Reduced {
    given: Vec<u64>,
    /// Result.
    pub combined: Vec<u64>,
}

/// Buffers of a gather.
pub struct Gathered {
    given: Vec<u8>,
    /// Bytes of all ranks in rank order.
    pub all: Vec<u8>,
    /// Lengths and offsets by rank.
    lengths: Vec<c_int>,
    starts: Vec<c_int>,
}

/// Ensures that a vector owns memory: an empty one may have the address 1, which some libraries define as
/// `MPI_IN_PLACE`.
fn with_allocation<T>(mut values: Vec<T>) -> Vec<T> {
    if values.capacity() == 0 {
        values.reserve(1);
    }
    values
}

/// Splits `length` bytes into ranges of at most `largest` bytes.
fn pieces(length: usize, largest: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..length).step_by(largest);
    starts.map(move |start| start..length.min(start + largest))
}

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
    fn new(memory: M) -> Self {
        Self {
            requests: Vec::with_capacity(1),
            memory: Some(memory),
            statuses: Vec::new(),
            received: 0,
        }
    }

    /// Returns the memory that MPI reads and writes.
    fn memory(&mut self) -> &mut M {
        self.memory.as_mut().expect("the memory has not been taken")
    }

    /// Counts received bytes. All requests must exist and be receives.
    fn count(&mut self) {
        // SAFETY: plain data that MPI overwrites
        let blank: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        self.statuses.resize(self.requests.len(), blank);
    }

    /// Returns the number of bytes received, if they are counted.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Adds a request and returns a pointer to it.
    fn request(&mut self) -> *mut ffi::MPI_Request {
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

/// Environment variable that overrides the library: 1 if MPI accepts addresses of CUDA devices, 0 if not.
const CHOICE: &str = "NESTAR_CUDA_AWARE";

/// Returns `true` if the library accepts addresses of CUDA devices (GPU-aware MPI).
pub fn reaches_gpus() -> bool {
    match std::env::var(CHOICE).ok().as_deref() {
        Some("0") => return false,
        Some("1") => return true,
        _ => {}
    }
    // MPICH of HPE Cray uses this variable.
    if std::env::var("MPICH_GPU_SUPPORT_ENABLED").is_ok_and(|value| value == "1") {
        return true;
    }
    let name = c"MPIX_Query_cuda_support";
    // SAFETY: a terminated name; no other library defines a function of this name
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: Open MPI and MPICH declare `int MPIX_Query_cuda_support(void)`
    let query: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
    let _one = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    query() == 1
}
