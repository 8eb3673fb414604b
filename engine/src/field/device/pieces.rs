//! Pieces of rows into and out of packed memory of the device, on their way between ranks.

use super::parameters::PieceParameters;
use super::{DevicePool, shape};
use crate::device::{DeviceError, Kernel};
use crate::field::pieces::OnDevice;

/// Threads of a block.
const THREADS: u32 = 256;

impl DevicePool {
    /// Starts to pack pieces of rows of bank `bank`; what comes next on the device's stream finds them there.
    pub(in crate::field) fn pack_pieces(
        &self,
        bank: usize,
        pieces: &OnDevice,
    ) -> Result<(), DeviceError> {
        self.move_pieces(&self.kernels.pack_pieces, bank, pieces)
    }

    /// Starts to set pieces of rows of bank `bank`; `owned` rows count as a change of `level`.
    pub(in crate::field) fn unpack_pieces(
        &mut self,
        level: usize,
        bank: usize,
        pieces: &OnDevice,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.changed(level);
        }
        self.move_pieces(&self.kernels.unpack_pieces, bank, pieces)
    }

    fn move_pieces(
        &self,
        kernel: &Kernel,
        bank: usize,
        pieces: &OnDevice,
    ) -> Result<(), DeviceError> {
        let parameters = PieceParameters {
            level: self.bank(bank),
            packed: pieces.memory,
            pieces: pieces.list,
            stale: self.stale(),
            width: pieces.packed.width as i64,
            first: pieces.packed.first as i64,
        };
        self.device
            .launch(kernel, shape(pieces.count, THREADS), &parameters)
    }
}
