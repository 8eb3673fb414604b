//! Pieces of rows into and out of packed memory of the device, on their way between ranks.

use super::DevicePool;
use crate::device::{DeviceError, Kernel, Shape};
use crate::field::pieces::{OnDevice, Piece};
use nestar_device::Number;
use nestar_kernels::mesh::parameters::Pieces;

/// Threads of a block.
const THREADS: u32 = 256;

impl DevicePool {
    /// Starts to pack pieces of rows of bank `bank`; what comes next on the device's stream finds them there.
    pub(in crate::field) fn pack_pieces(
        &self,
        bank: usize,
        pieces: &OnDevice<Piece>,
    ) -> Result<(), DeviceError> {
        self.move_pieces(&self.kernels.pack_pieces, bank, pieces)
    }

    /// Starts to set pieces of rows of bank `bank`.
    pub(in crate::field) fn unpack_pieces(
        &mut self,
        bank: usize,
        pieces: &OnDevice<Piece>,
    ) -> Result<(), DeviceError> {
        self.move_pieces(&self.kernels.unpack_pieces, bank, pieces)
    }

    fn move_pieces(
        &self,
        kernel: &Kernel,
        bank: usize,
        pieces: &OnDevice<Piece>,
    ) -> Result<(), DeviceError> {
        let parameters = Pieces::<Number> {
            level: self.bank(bank).into(),
            packed: pieces.memory.into(),
            pieces: pieces.list.into(),
            stale: self.stale().into(),
        };
        self.device.launch(
            kernel,
            Shape::of(pieces.entries.len(), THREADS),
            &parameters,
        )
    }
}
