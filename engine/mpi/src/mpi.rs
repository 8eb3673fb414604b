//! MPI: the only module that names it. Every call returns at once and waiting is done by asking again: so calls of several
//! threads need only come one at a time, and a rank that waits can leave its core to one that works.

use ::mpi::Threading;
use ::mpi::ffi;
use nestar_engine::comm::MessageBuffer;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// MPI calls come one at a time (`MPI_THREAD_SERIALIZED`).
static CALLS: Mutex<()> = Mutex::new(());

/// Calls MPI. Errors do not come back: MPI ends the program with a message of its own, as its standard says.
macro_rules! mpi {
    ($call:ident($($argument:expr),* $(,)?)) => {{
        let _one = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: MPI runs, no other call does, and pointers lead to memory of the sizes told: live during the call for
        // what it returns, and kept by a `Transfer` until its end for what it sends and receives
        let code = unsafe { ffi::$call($($argument),*) };
        assert_eq!(code, 0, concat!(stringify!($call), " failed"));
    }};
}

mod gpus;
mod transfer;

pub use gpus::reaches_gpus;
pub use transfer::Transfer;

/// Starts MPI for this process; the communicator of all ranks. Longer messages than `largest` bytes (below 2^31, as MPI
/// counts them in 31 bits) go in pieces.
///
/// # Errors
/// MPI runs already, or its library does not let several threads call it.
pub fn start(largest: usize) -> Result<MpiComm, String> {
    let started = ::mpi::initialize_with_threading(Threading::Serialized);
    let (universe, threading) = started.ok_or("MPI was started before")?;
    // MPI ends by `finalise`: a value that is dropped somewhere would end it too early, or on the wrong thread
    std::mem::forget(universe);
    if threading < Threading::Serialized {
        return Err(format!(
            "this MPI library allows calls by the main thread only ({threading:?}), and the run calls it from its threads: \
             load a library built with thread support (MPI_THREAD_SERIALIZED)"
        ));
    }
    Ok(MpiComm {
        // SAFETY: a constant of the library
        raw: unsafe { ffi::RSMPI_COMM_WORLD },
        largest,
    })
}

/// Ends MPI; no call may follow. Called by the thread that started it.
pub fn finalise() {
    mpi!(MPI_Finalize());
}

/// Ends all ranks with an exit status, by force.
pub fn abort(status: u8) -> ! {
    // SAFETY: a constant of the library
    let world = unsafe { ffi::RSMPI_COMM_WORLD };
    mpi!(MPI_Abort(world, c_int::from(status)));
    std::process::exit(status.into())
}

/// Name and version of the library.
pub fn library() -> String {
    let text = ::mpi::environment::library_version().unwrap_or_default();
    // what follows says how the library was built
    let name = text.split([',', '\n', '\0']).next().unwrap_or_default();
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ")
}

/// The type of what is sent.
fn bytes() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_UINT8_T }
}

/// How values are combined.
#[derive(Clone, Copy)]
pub enum Operation {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum, modulo 2^64.
    Sum,
    /// Bitwise or.
    Or,
}

impl Operation {
    fn raw(self) -> ffi::MPI_Op {
        // SAFETY: constants of the library
        unsafe {
            match self {
                Self::Min => ffi::RSMPI_MIN,
                Self::Max => ffi::RSMPI_MAX,
                Self::Sum => ffi::RSMPI_SUM,
                Self::Or => ffi::RSMPI_BOR,
            }
        }
    }
}

/// Ranks that can talk. Handles are never freed: they last as long as MPI.
#[derive(Clone, Copy)]
pub struct MpiComm {
    raw: ffi::MPI_Comm,
    largest: usize,
}

// SAFETY: a handle that all threads may use, one call at a time
unsafe impl Send for MpiComm {}
// SAFETY: as above
unsafe impl Sync for MpiComm {}

impl MpiComm {
    /// This rank.
    pub fn rank(self) -> usize {
        let mut rank = 0;
        mpi!(MPI_Comm_rank(self.raw, &mut rank));
        rank as usize
    }

    /// Number of ranks.
    pub fn size(self) -> usize {
        let mut size = 0;
        mpi!(MPI_Comm_size(self.raw, &mut size));
        size as usize
    }

    /// Most bytes of one message.
    pub fn largest(self) -> usize {
        self.largest
    }

    /// The same ranks, with messages of their own. Blocks until all ranks call it.
    pub fn duplicate(self) -> Self {
        let mut other = self.raw;
        mpi!(MPI_Comm_dup(self.raw, &mut other));
        Self {
            raw: other,
            largest: self.largest,
        }
    }

    /// The ranks of this host. Blocks until all ranks call it.
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

    /// Sends a message to a receiver that knows how long it is.
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

    /// Sends bytes to a receiver that does not expect them; the transfer ends when the receiver's `arrived` has found them.
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

    /// Receives a message as long as the memory, and counts its bytes.
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

    /// Starts receiving a piece that has arrived unexpected: its sender and its bytes. Pieces of a sender come in order.
    pub fn probe_message(self, tag: i32) -> Option<(usize, Transfer<Vec<u8>>)> {
        // SAFETY: plain data, and a constant of the library
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

    /// Combines the values of all ranks.
    pub fn reduce(self, given: Vec<u64>, operation: Operation) -> Transfer<Reduced> {
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
            operation.raw(),
            self.raw,
            request
        ));
        transfer
    }

    /// What all ranks give, one after the other: `lengths` bytes each, fewer than 2^31 together.
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

    /// The bytes of rank `root` for all; all give room for as many, below 2^31.
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

    /// Done when all ranks have called it.
    pub fn barrier(self) -> Transfer<()> {
        let mut transfer = Transfer::new(());
        let request = transfer.request();
        mpi!(MPI_Ibarrier(self.raw, request));
        transfer
    }
}

/// The memory of a reduction.
pub struct Reduced {
    given: Vec<u64>,
    /// The result.
    pub combined: Vec<u64>,
}

/// The memory of a gathering.
pub struct Gathered {
    given: Vec<u8>,
    /// What all ranks gave, one after the other.
    pub all: Vec<u8>,
    /// Where the parts of the ranks lie.
    lengths: Vec<c_int>,
    starts: Vec<c_int>,
}

/// A vector with memory: an empty one may lie at address 1, which is how a library says `MPI_IN_PLACE`.
fn with_allocation<T>(mut values: Vec<T>) -> Vec<T> {
    if values.capacity() == 0 {
        values.reserve(1);
    }
    values
}

/// Stretches of at most `largest` bytes of `length`.
fn pieces(length: usize, largest: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..length).step_by(largest);
    starts.map(move |start| start..length.min(start + largest))
}
