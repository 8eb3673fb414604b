//! Messages from device to device whose lengths only their senders know: what they are goes by the hosts, their contents over the link.

use super::communicator::Message;
use super::{Ranks, RanksError};
use crate::device::{DeviceError, DeviceLink, Segment};

/// A message of this rank's device to that of another rank, or from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMessage {
    /// The other rank.
    pub peer: usize,
    /// What goes by the hosts: whatever the receiver needs to know of the content.
    pub header: Vec<u8>,
    /// Where the content lies on the device; of what has come, a multiple of 8 bytes behind the room's first.
    pub address: u64,
    /// Bytes of the content.
    pub bytes: usize,
}

/// Bytes that contents begin at multiples of.
const ALIGNMENT: usize = 8;

/// Sends messages, at most one to a peer, and receives what others send, in the order of their ranks: `room` gives the address for so many
/// bytes. All ranks call this.
pub(super) fn exchange(
    ranks: &Ranks,
    link: Option<&DeviceLink>,
    sends: &[DeviceMessage],
    room: impl FnOnce(usize) -> Result<u64, DeviceError>,
) -> Result<Vec<DeviceMessage>, DeviceError> {
    let told = |message: &DeviceMessage| Message {
        peer: message.peer,
        bytes: [&(message.bytes as u64).to_le_bytes()[..], &message.header].concat(),
    };
    let sent = sends.iter().map(told).collect();
    let mut announced = ranks.communicator().exchange(sent)?;
    announced.sort_by_key(|message| message.peer);
    let (mut come, mut all) = (Vec::with_capacity(announced.len()), 0);
    for Message { peer, bytes } in announced {
        let cut =
            || RanksError::Transport("what announces a message of a device is cut off".into());
        let (length, header) = bytes.split_first_chunk().ok_or_else(cut)?;
        let length = u64::from_le_bytes(*length) as usize;
        come.push(DeviceMessage {
            peer,
            header: header.to_vec(),
            address: all as u64,
            bytes: length,
        });
        all += length.next_multiple_of(ALIGNMENT);
    }
    let first = room(all.max(ALIGNMENT))?;
    come.iter_mut().for_each(|message| message.address += first);
    if let Some(link) = link {
        link.exchange(&segments(sends), &segments(&come))?;
    }
    Ok(come)
}

/// The contents of messages.
fn segments(messages: &[DeviceMessage]) -> Vec<Segment> {
    let full = messages.iter().filter(|message| message.bytes > 0);
    let segment = |message: &DeviceMessage| Segment {
        peer: message.peer,
        address: message.address,
        bytes: message.bytes,
    };
    full.map(segment).collect()
}
