//! Rows between the device and the host: the only ways by which a field crosses the bus.

use super::DevicePool;
use super::staging::Staging;
use crate::device::{Device, DeviceError, Shape};
use crate::field::element::Element;
use crate::in_precision;
use nestar_device::{Address, Number, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::parameters::Transfer;
use std::ops::Range;
use std::sync::PoisonError;

/// Rows of a level on their way into contiguous memory of the device, `[group][component][row][8][8][8]`.
#[derive(Clone)]
pub struct Packing<'a> {
    /// The components.
    pub components: Range<usize>,
    /// The device.
    pub device: &'a Device,
    /// The rows; all of them exist.
    pub rows_here: &'a [u32],
    /// Address of their numbers on the device, 32 bits each.
    pub rows: u64,
    /// Rows of a group, at least 1; the last group may have fewer.
    pub group: usize,
    /// Address of the memory.
    pub to: u64,
}

impl DevicePool {
    /// Copies the components `components` of `rows` of bank `bank` to the host, `[row][component][8][8][8]`.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool holds the other precision, or a component or row does not exist.
    pub fn pack<R: Element>(
        &self,
        bank: usize,
        components: Range<usize>,
        rows: &[u32],
    ) -> Result<Vec<R>, DeviceError> {
        self.check::<R>(&components, rows);
        let length = components.len() * self.values();
        let mut out = vec![R::lit(0.0); rows.len() * length];
        self.in_chunks(rows, length, |staging, first, rows, mut parameters| {
            parameters.level = self.bank(bank).into();
            parameters.first = components.start as i32;
            let shape = Shape::of(rows.len(), 256);
            self.device.launch(&self.kernels.pack, shape, &parameters)?;
            let out = &mut out[first * length..(first + rows.len()) * length];
            self.device
                .download(&staging.values, 0, bytemuck::cast_slice_mut::<R, u8>(out))
        })?;
        Ok(out)
    }

    /// Starts to pack rows of bank `bank` as `packing` says; what comes next on the device's stream finds them there.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If a component does not exist.
    pub(in crate::field) fn pack_groups(
        &self,
        bank: usize,
        packing: &Packing,
    ) -> Result<(), DeviceError> {
        let components = &packing.components;
        assert!(components.end <= self.components, "{components:?}");
        let parameters = Transfer::<Number> {
            level: self.bank(bank).into(),
            packed: packing.to.into(),
            rows: packing.rows.into(),
            stale: self.stale().into(),
            first: components.start as i32,
            count: components.len() as i32,
            group: packing.group as i32,
            total: packing.rows_here.len() as i32,
        };
        let shape = Shape::of(packing.rows_here.len(), 256);
        self.device.launch(&self.kernels.pack, shape, &parameters)
    }

    /// Sets the components `components` of `rows` of bank `bank` from `[row][component][8][8][8]`.
    pub(in crate::field) fn unpack<R: Element>(
        &self,
        bank: usize,
        components: Range<usize>,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        self.check::<R>(&components, rows);
        let length = components.len() * self.values();
        assert_eq!(values.len(), rows.len() * length, "values of the rows");
        self.in_chunks(rows, length, |staging, first, rows, mut parameters| {
            let values = &values[first * length..(first + rows.len()) * length];
            self.device
                .upload(&staging.values, 0, bytemuck::cast_slice::<R, u8>(values))?;
            parameters.level = self.bank(bank).into();
            parameters.first = components.start as i32;
            let shape = Shape::of(rows.len(), 256);
            self.device.launch(&self.kernels.unpack, shape, &parameters)
        })
    }

    /// The state of one cell of a row of bank `bank`, for messages.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cell(&self, bank: usize, row: u32, cell: usize) -> Result<Vec<f64>, DeviceError> {
        let all = 0..self.components;
        let state = |row: Vec<f64>| row.into_iter().skip(cell).step_by(CELLS).collect();
        let row = in_precision!(self.precision, R => {
            let row = self.pack::<R>(bank, all, &[row])?;
            row.into_iter().map(Real::to_f64).collect()
        });
        Ok(state(row))
    }

    /// Calls `work` with the staging memory, in which the list of rows stands, for as many rows at a time as it holds:
    /// their position, the rows, and parameters that lack bank and first component.
    pub(super) fn in_chunks(
        &self,
        rows: &[u32],
        length: usize,
        mut work: impl FnMut(&Staging, usize, &[u32], Transfer<Number>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let bytes = length * self.value_bytes();
        let mut guard = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging = match guard.take() {
            Some(staging) => staging,
            None => Staging::new(&self.device, self.row_bytes())?,
        };
        let staging = guard.insert(staging);
        let most = staging.rows.len().min(staging.values.len() / bytes);
        for (n, rows) in rows.chunks(most).enumerate() {
            self.device.upload(&staging.rows, 0, rows)?;
            let parameters = Transfer {
                level: Address::NONE,
                packed: staging.values.address().into(),
                rows: staging.rows.address().into(),
                stale: self.stale().into(),
                first: 0,
                count: length.div_ceil(self.values()) as i32,
                group: 1,
                total: rows.len() as i32,
            };
            work(staging, n * most, rows, parameters)?;
        }
        Ok(())
    }

    /// What kernels do not check.
    fn check<R: Element>(&self, components: &Range<usize>, rows: &[u32]) {
        assert_eq!(R::PRECISION, self.precision, "precision of the pool");
        assert!(
            components.start < components.end && components.end <= self.components,
            "components {components:?} of {}",
            self.components
        );
        assert!(
            rows.iter().all(|&row| (row as usize) < self.rows),
            "a row beyond the pool's {}",
            self.rows
        );
    }
}
