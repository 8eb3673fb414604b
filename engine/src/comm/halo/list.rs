//! What goes one way between ranks: a list, rank by rank, made when the hierarchy changes and used until it changes again.

use crate::data::{DevicePieces, Piece, RowShape};
use crate::device::{Device, DeviceError, ReusableBuffer};
use std::ops::Range;

/// What one rank gets or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::comm) struct PeerRange {
    pub peer: usize,
    /// Part of the list.
    pub entries: Range<usize>,
    /// Values of a component, counted from the start of the list.
    pub values: Range<usize>,
}

/// What goes one way, rank by rank.
#[derive(Default)]
pub(in crate::comm) struct TransferList {
    pub entries: Vec<Piece>,
    pub peers: Vec<PeerRange>,
    there: ReusableBuffer<Piece>,
}

impl TransferList {
    /// Replaces the content by what goes to or comes from each peer, ascending by peer: `entry` makes an entry of what is
    /// listed and the number of values before it, in stores of `shape`.
    pub fn set<'a, S: 'a>(
        &mut self,
        device: Option<&Device>,
        shape: RowShape,
        lists: impl Iterator<Item = (usize, &'a [S])>,
        entry: impl Fn(&S, u64) -> Piece,
    ) -> Result<(), DeviceError> {
        self.entries.clear();
        self.peers.clear();
        let mut values = 0;
        for (peer, list) in lists.filter(|(_, list)| !list.is_empty()) {
            let (first, start) = (self.entries.len(), values);
            for one in list {
                let made = entry(one, values as u64);
                values += made.values(shape);
                self.entries.push(made);
            }
            self.peers.push(PeerRange {
                peer,
                entries: first..self.entries.len(),
                values: start..values,
            });
        }
        device.map_or(Ok(()), |device| self.there.set(device, &self.entries))
    }

    /// The entries of a peer.
    pub fn of(&self, range: &PeerRange) -> &[Piece] {
        &self.entries[range.entries.clone()]
    }

    /// The list on the device, for values packed in `memory` there.
    pub fn on_device<'a>(&'a self, device: &'a Device, memory: u64) -> DevicePieces<'a> {
        DevicePieces {
            entries: &self.entries,
            device,
            list: self.there.address(),
            memory,
            stride: 0,
        }
    }

    /// Values of a component in all.
    pub fn values(&self) -> usize {
        self.peers.last().map_or(0, |last| last.values.end)
    }
}

/// Both ways.
#[derive(Default)]
pub(in crate::comm) struct HaloRoute {
    pub sends: TransferList,
    pub receives: TransferList,
}
