//! Defines the transport between ranks, and assigns devices and cores of a host to ranks.
//!
//! A transport moves bytes and exact integers only, so that results depend neither on the transport nor on the number
//! of ranks.

use nestar_engine_device::{DeviceError, DeviceKind, Segment, StagingBuffer};
use std::fmt;
use std::num::NonZero;

/// Operation of a reduction. All operations are exact, so the order of the ranks does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Sum modulo 2^64.
    Sum,
    /// Bitwise or.
    Or,
}

impl Reduction {
    /// Combines two values.
    #[must_use]
    pub fn combine(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Sum => a.wrapping_add(b),
            Self::Or => a | b,
        }
    }
}

/// Message to or from another rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<M = Vec<u8>> {
    /// Rank at the other end.
    pub peer: usize,
    /// Content.
    pub bytes: M,
}

/// Messages whose lengths both sides know. A rank sends none to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages<M = Vec<u8>> {
    /// Outgoing messages.
    pub sends: Vec<Message<M>>,
    /// Incoming messages: buffers of the expected lengths, whose content is overwritten.
    pub receives: Vec<Message<M>>,
}

impl<M> Default for Messages<M> {
    fn default() -> Self {
        Self {
            sends: Vec::new(),
            receives: Vec::new(),
        }
    }
}

impl<M> Messages<M> {
    /// Converts the buffers of all messages.
    pub(super) fn map<N>(self, change: impl Fn(M) -> N + Copy) -> Messages<N> {
        let change = |messages: Vec<Message<M>>| {
            let messages = messages.into_iter();
            let changed = messages.map(|Message { peer, bytes }| Message {
                peer,
                bytes: change(bytes),
            });
            changed.collect()
        };
        Messages {
            sends: change(self.sends),
            receives: change(self.receives),
        }
    }
}

/// Memory that an exchange reads or writes and owns until it has ended.
pub struct MessageBuffer(Kind);

enum Kind {
    Host(Vec<u8>),
    /// Page-locked host memory.
    Staging(StagingBuffer),
    /// Memory owned by the caller.
    Borrowed(Segment),
}

impl MessageBuffer {
    /// Borrows memory of the caller; the peer of the segment is ignored.
    ///
    /// # Safety
    /// The memory stays valid until the exchange has ended and belongs to the host or to a device that the communicator
    /// [reaches](Communicator::reaches). Until then nobody changes outgoing data or reads incoming data. After a
    /// failure the exchange may never end.
    #[must_use]
    pub unsafe fn borrowed(segment: Segment) -> Self {
        Self(Kind::Borrowed(segment))
    }

    /// Returns the address of the first byte, which does not change when the value is moved.
    pub fn address(&mut self) -> *mut u8 {
        match &mut self.0 {
            Kind::Host(bytes) => bytes.as_mut_ptr(),
            Kind::Staging(buffer) => buffer.as_mut_ptr(),
            Kind::Borrowed(segment) => {
                std::ptr::with_exposed_provenance_mut(segment.address as usize)
            }
        }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Host(bytes) => bytes.len(),
            Kind::Staging(buffer) => buffer.len(),
            Kind::Borrowed(segment) => segment.bytes,
        }
    }

    /// Returns `true` if the length is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the content of an owned vector, or an empty vector for other memory.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self.0 {
            Kind::Host(bytes) => bytes,
            Kind::Staging(_) | Kind::Borrowed(_) => Vec::new(),
        }
    }

    /// Returns the staging buffer, if the memory is one.
    pub(crate) fn into_staging(self) -> Option<StagingBuffer> {
        match self.0 {
            Kind::Staging(buffer) => Some(buffer),
            Kind::Host(_) | Kind::Borrowed(_) => None,
        }
    }
}

impl From<StagingBuffer> for MessageBuffer {
    fn from(buffer: StagingBuffer) -> Self {
        Self(Kind::Staging(buffer))
    }
}

impl From<Vec<u8>> for MessageBuffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Kind::Host(bytes))
    }
}

/// An exchange in flight.
///
/// If it is dropped before its end, it is abandoned: memory that the transport still uses is leaked, not freed.
pub trait PendingExchange: Send {
    /// Returns `true` if all messages were sent and received. Does not block.
    ///
    /// # Errors
    /// As [`PendingExchange::finish`].
    fn is_done(&mut self) -> Result<bool, RanksError>;

    /// Waits until all messages were sent and received, and returns their memory.
    ///
    /// # Errors
    /// As [`Communicator::start`]; a message has a different length than its receiver expects.
    fn finish(self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError>;
}

/// An exchange in flight of messages in host memory.
pub struct PendingMessages(Box<dyn PendingExchange>);

impl PendingMessages {
    /// Waits until all messages were sent and received, and returns their buffers.
    ///
    /// # Errors
    /// As [`PendingExchange::finish`].
    pub fn finish(self) -> Result<Messages, RanksError> {
        Ok(self.0.finish()?.map(MessageBuffer::into_bytes))
    }
}

/// Connects one rank to all others.
///
/// All calls except `rank`, `size`, `placement`, `reaches`, `abort`, `end_all` and `failure` are collective: every rank makes the
/// same calls in the same order. One thread at a time calls, not always the same one.
///
/// A rank that fails calls [`Communicator::abort`]. Calls of the other ranks then fail, or their processes are ended.
pub trait Communicator: Send + Sync + 'static {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns the placement of this rank on its host.
    fn placement(&self) -> Placement {
        Placement::shared(self.rank(), self.size())
    }

