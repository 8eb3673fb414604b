//! States of single cells on a device.

use super::DevicePool;
use super::cells::{Skeleton, THREADS};
use crate::cell_values::CellAddress;
use crate::in_precision;
use nestar_device::{Lane, Number, Real};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Buffer, DeviceError, Kernel, LaunchShape};
use nestar_kernels::mesh::device::CELL_VALUES;
use nestar_kernels::mesh::parameters::CellValuesParameters;

const VALUES: Skeleton = (&[CELL_VALUES], &["mesh_read_cells", "mesh_write_cells"]);

impl DevicePool {
    /// As [`Pool::cells`](crate::Pool::cells) for a bank.
    pub(crate) fn read_cells(
        &self,
        bank: u64,
        cells: &[CellAddress],
    ) -> Result<Vec<f64>, DeviceError> {
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let (count, stored) = (cells.len() * self.components, self.value_words(cells));
        let mut words = lock(&self.words);
        let there = words.provide(&self.device, cells.len() + stored)?;
        self.device.upload(there, 0, &places(cells))?;
        self.move_cells(0, bank, cells.len(), there)?;
        let mut found = vec![0u64; stored];
        self.device.download(there, cells.len(), &mut found)?;
        Ok(in_precision!(self.precision, R => {
            let values: &[R] = &bytemuck::cast_slice(&found)[..count];
            values.iter().map(|x| Real::to_f64(*x)).collect()
        }))
    }

    /// As [`Pool::set_cells`](crate::Pool::set_cells) for a bank.
    pub(crate) fn write_cells(
        &self,
        bank: u64,
        cells: &[CellAddress],
        values: &[f64],
    ) -> Result<(), DeviceError> {
        if cells.is_empty() {
            return Ok(());
        }
        let mut stored = vec![0u64; self.value_words(cells)];
        in_precision!(self.precision, R => {
            let to: &mut [R] = bytemuck::cast_slice_mut(&mut stored);
            to.iter_mut().zip(values).for_each(|(to, value)| *to = R::lit(*value));
        });
        let mut words = lock(&self.words);
        let there = words.provide(&self.device, cells.len() + stored.len())?;
        let sent = [places(cells), stored].concat();
        self.device.upload(there, 0, &sent)?;
        self.move_cells(1, bank, cells.len(), there)
    }

    /// Returns the number of words that the values of cells take.
    fn value_words(&self, cells: &[CellAddress]) -> usize {
        (cells.len() * self.components * self.precision.bytes()).div_ceil(8)
    }

    /// Launches kernel `n` on a list of cells, which values follow in memory.
    fn move_cells(
        &self,
        n: usize,
        bank: u64,
        count: usize,
        there: &Buffer<u64>,
    ) -> Result<(), DeviceError> {
        let parameters = CellValuesParameters::<Number> {
            level: bank.into(),
            values: (there.address() + 8 * count as u64).into(),
            cells: there.address().into(),
            stale: self.stale().into(),
            count: count as i32,
        };
        let shape = LaunchShape::of(count.div_ceil(THREADS as usize), THREADS);
        self.device
            .launch(&self.values_kernel(n)?, shape, &parameters)
    }

    /// Returns kernel `n`; the first call compiles both.
    fn values_kernel(&self, n: usize) -> Result<Kernel, DeviceError> {
        let (texts, names) = VALUES;
        let key = |name: &'static str| (names[0], name, String::new());
        let mut known = lock(&self.functions);
        if let Some(kernel) = known.get(&key(names[n])) {
            return Ok(kernel.clone());
        }
        let source = self.text.program(&[], texts);
        let module = self.device.compile("cell_values", &source)?;
        for &name in names {
            known.insert(key(name), module.kernel(name)?);
        }
        Ok(known[&key(names[n])].clone())
    }
}

/// Returns row and cell of each cell in a word.
fn places(cells: &[CellAddress]) -> Vec<u64> {
    let place = |at: &CellAddress| u64::from(at.row) | (at.cell as u64) << 32;
    cells.iter().map(place).collect()
}
