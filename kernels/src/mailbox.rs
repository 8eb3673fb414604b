//! Short messages between devices that access each other's memory.
//!
//! The sender writes into slots on the device of the receiver, which copies them to their destination. A slot holds one
//! part of a message. Two sequence numbers tell its state: the sender sets that of the part written, the receiver that
//! of the part last read.

use nestar_device::{Address, Item, device};

/// Size of a slot, bytes.
#[device]
pub const SLOT: i32 = 16384;
/// Number of slots for messages from one device to another.
#[device]
pub const SLOTS: i32 = 128;
/// Largest number of segments in a launch.
pub const MAX_ENTRIES: usize = 32;

/// Text of the kernel; it follows [`LAUNCH`](nestar_device::LAUNCH).
pub const MAILBOX: &str = include_str!("mailbox.cu");

/// Returns all structures and constants of the kernel.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![MailboxEntry, MailboxExchange, SLOT::ITEM, SLOTS::ITEM]
}

/// A segment to be sent or received.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct MailboxEntry {
    /// First byte.
    pub memory: Address<u8>,
    /// Slots on the receiving device, `[SLOTS][SLOT]`, aligned to 16 bytes.
    pub slots: Address<u8>,
    /// On the receiving device, `[SLOTS]`: sequence number of the part in each slot, plus 1.
    pub written_numbers: Address<u64>,
    /// On the sending device, `[SLOTS]`: sequence number of the part last read from each slot, plus 1.
    pub read_numbers: Address<u64>,
    /// Sequence number of the first part, among all parts from one device to the other.
    pub number: u64,
    /// Length in bytes.
    pub bytes: i64,
    /// Block of the first part; later parts have the next blocks.
    pub block: i32,
}

/// Parameters of the kernel `mailbox_exchange`, which has one block per part.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MailboxExchange {
    /// Segments to send, then segments to receive.
    pub entries: [MailboxEntry; 32],
    /// Number of segments.
    pub count: i32,
    /// Number of segments to send.
    pub sends: i32,
    /// Kernels stop waiting if it is not 0.
    pub abort_flag: Address<u32>,
}
