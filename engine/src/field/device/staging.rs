//! Memory of the device by which rows and registers cross the bus.

use crate::device::{Buffer, Device, DeviceError};
use nestar_kernels::CELLS;

/// Bytes that travel at a time.
const CHUNK: usize = 16 << 20;

/// Packed values on their way.
pub(super) struct Staging {
    pub(super) rows: Buffer<u32>,
    pub(super) values: Buffer<u8>,
}

impl Staging {
    /// Room for a row of `row_bytes` at least.
    pub(super) fn new(device: &Device, row_bytes: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            rows: device.buffer(CHUNK / (4 * CELLS))?,
            values: device.buffer(CHUNK.max(row_bytes))?,
        })
    }
}
