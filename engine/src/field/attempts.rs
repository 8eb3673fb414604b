//! Maps by functions that may fail in a cell, or want to be called there again.

use super::calls::{Left, MOST_CARRIED, OfRow, Sums};
use super::cell_fault::{Why, values_of};
use super::cells::{CellSource, Job};
use super::level::{LevelRows, SumNames};
use super::listed::Loops;
use super::numbers::Numbers;
use super::pool::{Field, Pool};
use super::reader::Reader;
use super::storage::with_storage;
use super::tally::Tally;
use crate::in_precision;
use nestar_device::{CellFn, CellState};
use nestar_kernels::mesh::attempt::{Attempt, Attempted, FAILED};
use rayon::prelude::*;

/// A function of one cell that gives an [`Outcome`](nestar_kernels::mesh::attempt::Outcome) of a state of the field, or an [`Attempt`].
pub trait CellAttempt:
    CellFn<Result<f32>: Attempted<f32>> + CellFn<Result<f64>: Attempted<f64>>
{
}

impl<M> CellAttempt for M where
    M: CellFn<Result<f32>: Attempted<f32>> + CellFn<Result<f64>: Attempted<f64>>
{
}

/// What a function gives, in double precision.
type Gives<M> = <M as CellFn>::Result<f64>;

/// Numbers that a function hands on, and numbers that are summed.
pub(super) fn kept_by<M: CellAttempt>() -> [usize; 2] {
    [
        <Gives<M> as Attempted<f64>>::Carried::COUNT,
        <Gives<M> as Attempted<f64>>::Sums::COUNT,
    ]
}

