//! Tables in the parameters of functions, with their copies on a device.

use crate::Precision;
use crate::in_precision;
use crate::quantities::Placing;
use nestar_device::Lane;
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Buffer, Device, DeviceError};
use std::sync::{Arc, Mutex};

/// A table with its copy.
type Placed = (Arc<[f64]>, Buffer<u8>);

/// Copies of tables on a device, in its precision.
pub struct DeviceTables {
    device: Device,
    precision: Precision,
    placed: Mutex<Vec<Placed>>,
}

impl DeviceTables {
    /// Creates an empty list.
    #[must_use]
    pub fn new(device: &Device, precision: Precision) -> Self {
        Self {
            device: device.clone(),
            precision,
            placed: Mutex::default(),
        }
    }

    /// Calls `bind` with a function that returns the device address of a table, which is uploaded at its first use.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn bind<T>(&self, bind: impl FnOnce(&mut Placing) -> T) -> Result<T, DeviceError> {
        let mut failed = None;
        let bound = bind(&mut |values| {
            self.address(values).unwrap_or_else(|error| {
                failed = Some(error);
                0
            })
        });
        failed.map_or(Ok(bound), Err)
    }

    /// Returns the device address of a table.
    fn address(&self, values: &Arc<[f64]>) -> Result<u64, DeviceError> {
        let mut placed = lock(&self.placed);
        if let Some((_, there)) = placed.iter().find(|(known, _)| Arc::ptr_eq(known, values)) {
            return Ok(there.address());
        }
        // drop tables that are no longer used
        placed.retain(|(known, _)| Arc::strong_count(known) > 1);
        let bytes = values.len() * self.precision.bytes();
        let there = self.device.buffer::<u8>(bytes.max(1))?;
        in_precision!(self.precision, R => {
            let values: Vec<R> = values.iter().map(|v| R::lit(*v)).collect();
            self.device.upload(&there, 0, bytemuck::cast_slice::<R, u8>(&values))?;
        });
        let address = there.address();
        placed.push((values.clone(), there));
        Ok(address)
    }
}
