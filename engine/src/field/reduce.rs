//! Numbers made of all cells by functions of one cell: the same bits on any number of threads and on a device.

use super::cells::{CellMark, CellValue, LevelRows, LevelView, Reader, check};
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use nestar_device::{CellFn, Precise};
use nestar_kernels::criteria::{CellFlags, buffer_sectors};
use nestar_kernels::mesh::order::{order_key, sum_of_lanes, value_of_key};
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;

impl<F: Field> Pool<F> {
    /// The smallest value of `M` in the cells of the level at hand, covered ones included, on this rank; NaN if one is NaN,
    /// infinity without cells. A fault of a device stops the run after the schedule.
    ///
    /// # Panics
    /// If the function reads more components than the field has.
    pub fn smallest<M: CellValue>(&self, rows: &LevelRows, parameters: &M::Parameters) -> f64 {
        let key = self.largest_key::<M>(&rows.view(), true, parameters);
        -value_of_key(rows.checked(key, 0))
    }

    /// The largest key of a value, or of its negative, in the cells of a level, on this rank.
    pub(crate) fn largest_key<M: CellValue>(
        &self,
        level: &LevelView,
        negate: bool,
        parameters: &M::Parameters,
    ) -> Result<u64, DeviceError> {
        check::<M>(self, &[]);
        let nothing = order_key(f64::NEG_INFINITY);
        let found = match &self.storage {
            Storage::Single(_) => self.keys::<M, f32>(level, negate, parameters),
            Storage::Double(_) => self.keys::<M, f64>(level, negate, parameters),
            Storage::Device(_) => self.largest_on_device::<M>(level, negate, parameters)?,
        };
        Ok(found.max(nothing))
    }

    fn keys<M: CellFn<Result<R> = R>, R: Element>(
        &self,
        level: &LevelView,
        negate: bool,
        parameters: &M::Parameters,
    ) -> u64 {
        let reader = Reader::<R>::new(self, &[], level);
        let given = parameters.precise::<R>();
        let of_row = |&row: &u32| {
            let (own, others) = (reader.own.row(row), reader.others(row));
            let key = |cell| {
                let value = reader.call::<M>(row, own, &others, cell, &given).to_f64();
                order_key(if negate { -value } else { value })
            };
            (0..CELLS).map(key).max().unwrap_or(0)
        };
        level.rows().par_iter().map(of_row).max().unwrap_or(0)
    }

    /// Per patch of a level of this rank: the sum over its cells, 0 where it is refined.
    pub(crate) fn patch_sums<M: CellValue>(
        &self,
        level: &LevelView,
        parameters: &M::Parameters,
    ) -> Result<Vec<f64>, DeviceError> {
        check::<M>(self, &[]);
        match &self.storage {
            Storage::Single(_) => Ok(self.sums::<M, f32>(level, parameters)),
            Storage::Double(_) => Ok(self.sums::<M, f64>(level, parameters)),
            Storage::Device(_) => self.sums_on_device::<M>(level, parameters),
        }
    }

    fn sums<M: CellFn<Result<R> = R>, R: Element>(
        &self,
        level: &LevelView,
        parameters: &M::Parameters,
    ) -> Vec<f64> {
        let reader = Reader::<R>::new(self, &[], level);
        let given = parameters.precise::<R>();
        let of_row = |&row: &u32| {
            if !level.topology.is_leaf(row) {
                return 0.0;
            }
            let (own, others) = (reader.own.row(row), reader.others(row));
            let mut lanes = [0.0; 8];
            for cell in 0..CELLS {
                let value = reader.call::<M>(row, own, &others, cell, &given);
                lanes[cell % 8] += value.to_f64();
            }
            sum_of_lanes(lanes)
        };
        level.rows().par_iter().map(of_row).collect()
    }

    /// Per patch of the level at hand: which of the 27 patches around it, itself in the middle, come within `buffer` cells (0 to
    /// 8) of a cell where `M` holds, as bits. A fault of a device stops the run after the schedule.
    ///
    /// # Panics
    /// If the function reads more components than the field has.
    pub fn marked<M: CellMark>(
        &self,
        rows: &LevelRows,
        buffer: usize,
        parameters: &M::Parameters,
    ) -> Vec<u32> {
        check::<M>(self, &[]);
        let level = rows.view();
        match &self.storage {
            Storage::Single(_) => self.sectors::<M, f32>(&level, buffer, parameters),
            Storage::Double(_) => self.sectors::<M, f64>(&level, buffer, parameters),
            Storage::Device(_) => {
                let marked = self.sectors_on_device::<M>(&level, buffer, parameters);
                rows.checked(marked, Vec::new())
            }
        }
    }

    fn sectors<M: CellFn<Result<R> = bool>, R: Element>(
        &self,
        level: &LevelView,
        buffer: usize,
        parameters: &M::Parameters,
    ) -> Vec<u32> {
        let reader = Reader::<R>::new(self, &[], level);
        let given = parameters.precise::<R>();
        let of_row = |&row: &u32| {
            let (own, others) = (reader.own.row(row), reader.others(row));
            let marked = |cell| reader.call::<M>(row, own, &others, cell, &given);
            let flags = CellFlags::from_rows(|k, j| {
                std::array::from_fn(|i| marked(i + PATCH * (j + PATCH * k)))
            });
            buffer_sectors(&flags, buffer)
        };
        level.rows().par_iter().map(of_row).collect()
    }
}
