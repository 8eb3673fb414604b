//! Collects records from the cells of a level.

use super::cell_args::{CellJob, CellReader};
use super::cell_values::CellAddress;
use super::failure::values_of;
use super::field_spec::Components;
use super::function_inputs::{FunctionInputs, InputList};
use super::level::LevelRows;
use super::pool::{Field, Pool};
use super::quantities::Loops;
use super::storage::with_storage;
use nestar_device::{CellFn, CellState};
use nestar_engine_mesh::parallel;
use nestar_kernels::mesh::cell_record::RecordResult;

/// A cell function that returns a [`CellRecord`](nestar_kernels::mesh::cell_record::CellRecord).
pub trait CellCollect:
    CellFn<Result<f32>: RecordResult<f32>> + CellFn<Result<f64>: RecordResult<f64>>
{
}

impl<M> CellCollect for M where
    M: CellFn<Result<f32>: RecordResult<f32>> + CellFn<Result<f64>: RecordResult<f64>>
{
}

/// Type of the record of a function in double precision.
pub type RecordOf<M> = <<M as CellFn>::Result<f64> as RecordResult<f64>>::Record;

/// A cell with its record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedCell<T> {
    /// The cell.
    pub at: CellAddress,
    /// The record.
    pub record: T,
}

/// Cells and the numbers of their records, `[cell][number]`.
#[derive(Default)]
pub(super) struct CellNumbers {
    pub cells: Vec<CellAddress>,
    pub numbers: Vec<f64>,
}

impl<F: Field> Pool<F> {
    /// Returns the records that `M` finds in the leaf cells of the level on this rank: patches in Hilbert order, and in a
    /// patch x fastest. The same records are found on a device, where eight bytes are fetched if there is none.
    ///
    /// # Panics
    /// If the function reads more components than the fields have, or neighbouring cells together with derived inputs.
    pub fn collect<M: CellCollect>(
        &self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        parameters: &M::Parameters,
    ) -> Vec<RecordedCell<RecordOf<M>>> {
        let job = CellJob::<M>::new(rows.view(), inputs.list(), parameters);
        job.check(self);
        let found = with_storage!(&self.storage,
            <R> => self.records::<M, R>(&job),
            _ => rows.checked(self.launcher().records(&job), CellNumbers::default()));
        self.check_gather_fault::<M>(rows);
        let numbers = found.numbers.chunks_exact(RecordOf::<M>::COUNT);
        let of_cell = |(at, numbers): (CellAddress, &[f64])| RecordedCell {
            at,
            record: RecordOf::<M>::read(&mut |_, n| numbers[n], 0, 0),
        };
        found.cells.into_iter().zip(numbers).map(of_cell).collect()
    }

    fn records<M: CellFn<Result<R>: RecordResult<R>>, R: Loops>(
        &self,
        job: &CellJob<M>,
    ) -> CellNumbers {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            let mut found = CellNumbers::default();
            if job.level.topology.is_leaf(row) {
                let mut scratch = self.typed::<R>().cell_scratch.get();
                reader.each(row, &mut scratch[0], |cell, result| {
                    if let Some(record) = result.into_record() {
                        found.cells.push(CellAddress { row, cell });
                        found.numbers.extend(values_of::<R>(&record));
                    }
                });
            }
            found
        };
        let mut all = CellNumbers::default();
        for found in parallel::map(job.level.rows(), of_row) {
            all.cells.extend(found.cells);
            all.numbers.extend(found.numbers);
        }
        all
    }

    /// Checks that a function that collects records can read this field and `inputs`.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(super) fn fits_collect<M: CellCollect>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits::<M>(chosen, inputs)?;
        match RecordOf::<M>::COUNT {
            0 => Err(format!("`{}` gives records without numbers", M::ITEM.name)),
            _ => Ok(()),
        }
    }
}
