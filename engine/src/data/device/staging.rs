//! Memory of the device by which rows and registers cross the bus.

use crate::device::{Buffer, Device, DeviceError};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::pieces::Piece;

/// Bytes that travel at a time.
const CHUNK: usize = 16 << 20;

/// Pieces on their way: their list, and packed values.
pub(super) struct Staging {
    pub(super) list: Buffer<Piece>,
    pub(super) values: Buffer<u8>,
}

impl Staging {
    /// What is kept, or made at the first use: room for a row of `row_bytes` at least.
    pub(super) fn provide<'a>(
        kept: &'a mut Option<Self>,
        device: &Device,
        row_bytes: usize,
    ) -> Result<&'a Self, DeviceError> {
        let staging = match kept.take() {
            Some(staging) => staging,
            None => Self {
                list: device.buffer(CHUNK / (4 * CELLS))?,
                values: device.buffer(CHUNK.max(row_bytes))?,
            },
        };
        Ok(kept.insert(staging))
    }
}
