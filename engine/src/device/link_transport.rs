//! What carries segments of device memory to other ranks' devices.

use super::DeviceError;

/// By what the devices of a link find each other: one rank makes it, all ranks join with the same bytes, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(pub(super) [u8; LinkId::BYTES]);

impl LinkId {
    /// Length in bytes.
    pub const BYTES: usize = 128;

    /// The bytes that the other ranks get.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The identity that another rank made; none where there are not [`LinkId::BYTES`] bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// Device memory whose content goes to another rank's device, or comes from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The other rank.
    pub peer: usize,
    /// Address of the first byte, in a [`Buffer`](super::Buffer).
    pub address: u64,
    /// Bytes; of a segment without content nothing is sent.
    pub bytes: usize,
}

/// Times of exchanges on the device, taken while it is profiled; complete up to its last wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkTimes {
    /// Exchanges timed.
    pub timed: u64,
    /// Seconds from the moment that this rank was ready until all segments had left and arrived: others may have come late.
    pub seconds: f64,
    /// Seconds of these in which the device had nothing else to do.
    pub exposed: f64,
}

/// How segments travel.
pub(crate) trait LinkTransport: Send + Sync {
    /// The way they take, for people.
    fn describe(&self) -> String;
    /// What other ranks need to write to this device's memory by themselves; nothing where they cannot.
    fn export_mailbox(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Opens what others offer, by rank; by rank, whether they are reached.
    fn import_mailboxes(&self, offers: &[Vec<u8>]) -> Result<Vec<bool>, DeviceError> {
        Ok(vec![false; offers.len()])
    }
    /// Says, by rank, which ones reach this rank, after [`LinkTransport::import_mailboxes`]; all ranks try whether data arrive.
    fn keep_peers(&self, _reached: &[bool]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Starts an exchange after the work that the device has been given so far.
    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError>;
    /// Lets what the device is given from now on wait for the oldest exchange that was not finished.
    fn finish(&self) -> Result<(), DeviceError>;
    /// Both at once, where the device has nothing else to do meanwhile.
    fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.start(sends, receives)?;
        self.finish()
    }
    /// Whether exchanges are timed from the next one on.
    fn profile(&self, _on: bool) {}
    /// Times taken so far.
    fn times(&self) -> LinkTimes {
        LinkTimes::default()
    }
    /// Whether all that was started has left and arrived.
    fn is_done(&self) -> Result<bool, DeviceError>;
    /// Whether something has gone wrong since; callable by any thread.
    fn check(&self) -> Result<(), DeviceError>;
    /// Gives up: what is under way ends at once and leaves any values, later calls fail. Callable by any thread.
    fn stop(&self);
}
