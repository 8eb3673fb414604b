//! Maps by functions that may fail in a cell, or want to be called there again.

use super::calls::{MOST_CARRIED, RowCalls, StoppedCells, Sums};
use super::cell_fault::{FailureCause, values_of};
use super::cells::{CellJob, CellSource};
use super::level::{LevelRows, SumNames};
use super::listed::Loops;
use super::numbers::DerivedInputs;
use super::pool::{Field, Pool};
use super::reader::CellReader;
use super::storage::with_storage;
use super::tally::CellTotals;
use crate::in_precision;
use nestar_device::{CellFn, CellState};
use nestar_kernels::mesh::subcycle::{FAILED, Subcycle, SubcycleResult};
use rayon::prelude::*;

/// A function of one cell that gives an [`Outcome`](nestar_kernels::mesh::subcycle::Outcome) of a state of the field, or an [`Subcycle`].
pub trait CellSubcycle:
    CellFn<Result<f32>: SubcycleResult<f32>> + CellFn<Result<f64>: SubcycleResult<f64>>
{
}

impl<M> CellSubcycle for M where
    M: CellFn<Result<f32>: SubcycleResult<f32>> + CellFn<Result<f64>: SubcycleResult<f64>>
{
}

/// What a function gives, in double precision.
type ResultOf<M> = <M as CellFn>::Result<f64>;

/// Numbers that a function hands on, and numbers that are summed.
pub(super) fn carried_and_summed<M: CellSubcycle>() -> [usize; 2] {
    [
        <ResultOf<M> as SubcycleResult<f64>>::Carried::COUNT,
        <ResultOf<M> as SubcycleResult<f64>>::Sums::COUNT,
    ]
}

