//! Records of cells on a device.

use super::cells::{LaunchOptions, Skeleton, function_of};
use crate::cell_args::CellJob;
use crate::cell_records::{CellCollect, CellNumbers, RecordOf};
use crate::cell_values::CellAddress;
use crate::in_precision;
use crate::pool::{CellLauncher, Field};
use nestar_device::{CellState, Real};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{DeviceError, ReusableBuffer};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::device::CELL_RECORDS;

pub(crate) const RECORDS: Skeleton = (
    &[CELL_RECORDS],
    &["cells_find_records", "cells_store_records"],
);

/// Words of 4 bytes of the bit mask of a patch.
const MASK: usize = CELLS / 32;

/// Patches that have records.
#[derive(Default)]
struct RecordedPatches {
    /// Their rows.
    rows: Vec<u32>,
    /// Their masks, `[patch][MASK]`.
    masks: Vec<u32>,
    /// Number of records before each word.
    before: Vec<u32>,
    /// The cell of each record.
    cells: Vec<CellAddress>,
}

impl RecordedPatches {
    /// Selects patches from the masks of all rows.
    fn of(rows: &[u32], masks: &[u32]) -> Self {
        let mut all = Self::default();
        let patches = rows.iter().zip(masks.chunks_exact(MASK));
        for (&row, mask) in patches.filter(|(_, mask)| mask.iter().any(|word| *word != 0)) {
            all.rows.push(row);
            all.masks.extend(mask);
            for (n, &word) in mask.iter().enumerate() {
                all.before.push(all.cells.len() as u32);
                let mut left = word;
                while left != 0 {
                    let cell = 32 * n + left.trailing_zeros() as usize;
                    all.cells.push(CellAddress { row, cell });
                    left &= left - 1;
                }
            }
        }
        all
    }

    /// Returns everything that the device reads: rows, masks, and numbers of records before.
    fn words(&self) -> Vec<u64> {
        let mut words: Vec<u32> = [&self.rows[..], &self.masks, &self.before].concat();
        words.resize(words.len().next_multiple_of(2), 0);
        let pairs = words.as_chunks::<2>().0.iter();
        pairs
            .map(|[low, high]| u64::from(*low) | u64::from(*high) << 32)
            .collect()
    }
}

impl<F: Field> CellLauncher<'_, F> {
    /// As [`Pool::collect`](crate::Pool::collect).
    pub(crate) fn records<M: CellCollect>(
        &self,
        job: &CellJob<M>,
    ) -> Result<CellNumbers, DeviceError> {
        let (pool, rows) = (self.pool.device(), job.level.rows());
        let function = function_of::<M>(&job.inputs);
        let mut words = lock(&pool.words);
        let masks = (rows.len() * MASK).div_ceil(2);
        let there = pool.zeroed(&mut words, function, [1 + masks, rows.len()], 1)?;
        let order = LaunchOptions {
            words: there.address(),
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(&job.level, job.inputs, order);
        input.blocks = (there.address() + 8 * (1 + masks) as u64).into();
        self.launch_with(RECORDS, 0, job, rows.len(), input)?;
        let mut any = [0u64];
        pool.device().download(there, 0, &mut any)?;
        if any[0] == 0 {
            return Ok(CellNumbers::default());
        }
        let mut found = vec![0u64; masks];
        pool.device().download(there, 1, &mut found)?;
        let patches = RecordedPatches::of(rows, bytemuck::cast_slice(&found));
        self.numbers_of(job, patches, &mut words)
    }

    /// Returns the records of some patches.
    fn numbers_of<M: CellCollect>(
        &self,
        job: &CellJob<M>,
        patches: RecordedPatches,
        words: &mut ReusableBuffer<u64>,
    ) -> Result<CellNumbers, DeviceError> {
        let (pool, count) = (self.pool.device(), patches.rows.len());
        let (function, of_each) = (function_of::<M>(&job.inputs), RecordOf::<M>::COUNT);
        let read = patches.words();
        let numbers = patches.cells.len() * of_each;
        let stored = (numbers * pool.value_bytes()).div_ceil(8);
        let there = pool.zeroed(words, function, [read.len() + stored, count], 0)?;
        pool.device().upload(there, 0, &read)?;
        let address = |entry: usize| there.address() + 4 * entry as u64;
        let out = there.address() + 8 * read.len() as u64;
        let order = LaunchOptions {
            words: there.address(),
            out,
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(&job.level, job.inputs, order);
        (input.rows, input.count) = (address(0).into(), count as i32);
        input.sectors = address(count).into();
        input.list = address(count + count * MASK).into();
        input.blocks = (out + 8 * stored as u64).into();
        self.launch_with(RECORDS, 1, job, count, input)?;
        let mut found = vec![0u64; stored];
        pool.device().download(there, read.len(), &mut found)?;
        let numbers: Vec<f64> = in_precision!(pool.precision(), R => {
            let values: &[R] = &bytemuck::cast_slice(&found)[..numbers];
            values.iter().map(|x| Real::to_f64(*x)).collect()
        });
        Ok(CellNumbers {
            cells: patches.cells,
            numbers,
        })
    }
}
