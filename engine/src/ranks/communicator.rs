//! What a transport between ranks offers. All of it moves bytes or exact integers, so that results cannot depend on the
//! transport or on the number of ranks.

use super::seat::Seat;
use crate::device::{DeviceError, DeviceKind, Parcel};
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

/// Bytes to or from another rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub peer: usize,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Messages whose lengths both sides know: at most one to and one from each peer, none to or from oneself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halo {
    /// What goes out.
    pub sends: Vec<Message>,
    /// What comes in: as long as it will be, the content is overwritten.
    pub receives: Vec<Message>,
}

/// Messages under way.
pub trait Pending: Send {
    /// Waits until all messages have left and arrived; gives the buffers back, the received ones filled.
    ///
    /// # Errors
    /// As [`Communicator::start`].
    fn finish(self: Box<Self>) -> Result<Halo, RanksError>;
}

/// Parcels under way.
pub trait PendingParcels: Send {
    /// Whether all parcels have left and arrived. Does not wait for another rank.
    ///
    /// # Errors
    /// As [`PendingParcels::finish`].
    fn is_done(&mut self) -> Result<bool, RanksError>;

    /// Waits until all parcels have left and arrived.
    ///
    /// # Errors
    /// As [`Communicator::start`]; a parcel has another size than its receiver expects.
    fn finish(self: Box<Self>) -> Result<(), RanksError>;
}

/// The connection of one rank to all others. All calls but `rank`, `size`, `seat`, `reaches`, `abort` and `failure` are collective: every rank makes the
/// same calls in the same order. They are made by one thread at a time, not always by the same one.
///
/// A rank that fails calls [`Communicator::abort`]; the others' calls then fail, or their processes are ended.
pub trait Communicator: Send + Sync + 'static {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Where this rank sits.
    fn seat(&self) -> Seat {
        Seat::shared(self.rank(), self.size())
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

    /// Starts sending and receiving messages of known lengths. Other calls may come before their end; several such sets may
    /// be under way, and end in any order.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    fn start(&self, halo: Halo) -> Result<Box<dyn Pending>, RanksError>;

    /// Whether [`Communicator::start_parcels`] takes addresses of such devices; those of the host it always does.
    fn reaches(&self, _: DeviceKind) -> bool {
        false
    }

    /// Starts sending and receiving what lies in memory of the host, or of devices that it [reaches](Communicator::reaches),
    /// without another copy where that can be. The parcels for a peer arrive in the order of its parcels from here. Other calls
    /// may come before their end; several such sets may be under way, and end in any order.
    ///
    /// # Errors
    /// As [`Communicator::reduce`]; there is nobody to send to.
    ///
    /// # Safety
    /// The memory of the parcels is there until they have left and arrived; until then nobody changes what is sent or uses
    /// what is received. After a failure, or without an end, that may be never.
    unsafe fn start_parcels(
        &self,
        _: &[Parcel],
        _: &[Parcel],
    ) -> Result<Box<dyn PendingParcels>, RanksError> {
        let why = "there is no other rank to exchange parcels with";
        Err(RanksError::Transport(why.into()))
    }

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
        match error.as_carried::<Self>() {
            Some(carried) => carried.clone(),
            None => Self::Device(error),
        }
    }
}

impl From<RanksError> for DeviceError {
    fn from(error: RanksError) -> Self {
        match error {
            RanksError::Device(error) => error,
            error => Self::carried(error),
        }
    }
}
