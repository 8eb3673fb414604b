//! Transports of memory segments to the devices of other ranks.

use super::DeviceError;

/// Identity of a link. One rank creates it, and all ranks join with the same bytes, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(pub(super) [u8; LinkId::BYTES]);

impl LinkId {
    /// Length in bytes.
    pub const BYTES: usize = 128;

    /// Returns the bytes that are sent to the other ranks.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates the identity from bytes of another rank; `None` if there are not [`LinkId::BYTES`] bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// Device memory that is sent to or received from the device of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Rank at the other end.
    pub peer: usize,
    /// Address of the first byte, in a [`Buffer`](super::Buffer).
    pub address: u64,
    /// Length in bytes; empty segments are not sent.
    pub bytes: usize,
}

/// Times of exchanges on the device, measured while it is profiled; complete up to the last synchronisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkTimes {
    /// Number of timed exchanges.
    pub timed: u64,
    /// Time from the moment this rank was ready until all segments were sent and received, seconds. It includes waiting
    /// for other ranks.
    pub seconds: f64,
    /// Part of this time in which the device was otherwise idle, seconds.
    pub exposed: f64,
}

/// Moves segments between devices.
pub trait LinkTransport: Send + Sync {
    /// Describes the transport in one line.
    fn describe(&self) -> String;
    /// Exports what other ranks need to write to this device's memory directly; empty if that is impossible.
    fn export_mailbox(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Opens the mailboxes exported by all ranks; returns, by rank, whether it succeeded.
    fn import_mailboxes(&self, offers: &[Vec<u8>]) -> Result<Vec<bool>, DeviceError> {
        Ok(vec![false; offers.len()])
    }
    /// Keeps the peers that reach this rank too, after [`LinkTransport::import_mailboxes`], and tests the transfer.
    /// Collective.
    fn keep_peers(&self, _reached: &[bool]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Starts an exchange after all work submitted to the device so far.
    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError>;
    /// Orders work submitted to the device from now on after the oldest unfinished exchange.
    fn finish(&self) -> Result<(), DeviceError>;
    /// Starts and finishes an exchange, without other work in between.
    fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.start(sends, receives)?;
        self.finish()
    }
    /// Turns timing of later exchanges on or off.
    fn profile(&self, _on: bool) {}
    /// Returns the times measured so far.
    fn times(&self) -> LinkTimes {
        LinkTimes::default()
    }
    /// Returns `true` if all exchanges have completed.
    fn is_done(&self) -> Result<bool, DeviceError>;
    /// Returns an error if the link has failed. May be called by any thread.
    fn check(&self) -> Result<(), DeviceError>;
    /// Aborts the link: pending exchanges end at once with undefined data, and later calls fail. May be called by any
    /// thread.
    fn stop(&self);
}
