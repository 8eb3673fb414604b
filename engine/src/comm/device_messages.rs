//! Messages between devices whose lengths only the senders know.
//!
//! Headers and lengths go through the hosts, contents over the device link.

use super::communicator::Message;
use super::{Ranks, RanksError};
use crate::device::{DeviceError, DeviceLink, Segment};

/// A message from or to the device of another rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMessage {
    /// Rank at the other end.
    pub peer: usize,
    /// Information about the content for the receiver; sent through the hosts.
    pub header: Vec<u8>,
    /// Address of the content on the device. Received contents are aligned to 8 bytes in the receive buffer.
    pub address: u64,
    /// Length of the content in bytes.
    pub bytes: usize,
}

/// Alignment of received contents, bytes.
const ALIGNMENT: usize = 8;

/// Exchanges messages, at most one to each peer, and returns the received ones in rank order. Collective.
///
/// `room` returns the address of a buffer with the given number of bytes.
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
        let cut = || RanksError::Transport("the header of a device message is truncated".into());
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

/// Returns the non-empty contents of messages as segments.
fn segments(messages: &[DeviceMessage]) -> Vec<Segment> {
    let full = messages.iter().filter(|message| message.bytes > 0);
    let segment = |message: &DeviceMessage| Segment {
        peer: message.peer,
        address: message.address,
        bytes: message.bytes,
    };
    full.map(segment).collect()
}