impl<F: Field> Pool<F> {
    /// As [`Pool::map_cells`] for a function that says whether it has failed in a cell, or is to be called there again: cells that
    /// are unfinished are called again with the state that they were given, at most `calls` times in all. A cell that fails, or is
    /// unfinished after that, stops the run after the schedule with a message that names level, patch, cell and state.
    ///
    /// # Panics
    /// If the function reads or gives more components than the field has, or reads around cells.
    pub fn map_attempts<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        calls: usize,
        parameters: &M::Parameters,
    ) {
        self.map_attempts_with::<M>(rows, &[], calls, parameters);
    }

    /// As [`Pool::map_attempts`] for a function that also reads the present states of other fields, and what an [`Attempt`] gives beside
    /// the state: numbers that it carries from a call to the next are the last state of its tuple, zeros at the first call (they are
    /// kept until the last cell is done, no longer); numbers that are summed, and the work of patches, come back as a [`Tally`]. A cell
    /// that is done with a number to be summed that is not finite has failed.
    ///
    /// # Panics
    /// As [`Pool::map_attempts`]; if a field lives elsewhere or has the other precision; if more than 16 numbers are carried, or they
    /// are not the last state that the function takes.
    pub fn map_attempts_with<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        calls: usize,
        parameters: &M::Parameters,
    ) -> Tally {
        let job = Job::<M> {
            others,
            carries: kept_by::<M>()[0],
            ..Job::new(rows.view(), parameters)
        };
        self.attempt_all(rows, &job, calls)
    }

    /// As [`Pool::map_attempts_by`], with one call a cell. A
    /// formula among them that is not a number where the function has failed is named.
    ///
    /// # Panics
    /// As [`Pool::map_attempts_by`].
    pub fn map_by<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        numbers: &Numbers,
        parameters: &M::Parameters,
    ) -> Tally {
        self.map_attempts_by::<M>(rows, numbers, 1, parameters)
    }

    /// As [`Pool::map_attempts_with`] for a function that reads `numbers` as the state of a second field; what it carries is the third state
    /// of its tuple. The numbers may depend on what the function leaves as it is, not on what it changes: which of its calls they are made for differs
    /// between devices.
    ///
    /// # Panics
    /// As [`Pool::map_attempts_with`]; if the function reads more numbers than there are.
    pub fn map_attempts_by<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        numbers: &Numbers,
        calls: usize,
        parameters: &M::Parameters,
    ) -> Tally {
        let job = Job::<M> {
            carries: kept_by::<M>()[0],
            ..Job::new(rows.view(), parameters).with(numbers)
        };
        self.attempt_all(rows, &job, calls)
    }

    fn attempt_all<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        job: &Job<M>,
        calls: usize,
    ) -> Tally {
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
                self.keep_case::<M, R>(rows, job, &stop);
                let at = (stop.item, &stop.carried[..]);
                let given = (calls, M::DOC, rows.sum_names());
                self.report_call::<M, R>(rows, job, at, |result| why(&result.attempt(), given));
            });
        }
        Tally {
            level: rows.level(),
            volume: job.level.topology.domain.cell_volume(rows.level()),
            count: kept_by::<M>()[1],
            ..tally
        }
    }

    fn check_attempt<M: CellAttempt>(&self, job: &Job<M>) {
        job.check(self);
        let fits = self.fits_attempt::<M>(&job.level.components, job.carried() - 1);
        fits.unwrap_or_else(|why| panic!("{why}"));
        assert!(
            job.carries == kept_by::<M>()[0],
            "{} carries numbers: it is called by `map_attempts_with`",
            M::ITEM.name
        );
    }

    /// Whether attempts of this field and of so many others, numbers of a list counted as one, can read it and write their results.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn fits_attempt<M: CellAttempt>(
        &self,
        chosen: &super::Components,
        others: usize,
    ) -> Result<(), String> {
        let given = <Gives<M> as Attempted<f64>>::State::COUNT;
        let (given, name, field) = (chosen.wanted(given), M::ITEM.name, F::NAME);
        if M::REACH > 0 || given > self.components() {
            return Err(format!(
                "`{name}` gives {given} components, or reads around cells of `{field}`"
            ));
        }
        let [carried, _] = kept_by::<M>();
        let taken = M::State::<f64>::COMPONENTS;
        let fits = carried == 0 || taken.get(1 + others) == Some(&carried);
        match fits && carried <= MOST_CARRIED {
            true => Ok(()),
            false => Err(format!(
                "`{name}` carries {carried} numbers: it takes as many, at most {MOST_CARRIED}, as the last state of its tuple"
            )),
        }
    }

    fn attempt_rows<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
        &self,
        job: &Job<M>,
        calls: usize,
    ) -> (Left, Tally) {
        let reader = Reader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let present = self.present::<R>(job.level.clock.level);
        let attempt = |(n, &row): (usize, &u32)| {
            let mut scratch = self.typed::<R>().cell_scratch.get();
            let mut made = OfRow::new(Sums::<M, R>::COUNT, job.level.topology.is_leaf(row));
            made.call_all(&reader, (n, row), present, &mut scratch, calls);
            made
        };
        let rows: Vec<OfRow> = rows.par_iter().enumerate().map(attempt).collect();
        let (mut left, mut tally) = (Left::default(), Tally::default());
        for row in rows {
            let (of_row, left_there) = row.result(M::Result::<R>::WEIGHED);
            tally.append(of_row);
            left = left.or(left_there);
        }
        (left, tally)
    }
}

/// What is wrong with an outcome; after so many calls it is unfinished.
fn why<R: Loops, S: CellState<R>, C, T: CellState<R>>(
    result: &Attempt<S, C, T>,
    (calls, doc, names): (Option<usize>, &'static str, SumNames),
) -> Why {
    let (state, sums) = (values_of(&result.state), values_of(&result.sums));
    match calls {
        Some(calls) => Why::Endless(calls, doc),
        None if result.status == FAILED => Why::Failed(state),
        None if sums.iter().any(|sum| !sum.is_finite()) => Why::NoSum { state, sums, names },
        None => Why::Unsound(state),
    }
}
