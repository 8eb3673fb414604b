//! Maps by functions that may fail in a cell, or want to be called there again.

use super::cells::{Job, Reader, result_in};
use super::level::LevelRows;
use super::listed::{Loops, Span};
use super::numbers::Numbers;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::device::DeviceError;
use crate::in_precision;
use nestar_device::{CellFn, CellState};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::attempt::{Attempted, FAILED, Outcome, UNFINISHED};
use rayon::prelude::*;
use std::fmt;

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

/// A function has failed in a cell, or comes to no end there.
#[derive(Debug)]
struct CellFault {
    function: &'static str,
    field: &'static str,
    why: Why,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    centre: [f64; 3],
    time: f64,
    state: Vec<f64>,
}

#[derive(Debug)]
enum Why {
    /// It gives this state, and says that it has failed.
    Failed(Vec<f64>),
    /// It is not done after so many calls.
    Endless(usize),
}

impl std::error::Error for CellFault {}

impl fmt::Display for CellFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::Failed(_) => write!(f, "`{}` has failed", self.function)?,
            Why::Endless(calls) => {
                write!(f, "`{}` is not done after {calls} calls", self.function)?
            }
        }
        let Self {
            field,
            level,
            patch,
            cell,
            centre,
            time,
            state,
            ..
        } = self;
        write!(
            f,
            " in cell {cell:?} of patch {patch:?} on level {level}, where `{field}` is {state:?} at (x, y, z) = {centre:?}, \
             t = {time}"
        )?;
        match &self.why {
            Why::Failed(given) => write!(f, "; it gives {given:?}"),
            Why::Endless(_) => Ok(()),
        }
    }
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
            let reported = in_precision!(self.precision(), R => {
                self.report::<M, R>(rows, job, cell as usize, calls)
            });
            rows.checked(reported, ());
        }
    }

    /// Leaves the fault of a cell, or of a formula that is not a number there.
    fn report<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &Job<M>,
        cell: usize,
        calls: Option<usize>,
    ) -> Result<(), DeviceError> {
        let row = job.level.rows()[cell / CELLS];
        let (patch, cell) = (job.level.topology.index(row), cell % CELLS);
        let values = self.host::<R>(rows.level(), &[row])?;
        let geometry = job.level.geometry();
        let own = Span::of_patch(&values, patch, &geometry);
        let mut made = Vec::new();
        if let Some(numbers) = job.numbers {
            numbers.fill(&own, &mut made);
            if let Some(message) = numbers.fault(&own, &made, cell) {
                rows.faults().report(|| message);
                return Ok(());
            }
        }
        let fields = (&job.level.components, [&values[..], &made[..]]);
        let given = || {
            let result = result_in::<M, R>(fields, (&geometry, patch), cell, job.given);
            let mut given = Vec::new();
            let mut take = |_, _, value: R| given.push(value.to_f64());
            result.outcome().state.write(&mut take, 0, 0);
            given
        };
        rows.fail(CellFault {
            function: M::ITEM.name,
            field: F::NAME,
            why: calls.map_or_else(|| Why::Failed(given()), Why::Endless),
            level: rows.level(),
            patch,
            cell: [cell % 8, cell / 8 % 8, cell / 64],
            centre: own.place::<f64>(cell).centre,
            time: geometry.time,
            state: values[cell..]
                .iter()
                .step_by(CELLS)
                .map(|x| x.to_f64())
                .collect(),
        });
        Ok(())
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
                let (status, call) =
                    attempt_cell(&reader, row, (&mut *own, &scratch[0]), cell, calls);
                left.add(status, call, (n * CELLS + cell) as u32);
            }
            left
        };
        let left = rows.par_iter().enumerate().map(attempt);
        left.reduce(Left::default, Left::or)
    }
}

/// Calls the function in a cell until it is done or has failed; the status, and how often it was called before that.
fn attempt_cell<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
    reader: &Reader<M, R>,
    row: u32,
    (own, made): (&mut [R], &[R]),
    cell: usize,
    calls: usize,
) -> (i32, usize) {
    for call in 0..calls {
        let Outcome { state, status } = reader.call(row, [own, made], cell).outcome();
        if status == FAILED {
            return (FAILED, call);
        }
        let mut set = |_, c, value| own[reader.number(c) * CELLS + cell] = value;
        state.write(&mut set, 0, 0);
        if status != UNFINISHED {
            return (status, call);
        }
    }
    (UNFINISHED, calls)
}
