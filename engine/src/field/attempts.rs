//! Maps by functions that may fail in a cell, or want to be called there again.

use super::cells::{Job, LevelRows, Reader};
use super::element::Element;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::device::DeviceError;
use crate::in_precision;
use nestar_device::{CellFn, CellState, Real};
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
    /// Calls, if it comes to no end.
    calls: Option<usize>,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    state: Vec<f64>,
}

impl std::error::Error for CellFault {}

impl fmt::Display for CellFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calls {
            None => write!(f, "`{}` has failed", self.function)?,
            Some(calls) => write!(f, "`{}` is not done after {calls} calls", self.function)?,
        }
        let Self {
            field,
            level,
            patch,
            cell,
            state,
            ..
        } = self;
        write!(
            f,
            " in cell {cell:?} of patch {patch:?} on level {level}, where `{field}` is {state:?}"
        )
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
        let job = Job::<M>::new(rows.view(), parameters);
        job.check(self);
        let given = <M::Result<f64> as Attempted<f64>>::State::COUNT;
        assert!(
            M::REACH == 0 && given <= self.components(),
            "{} gives {given} components, or reads around cells of `{}`",
            M::ITEM.name,
            F::NAME
        );
        let left = with_storage!(&self.storage,
            <R> => Ok(self.attempt_rows::<M, R>(&job, calls)),
            _ => self.attempt_on_device(&job, calls));
        let left = rows.checked(left, Left::default());
        self.touch(rows.level(), rows.rows());
        let fault = left.failed.map(|(_, cell)| (cell, None));
        if let Some((cell, calls)) = fault.or(left.unfinished.map(|cell| (cell, Some(calls)))) {
            match self.fault_in(&job, cell, calls) {
                Ok(fault) => rows.fail(fault),
                Err(error) => rows.checked(Err(error), ()),
            }
        }
    }

    fn fault_in<M: CellFn>(
        &self,
        job: &Job<M>,
        cell: u32,
        calls: Option<usize>,
    ) -> Result<CellFault, DeviceError> {
        let (level, cell) = (job.level.clock.level, cell as usize);
        let row = job.level.rows()[cell / CELLS];
        let values: Vec<f64> = in_precision!(self.precision(), R => {
            let values = self.host::<R>(level, &[row])?;
            values.into_iter().map(Real::to_f64).collect()
        });
        let state = values
            .chunks_exact(CELLS)
            .map(|component| component[cell % CELLS]);
        Ok(CellFault {
            function: M::ITEM.name,
            field: F::NAME,
            calls,
            level,
            patch: job.level.topology.index(row),
            cell: [cell % 8, cell / 8 % 8, cell % CELLS / 64],
            state: state.collect(),
        })
    }

    fn attempt_rows<M: CellFn<Result<R>: Attempted<R>>, R: Element>(
        &self,
        job: &Job<M>,
        calls: usize,
    ) -> Left {
        let reader = Reader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let present = self.present::<R>(job.level.clock.level);
        let attempt = |(n, &row): (usize, &u32)| {
            // SAFETY: the rows are distinct, and a row is read by its own task alone, in `attempt_cell`.
            let own = unsafe { present.row_mut(row) };
            let mut left = Left::default();
            for cell in 0..CELLS {
                let (status, call) = attempt_cell(&reader, row, own, cell, calls);
                left.add(status, call, (n * CELLS + cell) as u32);
            }
            left
        };
        let left = rows.par_iter().enumerate().map(attempt);
        left.reduce(Left::default, Left::or)
    }
}

/// Calls the function in a cell until it is done or has failed; the status, and how often it was called before that.
fn attempt_cell<M: CellFn<Result<R>: Attempted<R>>, R: Element>(
    reader: &Reader<M, R>,
    row: u32,
    own: &mut [R],
    cell: usize,
    calls: usize,
) -> (i32, usize) {
    for call in 0..calls {
        let Outcome { state, status } = reader.call(row, own, cell).outcome();
        if status == FAILED {
            return (FAILED, call);
        }
        state.write(&mut |_, c, value| own[c * CELLS + cell] = value, 0, 0);
        if status != UNFINISHED {
            return (status, call);
        }
    }
    (UNFINISHED, calls)
}
