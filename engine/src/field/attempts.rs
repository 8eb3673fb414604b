//! Maps by functions that may fail in a cell, or want to be called there again.

use super::cell_fault::{Why, values_of};
use super::cells::{Job, Reader};
use super::level::LevelRows;
use super::listed::Loops;
use super::numbers::Numbers;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::in_precision;
use nestar_device::{CellFn, CellState};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::attempt::{Attempted, FAILED, Outcome, UNFINISHED};
use rayon::prelude::*;

/// A function of one cell that gives an [`Outcome`] of a state of the field.
pub trait CellAttempt:
    CellFn<Result<f32>: Attempted<f32>> + CellFn<Result<f64>: Attempted<f64>>
{
}

impl<M> CellAttempt for M where
    M: CellFn<Result<f32>: Attempted<f32>> + CellFn<Result<f64>: Attempted<f64>>
{
}

/// What rounds of calls leave: cells by the position of their row among the level's, times 512, plus the cell.
#[derive(Default)]
pub(super) struct Left {
    /// The first in the first round in which one has failed: round and cell.
    pub failed: Option<(usize, u32)>,
    /// The first that is unfinished.
    pub unfinished: Option<u32>,
}

impl Left {
    fn add(&mut self, status: i32, call: usize, cell: u32) {
        if status == FAILED {
            self.failed = first(self.failed, Some((call, cell)));
        } else if status == UNFINISHED {
            self.unfinished = first(self.unfinished, Some(cell));
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            failed: first(self.failed, other.failed),
            unfinished: first(self.unfinished, other.unfinished),
        }
    }
}

/// The smaller of what is there.
fn first<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
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
        self.attempt_all(rows, &Job::<M>::new(rows.view(), parameters), calls);
    }

    /// As [`Pool::map_attempts`], with one call a cell, for a function that reads `numbers` as the state of a second field. A
    /// formula among them that is not a number where the function has failed is named.
    ///
    /// # Panics
    /// As [`Pool::map_attempts`]; if the function reads more numbers than there are.
    pub fn map_by<M: CellAttempt>(
        &mut self,
        rows: &LevelRows,
        numbers: &Numbers,
        parameters: &M::Parameters,
    ) {
        let job = Job::<M>::new(rows.view(), parameters).with(numbers);
        self.attempt_all(rows, &job, 1);
    }

    fn attempt_all<M: CellAttempt>(&mut self, rows: &LevelRows, job: &Job<M>, calls: usize) {
        job.check(self);
        let given = <M::Result<f64> as Attempted<f64>>::State::COUNT;
        let given = job.level.components.wanted(given);
        assert!(
            M::REACH == 0 && given <= self.components(),
            "{} gives {given} components, or reads around cells of `{}`",
            M::ITEM.name,
            F::NAME
        );
        let left = with_storage!(&self.storage,
            <R> => Ok(self.attempt_rows::<M, R>(job, calls)),
            _ => self.attempt_on_device(job, calls));
        let left = rows.checked(left, Left::default());
        self.touch(rows.level(), rows.rows());
        let failed = left.failed.map(|(_, cell)| (cell, None));
        if let Some((cell, calls)) = failed.or(left.unfinished.map(|cell| (cell, Some(calls)))) {
            in_precision!(self.precision(), R => {
                self.report_call::<M, R>(rows, job, cell, |result| why(result.outcome(), calls));
            });
        }
    }

    fn attempt_rows<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
        &self,
        job: &Job<M>,
        calls: usize,
    ) -> Left {
        let reader = Reader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let present = self.present::<R>(job.level.clock.level);
        let attempt = |(n, &row): (usize, &u32)| {
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.gather(row, &mut scratch[0]);
            // SAFETY: the rows are distinct, and a row is read by its own task alone, before and in `attempt_cell`.
            let own = unsafe { present.row_mut(row) };
            let mut left = Left::default();
            for cell in 0..CELLS {
                let (status, call) = attempt_cell(&reader, row, own, &mut scratch, cell, calls);
                left.add(status, call, (n * CELLS + cell) as u32);
            }
            left
        };
        let left = rows.par_iter().enumerate().map(attempt);
        left.reduce(Left::default, Left::or)
    }
}

/// What is wrong with an outcome, which is unsound if it is not `FAILED`; after so many calls it is unfinished.
fn why<R: Loops, S: CellState<R>>(outcome: Outcome<S>, calls: Option<usize>) -> Why {
    let given = values_of(&outcome.state);
    match calls {
        Some(calls) => Why::Endless(calls),
        None if outcome.status == FAILED => Why::Failed(given),
        None => Why::Unsound(given),
    }
}

/// Calls the function in a cell until it is done or has failed; the status, and how often it was called before that. A state that
/// would not be sound is a failure.
fn attempt_cell<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
    reader: &Reader<M, R>,
    row: u32,
    own: &mut [R],
    [made, state]: &mut [Vec<R>; 2],
    cell: usize,
    calls: usize,
) -> (i32, usize) {
    for call in 0..calls {
        let outcome = reader.call(row, [own, made], cell).outcome();
        if outcome.status == FAILED || !reader.set(own, cell, &outcome.state, state) {
            return (FAILED, call);
        }
        if outcome.status != UNFINISHED {
            return (outcome.status, call);
        }
    }
    (UNFINISHED, calls)
}