    /// Reduces the values of all ranks element by element.
    ///
    /// Every rank passes the same number of values and gets the result.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    fn reduce(&self, reduction: Reduction, values: &mut [u64]) -> Result<(), RanksError>;

    /// Gathers the bytes of all ranks, in rank order; lengths may differ.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError>;

    /// Sends at most one message to each rank, including itself, whose receiver does not expect it.
    ///
    /// Returns the received messages in rank order. Empty messages may be dropped.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError>;

    /// Returns `true` if [`Communicator::start`] accepts memory of this kind of device. Host memory is always accepted.
    fn reaches(&self, _: DeviceKind) -> bool {
        false
    }

    /// Starts sending and receiving messages, without an intermediate copy where possible.
    ///
    /// Messages to one peer arrive in the order in which they are started, also across exchanges. Several exchanges may
    /// be in flight and may end in any order; other calls may be made meanwhile.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError>;

    /// Broadcasts the bytes of rank `root` to all ranks.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), RanksError>;

    /// Waits until all ranks have called it.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn barrier(&self) -> Result<(), RanksError>;

    /// Stops all ranks because this one cannot continue; one of them reports why.
    ///
    /// Returns only if the ranks share a process.
    fn abort(&self, message: &str);

    /// Ends the processes of all ranks with an exit status, without waiting for any rank.
    fn end_all(&self, status: u8) -> ! {
        std::process::exit(status.into())
    }

    /// Returns the failure of a rank that called [`Communicator::abort`], if the ranks share a process.
    ///
    /// Never blocks; may be called by any thread.
    fn failure(&self) -> Option<RanksError> {
        None
    }
}

impl dyn Communicator + '_ {
    /// Starts an exchange of messages in host memory, as [`Communicator::start`].
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    pub fn start_messages(&self, messages: Messages) -> Result<PendingMessages, RanksError> {
        self.start(messages.map(MessageBuffer::from))
            .map(PendingMessages)
    }
}

/// Error that stops communication between ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RanksError {
    /// Another rank has failed.
    Stopped {
        /// Rank that failed.
        rank: usize,
        /// Message of that rank.
        message: String,
    },
    /// The transport failed, or messages do not match.
    Transport(String),
    /// The device of this rank failed or rejected a request.
    Device(DeviceError),
}

impl fmt::Display for RanksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { rank, message } => write!(f, "rank {rank} failed: {message}"),
            Self::Transport(message) => write!(f, "communication between ranks failed: {message}"),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RanksError {}

impl From<DeviceError> for RanksError {
    fn from(error: DeviceError) -> Self {
        match error.as_transport_error::<Self>() {
            Some(carried) => carried.clone(),
            None => Self::Device(error),
        }
    }
}

impl From<RanksError> for DeviceError {
    fn from(error: RanksError) -> Self {
        match error {
            RanksError::Device(error) => error,
            error => Self::from_transport(error),
        }
    }
}

/// The communicator of a run with one rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleRank;

/// An exchange that is complete from the start.
struct Nothing(Messages<MessageBuffer>);

impl PendingExchange for Nothing {
    fn is_done(&mut self) -> Result<bool, RanksError> {
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError> {
        Ok(self.0)
    }
}

impl Communicator for SingleRank {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn reduce(&self, _: Reduction, _: &mut [u64]) -> Result<(), RanksError> {
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError> {
        Ok(vec![bytes.to_vec()])
    }

    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError> {
        Ok(sends)
    }

    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        Ok(Box::new(Nothing(messages)))
    }

    fn broadcast(&self, _: usize, _: &mut Vec<u8>) -> Result<(), RanksError> {
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        Ok(())
    }

    fn abort(&self, _: &str) {}
}

/// Placement of a rank on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of this rank among the ranks of its host, from 0; also the index of its device.
    pub local_rank: usize,
    /// Number of ranks on this host.
    pub local_size: usize,
    /// Number of cores of this rank, the default number of threads.
    pub cores: usize,
}

impl Placement {
    /// Returns the placement of rank `local_rank` of `local_size` that share the cores of this process evenly.
    #[must_use]
    pub fn shared(local_rank: usize, local_size: usize) -> Self {
        let cores = Self::process_cores() / local_size.max(1);
        Self {
            local_rank,
            local_size,
            cores: cores.max(1),
        }
    }

    /// Returns the number of cores of the host, available to this process or not.
    #[must_use]
    pub fn host_cores() -> usize {
        let listed = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = listed
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count();
        cores.max(Self::process_cores())
    }

    /// Returns the number of cores available to this process.
    #[must_use]
    pub fn process_cores() -> usize {
        std::thread::available_parallelism().map_or(1, NonZero::get)
    }
}

impl Default for Placement {
    fn default() -> Self {
        Self::shared(0, 1)
    }
}
