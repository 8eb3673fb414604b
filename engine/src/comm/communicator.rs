//! What a transport between ranks offers. All of it moves bytes or exact integers, so that results cannot depend on the
//! transport or on the number of ranks.

use super::placement::Placement;
use crate::device::{DeviceError, DeviceKind, Segment, StagingBuffer};
use std::fmt;

/// How values of the ranks become one. All kinds are exact: the order of the ranks does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum, modulo 2^64.
    Sum,
    /// Bits set on any rank.
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

/// Content that goes to another rank or comes from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<M = Vec<u8>> {
    /// The other rank.
    pub peer: usize,
    /// The content.
    pub bytes: M,
}

/// Messages whose lengths both sides know, none to or from oneself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages<M = Vec<u8>> {
    /// What goes out.
    pub sends: Vec<Message<M>>,
    /// What comes in: as long as it will be, the content is overwritten.
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
    /// The same messages with their contents in other hands.
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

/// Memory that an exchange reads or writes, and keeps until it has ended.
pub struct MessageBuffer(Kind);

enum Kind {
    Host(Vec<u8>),
    /// Page-locked.
    Staging(StagingBuffer),
    /// Owned elsewhere.
    Borrowed(Segment),
}

impl MessageBuffer {
    /// Memory that somebody else keeps; the segment's peer does not count.
    ///
    /// # Safety
    /// The memory is there until the exchange has ended, and belongs to the host or to a device that the communicator
    /// [reaches](Communicator::reaches); until then nobody changes what is sent or uses what is received. After a failure,
    /// that may be never.
    #[must_use]
    pub unsafe fn borrowed(segment: Segment) -> Self {
        Self(Kind::Borrowed(segment))
    }

    /// Address of the first byte. It stays when the value is moved.
    pub fn address(&mut self) -> *mut u8 {
        match &mut self.0 {
            Kind::Host(bytes) => bytes.as_mut_ptr(),
            Kind::Staging(buffer) => buffer.as_mut_ptr(),
            Kind::Borrowed(segment) => {
                std::ptr::with_exposed_provenance_mut(segment.address as usize)
            }
        }
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Host(bytes) => bytes.len(),
            Kind::Staging(buffer) => buffer.len(),
            Kind::Borrowed(segment) => segment.bytes,
        }
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content, where it is a vector; nothing where it is memory of another owner.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self.0 {
            Kind::Host(bytes) => bytes,
            Kind::Staging(_) | Kind::Borrowed(_) => Vec::new(),
        }
    }

    /// The staging buffer, where it is one.
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

/// An exchange under way. Dropped before its end, it gives up: memory that the transport still uses is never freed.
pub trait PendingExchange: Send {
    /// Whether all messages have left and arrived. Does not wait for another rank.
    ///
    /// # Errors
    /// As [`Pending::finish`].
    fn is_done(&mut self) -> Result<bool, RanksError>;

    /// Waits until all messages have left and arrived; gives the memory back.
    ///
    /// # Errors
    /// As [`Communicator::start`]; a message has another size than its receiver expects.
    fn finish(self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError>;
}

/// An exchange of messages in the host's own memory.
pub struct PendingMessages(Box<dyn PendingExchange>);

impl PendingMessages {
    /// Waits until all messages have left and arrived; gives the buffers back, the received ones filled.
    ///
    /// # Errors
    /// As [`Pending::finish`].
    pub fn finish(self) -> Result<Messages, RanksError> {
        Ok(self.0.finish()?.map(MessageBuffer::into_bytes))
    }
}

/// The connection of one rank to all others. All calls but `rank`, `size`, `placement`, `reaches`, `abort` and `failure` are collective: every rank makes the
/// same calls in the same order. They are made by one thread at a time, not always by the same one.
///
/// A rank that fails calls [`Communicator::abort`]; the others' calls then fail, or their processes are ended.
pub trait Communicator: Send + Sync + 'static {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Where this rank sits.
    fn placement(&self) -> Placement {
        Placement::shared(self.rank(), self.size())
    }

    /// Combines the values of all ranks, element by element; every rank gets the result and gives as many values.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    fn reduce(&self, reduction: Reduction, values: &mut [u64]) -> Result<(), RanksError>;

    /// What every rank gave, by rank; lengths may differ.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError>;

    /// Sends messages, at most one to each peer, which may be oneself, that do not know of them; returns what came, in the
    /// order of the peers. A message without content may be left out.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError>;

    /// Whether [`Communicator::start`] takes memory of such devices; that of the host it always does.
    fn reaches(&self, _: DeviceKind) -> bool {
        false
    }

    /// Starts sending and receiving messages, without another copy where that can be. Those to a peer arrive in the order in
    /// which they are started, whether in one exchange or in several. Other calls may come before the end; several exchanges
    /// may be under way, and end in any order.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError>;

    /// Every rank gets the bytes of rank `root`.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), RanksError>;

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn barrier(&self) -> Result<(), RanksError>;

    /// This rank cannot go on: all ranks end soon, and one of them says why. Returns only where ranks share a process.
    fn abort(&self, message: &str);

    /// The failure of a rank, if one has called [`Communicator::abort`] and the ranks share a process. Never waits; any thread
    /// may ask.
    fn failure(&self) -> Option<RanksError> {
        None
    }
}

impl dyn Communicator + '_ {
    /// Starts an exchange of messages in the host's own memory, as [`Communicator::start`].
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    pub fn start_messages(&self, messages: Messages) -> Result<PendingMessages, RanksError> {
        self.start(messages.map(MessageBuffer::from))
            .map(PendingMessages)
    }
}

/// Why ranks cannot go on together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RanksError {
    /// Another rank has failed; it says why.
    Stopped {
        /// The rank that failed.
        rank: usize,
        /// Its message.
        message: String,
    },
    /// The transport failed, or messages do not fit together.
    Transport(String),
    /// The device of this rank refuses or fails.
    Device(DeviceError),
}

impl fmt::Display for RanksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { rank, message } => write!(f, "rank {rank} failed: {message}"),
            Self::Transport(message) => write!(f, "the ranks cannot talk: {message}"),
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
