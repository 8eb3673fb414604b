//! Pieces of rows and of flux registers that go to another rank or to a file, and where they stand in memory of a device.

use crate::device::{Device, DeviceSpan};
pub use nestar_kernels::mesh::pieces::{Piece, RowShape};

/// A list of pieces, and the values packed by it, both in memory of a device.
#[derive(Clone, Copy)]
pub struct DevicePieces<'a> {
    /// The list on the host.
    pub entries: &'a [Piece],
    /// The device.
    pub device: &'a Device,
    /// Address of the list.
    pub list: u64,
    /// Address of the packed memory.
    pub memory: u64,
    /// Of whole rows that are packed: values from a component of all of them to the next; 0: piece after piece.
    pub stride: usize,
}

impl DevicePieces<'_> {
    /// So many bytes of the packed memory.
    pub(super) fn bytes(&self, bytes: usize) -> DeviceSpan {
        DeviceSpan::of(self.memory, bytes)
    }
}
