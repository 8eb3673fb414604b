//! Cell-wise maps on the device.

use super::{DevicePool, DeviceTopology, shape};
use crate::device::{DeviceError, Kernel};
use nestar_device::{Item, Number};
use nestar_kernels::mesh::device::{MAP, map_text};
use nestar_kernels::mesh::parameters::Map;

impl DevicePool {
    /// Applies the function `item` to every cell of `level`, whose present bank is `bank`. It is compiled at its first use.
    pub(in crate::field) fn map(
        &mut self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
        item: &'static Item,
        parameters: &[f64],
    ) -> Result<(), DeviceError> {
        let kernel = self.map_kernel(item)?;
        let mut values = [0.0; 8];
        values[..parameters.len()].copy_from_slice(parameters);
        let parameters = Map::<Number> {
            level: self.bank(bank).into(),
            rows: tables.rows(level).into(),
            stale: self.stale().into(),
            values,
        };
        self.changed(level);
        self.device
            .launch(&kernel, shape(tables.count(level), 128), &parameters)
    }

    fn map_kernel(&mut self, item: &'static Item) -> Result<Kernel, DeviceError> {
        let path = item.path();
        if let Some(kernel) = self.maps.get(&path) {
            return Ok(kernel.clone());
        }
        let source = self.program(&[item], &[MAP, &map_text(item)]);
        let kernel = self.device.compile("map", &source)?.kernel("mesh_map")?;
        self.maps.insert(path, kernel.clone());
        Ok(kernel)
    }
}