impl<F: Field> Pool<F> {
    /// As [`Pool::map_cells`] for a function that says whether it has failed in a cell, or is to be called there again: cells that
    /// are unfinished are called again with the state that they were given, at most `calls` times in all. A cell that fails, or is
    /// unfinished after that, stops the run after the schedule with a message that names level, patch, cell and state.
    ///
    /// # Panics
    /// If the function reads or gives more components than the field has, or reads around cells.
    pub fn map_attempts<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        calls: usize,
        parameters: &M::Parameters,
    ) {
        self.map_attempts_with::<M>(rows, &[], calls, parameters);
    }

    /// As [`Pool::map_attempts`] for a function that also reads the present states of other fields, and what an [`Subcycle`] gives beside
    /// the state: numbers that it carries from a call to the next are the last state of its tuple, zeros at the first call (they are
    /// kept until the last cell is done, no longer); numbers that are summed, and the work of patches, come back as a [`CellTotals`]. A cell
    /// that is done with a number to be summed that is not finite has failed.
    ///
    /// # Panics
    /// As [`Pool::map_attempts`]; if a field lives elsewhere or has the other precision; if more than 16 numbers are carried, or they
    /// are not the last state that the function takes.
    pub fn map_attempts_with<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let job = CellJob::<M> {
            others,
            carries: carried_and_summed::<M>()[0],
            ..CellJob::new(rows.view(), parameters)
        };
        self.attempt_all(rows, &job, calls)
    }

    /// As [`Pool::map_attempts_by`], with one call a cell. A
    /// formula among them that is not a number where the function has failed is named.
    ///
    /// # Panics
    /// As [`Pool::map_attempts_by`].
    pub fn map_by<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        numbers: &DerivedInputs,
        parameters: &M::Parameters,
    ) -> CellTotals {
        self.map_attempts_by::<M>(rows, numbers, 1, parameters)
    }

    /// As [`Pool::map_attempts_with`] for a function that reads `numbers` as the state of a second field; what it carries is the third state
    /// of its tuple. The numbers may depend on what the function leaves as it is, not on what it changes: which of its calls they are made for differs
    /// between devices.
    ///
    /// # Panics
    /// As [`Pool::map_attempts_with`]; if the function reads more numbers than there are.
    pub fn map_attempts_by<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        numbers: &DerivedInputs,
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let job = CellJob::<M> {
            carries: carried_and_summed::<M>()[0],
            ..CellJob::new(rows.view(), parameters).with(numbers)
        };
        self.attempt_all(rows, &job, calls)
    }

    fn attempt_all<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        job: &CellJob<M>,
        calls: usize,
    ) -> CellTotals {
        self.check_attempt(job);
        let calls = calls.max(1);
        let made = with_storage!(&self.storage,
            <R> => Ok(self.attempt_rows::<M, R>(job, calls)),
            _ => self.attempt_on_device(job, (calls, rows.queues())));
        let (left, tally) = rows.checked(made, Default::default());
        self.touch(rows.level(), rows.rows());
        let failed = left.failed.map(|stop| (stop, None));
        let unfinished = left.unfinished.map(|stop| (stop, Some(calls)));
        if let Some((stop, calls)) = failed.or(unfinished) {
            in_precision!(self.precision(), R => {
                self.record_case::<M, R>(rows, job, &stop);
                let at = (stop.item, &stop.carried[..]);
                let given = (calls, M::DOC, rows.sum_names());
                self.report_call::<M, R>(rows, job, at, |result| why(&result.into_subcycle(), given));
            });
        }
        CellTotals {
            level: rows.level(),
            volume: job.level.topology.domain.cell_volume(rows.level()),
            count: carried_and_summed::<M>()[1],
            ..tally
        }
    }

    fn check_attempt<M: CellSubcycle>(&self, job: &CellJob<M>) {
        job.check(self);
        let fits = self.fits_subcycle::<M>(&job.level.components, job.carried() - 1);
        fits.unwrap_or_else(|why| panic!("{why}"));
        assert!(
            job.carries == carried_and_summed::<M>()[0],
            "{} carries numbers: it is called by `map_attempts_with`",
            M::ITEM.name
        );
    }

    /// Whether attempts of this field and of so many others, numbers of a list counted as one, can read it and write their results.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn fits_subcycle<M: CellSubcycle>(
        &self,
        chosen: &super::Components,
        others: usize,
    ) -> Result<(), String> {
        let given = <ResultOf<M> as SubcycleResult<f64>>::State::COUNT;
        let (given, name, field) = (chosen.wanted(given), M::ITEM.name, F::NAME);
        if M::REACH > 0 || given > self.components() {
            return Err(format!(
                "`{name}` gives {given} components, or reads around cells of `{field}`"
            ));
        }
        let [carried, _] = carried_and_summed::<M>();
        let taken = M::State::<f64>::COMPONENTS;
        let fits = carried == 0 || taken.get(1 + others) == Some(&carried);
        match fits && carried <= MOST_CARRIED {
            true => Ok(()),
            false => Err(format!(
                "`{name}` carries {carried} numbers: it takes as many, at most {MOST_CARRIED}, as the last state of its tuple"
            )),
        }
    }

    fn attempt_rows<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        job: &CellJob<M>,
        calls: usize,
    ) -> (StoppedCells, CellTotals) {
        let reader = CellReader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let present = self.present::<R>(job.level.clock.level);
        let attempt = |(n, &row): (usize, &u32)| {
            let mut scratch = self.typed::<R>().cell_scratch.get();
            let mut made = RowCalls::new(Sums::<M, R>::COUNT, job.level.topology.is_leaf(row));
            made.call_all(&reader, (n, row), present, &mut scratch, calls);
            made
        };
        let rows: Vec<RowCalls> = rows.par_iter().enumerate().map(attempt).collect();
        let (mut left, mut tally) = (StoppedCells::default(), CellTotals::default());
        for row in rows {
            let (of_row, left_there) = row.result(M::Result::<R>::COUNTS_WORK);
            tally.append(of_row);
            left = left.or(left_there);
        }
        (left, tally)
    }
}

/// What is wrong with an outcome; after so many calls it is unfinished.
fn why<R: Loops, S: CellState<R>, C, T: CellState<R>>(
    result: &Subcycle<S, C, T>,
    (calls, doc, names): (Option<usize>, &'static str, SumNames),
) -> FailureCause {
    let (state, sums) = (values_of(&result.state), values_of(&result.sums));
    match calls {
        Some(calls) => FailureCause::Unfinished(calls, doc),
        None if result.status == FAILED => FailureCause::Failed(state),
        None if sums.iter().any(|sum| !sum.is_finite()) => {
            FailureCause::NonFiniteSum { state, sums, names }
        }
        None => FailureCause::Unphysical(state),
    }
}
