//! What a pool offers where its values live on a device.

use super::{DevicePool, DeviceTopology, DeviceView};
use crate::device::DeviceError;
use crate::field::element::Element;
use crate::field::pool::{Field, Pool};
use crate::field::storage::Storage;
use crate::mesh::Topology;
use rayon::prelude::*;

impl<F: Field> Pool<F> {
    /// The device's side of the pool.
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn device(&self) -> &DevicePool {
        self.on_device().expect("the pool lives on a device")
    }

    /// The device's side of the pool, for changing.
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn device_mut(&mut self) -> &mut DevicePool {
        match &mut self.storage {
            Storage::Device(pool) => pool,
            _ => panic!("the pool lives on the host"),
        }
    }

    /// What a gather on `level` reads on the device: the twin of [`Pool::ghosts`].
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn view(&self, tables: &DeviceTopology, topology: &Topology, level: usize) -> DeviceView {
        let pool = self.device();
        let time = self.time(level);
        let (old, new, weight) = self.coarse_clock(level, time);
        DeviceView {
            level: pool.bank(self.current(level)).into(),
            coarse_old: pool.bank(old).into(),
            coarse_new: pool.bank(new).into(),
            neighbours: tables.neighbours().into(),
            parent: tables.parent().into(),
            first_child: tables.first_child().into(),
            index: tables.index().into(),
            fault: pool.fault.address().into(),
            weight,
            time,
            left: topology.domain.left_edge,
            right: topology.domain.right_edge,
            domain_cells: topology.domain.cells(level),
        }
    }

    /// A copy of the present state of some rows of `level`, `[row][component][8][8][8]`: where the pool lives on a device the
    /// values cross the bus, which the device's counters show.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool holds the other precision.
    pub fn host<R: Element>(&self, level: usize, rows: &[u32]) -> Result<Vec<R>, DeviceError> {
        if let Some(pool) = self.on_device() {
            return pool.pack(self.current(level), 0..self.components(), rows);
        }
        let present = self.present::<R>(level);
        Ok(rows
            .iter()
            .flat_map(|&row| present.row(row))
            .copied()
            .collect())
    }

    /// Sets the present state of some distinct rows of `level` from `[row][component][8][8][8]`; the rows are marked as changed.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool holds the other precision, or the number of values is not that of the rows.
    pub fn store<R: Element>(
        &mut self,
        level: usize,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        let (bank, components) = (self.current(level), self.components());
        let length = self.spec.row_values();
        if let Some(pool) = self.on_device() {
            pool.unpack(bank, 0..components, rows, values)?;
            self.touch(level, rows);
            return Ok(());
        }
        assert_eq!(values.len(), rows.len() * length, "values of the rows");
        let present = self.present::<R>(level);
        let sources = values.par_chunks_exact(length);
        rows.par_iter().zip(sources).for_each(|(&row, values)| {
            // SAFETY: the pool is borrowed alone, and the rows are distinct.
            unsafe { present.row_mut(row) }.copy_from_slice(values);
        });
        self.touch(level, rows);
        Ok(())
    }
}
