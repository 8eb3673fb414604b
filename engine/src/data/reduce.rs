//! Numbers made of all cells by functions of one cell: the same bits on any number of threads and on a device.

use super::cells::{CellJob, CellMark, CellSource, CellValue};
use super::level::{LevelRows, LevelView};
use super::listed::Loops;
use super::numbers::DerivedInputs;
use super::pool::{Field, Pool};
use super::reader::CellReader;
use super::storage::with_storage;
use crate::device::DeviceError;
use nestar_device::CellFn;
use nestar_kernels::criteria::{CellFlags, buffer_sectors};
use nestar_kernels::mesh::fluxes::FACE;
use nestar_kernels::mesh::order::{order_key, sum_of_lanes, value_of_key};
use rayon::prelude::*;

impl<F: Field> Pool<F> {
    /// The smallest value of `M` in the cells of the level at hand, covered ones included, on this rank; NaN if one is NaN,
    /// infinity without cells. A fault of a device stops the run after the schedule.
    ///
    /// # Panics
    /// If the function reads more components than the field has.
    pub fn smallest<M: CellValue>(&self, rows: &LevelRows, parameters: &M::Parameters) -> f64 {
        let key = self.largest_key::<M>(&rows.view(), &[], true, parameters);
        let key = rows.checked(key, 0);
        self.gathered::<M>(rows);
        -value_of_key(key)
    }

    /// As [`Pool::smallest`] for a function that reads `numbers` as the state of a second field.
    ///
    /// # Panics
    /// As [`Pool::smallest`]; if the function reads more numbers than there are, or around cells.
    pub fn smallest_by<M: CellValue>(
        &self,
        rows: &LevelRows,
        numbers: &DerivedInputs,
        parameters: &M::Parameters,
    ) -> f64 {
        let job = CellJob::<M>::new(rows.view(), parameters).with(numbers);
        -value_of_key(rows.checked(self.largest_of(&job, true), 0))
    }

    /// The largest key of a value, or of its negative, in the cells of a level, on this rank.
    pub(crate) fn largest_key<M: CellValue>(
        &self,
        level: &LevelView,
        others: &[&dyn CellSource],
        negate: bool,
        parameters: &M::Parameters,
    ) -> Result<u64, DeviceError> {
        let job = CellJob::<M> {
            others,
            ..CellJob::new(*level, parameters)
        };
        self.largest_of(&job, negate)
    }

    fn largest_of<M: CellValue>(&self, job: &CellJob<M>, negate: bool) -> Result<u64, DeviceError> {
        job.check(self);
        let nothing = order_key(f64::NEG_INFINITY);
        let found = with_storage!(&self.storage,
            <R> => self.keys::<M, R>(job, negate),
            _ => self.largest_on_device(job, negate)?);
        Ok(found.max(nothing))
    }

    fn keys<M: CellFn<Result<R> = R>, R: Loops>(&self, job: &CellJob<M>, negate: bool) -> u64 {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            let mut largest = 0;
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(row, &mut scratch[0], |_, value| {
                let value = value.to_f64();
                largest = order_key(if negate { -value } else { value }).max(largest);
            });
            largest
        };
        job.level.rows().par_iter().map(of_row).max().unwrap_or(0)
    }

    /// Per patch of a level of this rank: the sum over its cells, 0 where it is refined.
    pub(crate) fn patch_sums<M: CellValue>(
        &self,
        level: &LevelView,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) -> Result<Vec<f64>, DeviceError> {
        let job = CellJob::<M> {
            others,
            ..CellJob::new(*level, parameters)
        };
        job.check(self);
        with_storage!(&self.storage,
            <R> => Ok(self.sums::<M, R>(&job)),
            _ => self.sums_on_device(&job))
    }

    fn sums<M: CellFn<Result<R> = R>, R: Loops>(&self, job: &CellJob<M>) -> Vec<f64> {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            if !job.level.topology.is_leaf(row) {
                return 0.0;
            }
            let mut lanes = [0.0; 8];
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(row, &mut scratch[0], |cell, value| {
                lanes[cell % 8] += value.to_f64();
            });
            sum_of_lanes(lanes)
        };
        job.level.rows().par_iter().map(of_row).collect()
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
        let job = CellJob::<M>::new(rows.view(), parameters);
        job.check(self);
        let marked = with_storage!(&self.storage,
            <R> => self.sectors::<M, R>(&job, buffer),
            _ => rows.checked(self.sectors_on_device(&job, buffer), Vec::new()));
        self.gathered::<M>(rows);
        marked
    }

    fn sectors<M: CellFn<Result<R> = bool>, R: Loops>(
        &self,
        job: &CellJob<M>,
        buffer: usize,
    ) -> Vec<u32> {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            let mut flags = CellFlags::NONE;
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(row, &mut scratch[0], |cell, marked| {
                flags.0[cell / FACE] |= u64::from(marked) << (cell % FACE);
            });
            buffer_sectors(&flags, buffer)
        };
        job.level.rows().par_iter().map(of_row).collect()
    }

    /// What boundary rules have found wrong on a device stops the run after the schedule.
    pub(super) fn gathered<M: CellFn>(&self, rows: &LevelRows) {
        if M::REACH > 0 {
            rows.check_gathered(&self.storage);
        }
    }
}
