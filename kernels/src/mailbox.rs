//! Short messages between devices that reach each other's memory: the sender writes into slots of the receiver's device, which
//! copies them to their place. A slot holds a part of a message, and two words say how far it is used: the number of the part
//! that stands in it, written by the sender, and that of the last one taken out, written by the receiver.

use nestar_device::{Address, Item, device};

/// Bytes of a slot.
#[device]
pub const SLOT: i32 = 16384;
/// Slots for what one device sends to another.
#[device]
pub const SLOTS: i32 = 128;
/// Segments of one launch.
pub const MAX_ENTRIES: usize = 32;

/// The skeleton, which follows [`LAUNCH`](nestar_device::LAUNCH).
pub const MAILBOX: &str = include_str!("mailbox.cu");

/// Every structure and constant.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![MailboxEntry, MailboxExchange, SLOT::ITEM, SLOTS::ITEM]
}

/// A segment that goes to another device, or comes from there.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct MailboxEntry {
    /// Its first byte.
    pub memory: Address<u8>,
    /// `[SLOTS][SLOT]`, on the device that receives; at a multiple of 16.
    pub slots: Address<u8>,
    /// `[SLOTS]`, on that device: the number of the part in each slot, plus 1.
    pub written_numbers: Address<u64>,
    /// `[SLOTS]`, on the device that sends: the number of the part last taken out of each slot, plus 1.
    pub read_numbers: Address<u64>,
    /// The number of its first part, among all from the one device to the other.
    pub number: u64,
    /// Bytes.
    pub bytes: i64,
    /// The block that carries its first part; those of the next parts follow.
    pub block: i32,
}

/// Of the kernel `mailbox_exchange`: a block for each part.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct MailboxExchange {
    /// First what is sent, then what is received.
    pub entries: [MailboxEntry; 32],
    /// Of these, how many there are.
    pub count: i32,
    /// How many are sent.
    pub sends: i32,
    /// Anything but 0: nobody waits any longer.
    pub abort_flag: Address<u32>,
}
