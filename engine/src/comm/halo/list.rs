//! Lists what is packed or unpacked for each peer; lists are valid until the hierarchy changes.

use crate::data::{DevicePieces, Piece, RowShape};
use crate::device::{Device, DeviceError, ReusableBuffer};
use std::ops::Range;

/// Part of a list for one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::comm) struct PeerRange {
    pub peer: usize,
    /// Range of entries.
    pub entries: Range<usize>,
    /// Range of values per component, counted from the start of the list.
    pub values: Range<usize>,
}

/// Entries of one direction, ordered by peer.
#[derive(Default)]
pub(in crate::comm) struct TransferList {
    pub entries: Vec<Piece>,
    pub peers: Vec<PeerRange>,
    there: ReusableBuffer<Piece>,
}

impl TransferList {
    /// Replaces all entries; `lists` is in ascending order of peers.
    ///
    /// `entry` creates an entry from a list element and the number of values before it, in stores of `shape`.
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

    /// Returns the entries of a peer.
    pub fn of(&self, range: &PeerRange) -> &[Piece] {
        &self.entries[range.entries.clone()]
    }

    /// Returns the list on the device, for values packed at `memory`.
    pub fn on_device<'a>(&'a self, device: &'a Device, memory: u64) -> DevicePieces<'a> {
        DevicePieces {
            entries: &self.entries,
            device,
            list: self.there.address(),
            memory,
            stride: 0,
        }
    }

    /// Returns the total number of values per component.
    pub fn values(&self) -> usize {
        self.peers.last().map_or(0, |last| last.values.end)
    }
}

/// Lists of both directions.
#[derive(Default)]
pub(in crate::comm) struct HaloRoute {
    pub sends: TransferList,
    pub receives: TransferList,
}
