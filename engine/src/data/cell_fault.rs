//! Cells where a function has failed, or would leave a state that is not sound.

use super::called::evaluate_cell;
use super::cells::CellJob;
use super::level::{LevelRows, SumNames};
use super::listed::{CellCube, Loops};
use super::pool::{Field, Pool};
use super::storage::Storage;
use crate::device::DeviceError;
use crate::in_precision;
use nestar_device::{CellFn, CellState, Real};
use nestar_kernels::CELLS;
use std::fmt;

/// What is wrong with a cell.
#[derive(Debug)]
pub(super) enum FailureCause {
    /// The function gives this state, and says that it has failed.
    Failed(Vec<f64>),
    /// The function gives this, and the state would not be sound.
    Unphysical(Vec<f64>),
    /// The function gives a state and numbers to be summed, of which one is not finite.
    NonFiniteSum {
        state: Vec<f64>,
        sums: Vec<f64>,
        names: SumNames,
    },
    /// The function is not done after so many calls; what it does, and by which key it may go on.
    Unfinished(usize, &'static str),
}

/// A function and a cell, before the function was called there.
#[derive(Debug)]
struct CellFault {
    function: &'static str,
    field: &'static str,
    why: FailureCause,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    centre: [f64; 3],
    time: f64,
    state: Vec<f64>,
    /// What earlier calls have handed on.
    carried: Vec<f64>,
}

impl std::error::Error for CellFault {}

impl fmt::Display for CellFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            FailureCause::Failed(_) => write!(f, "`{}` has failed", self.function)?,
            FailureCause::Unphysical(_) => {
                write!(f, "`{}` leaves an unphysical state", self.function)?
            }
            FailureCause::NonFiniteSum { sums, names, .. } => {
                write!(f, "`{}` gives {}", self.function, no_sum(sums, *names))?
            }
            FailureCause::Unfinished(calls, _) => {
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
            carried,
            ..
        } = self;
        write!(
            f,
            " in cell {cell:?} of patch {patch:?} on level {level}, where `{field}` is {state:?} at (x, y, z) = {centre:?}, \
             t = {time}"
        )?;
        if !carried.is_empty() {
            write!(f, ", with {carried:?} from earlier calls")?;
        }
        match &self.why {
            FailureCause::Failed(given) | FailureCause::Unphysical(given) => {
                write!(f, "; it gives {given:?}")
            }
            FailureCause::NonFiniteSum { state, sums, .. } => {
                write!(f, "; it gives {state:?}, and {sums:?} to be summed")
            }
            FailureCause::Unfinished(_, doc) => write!(f, "; it does this: {doc}"),
        }
    }
}

/// The first number that is not finite among those to be summed: by its name in an account, or by its place.
fn no_sum(sums: &[f64], (account, numbers): SumNames) -> String {
    let n = sums.iter().position(|sum| !sum.is_finite()).unwrap_or(0);
    match numbers.get(n) {
        Some(number) => format!("{} to be summed as `{account}_{number}`", sums[n]),
        None => format!(
            "{} as number {} of {} to be summed",
            sums[n],
            n + 1,
            sums.len()
        ),
    }
}

/// The numbers of a state.
pub(super) fn values_of<R: Real>(state: &impl CellState<R>) -> Vec<f64> {
    let mut values = Vec::new();
    state.write(&mut |_, _, value: R| values.push(value.to_f64()), 0, 0);
    values
}

/// Row and cell of a number: that of the row among the level's, times 512, plus the cell.
pub(super) fn place_of_item(rows: &[u32], item: u32) -> (u32, usize) {
    (rows[item as usize / CELLS], item as usize % CELLS)
}

impl<F: Field> Pool<F> {
    /// Stops the run after the schedule: a function, called in cell `item` alone with what it has carried, has a result there that `why`
    /// says is wrong; or a formula among the numbers that it reads is none.
    pub(super) fn report_call<M: CellFn, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        (item, carried): (u32, &[f64]),
        why: impl FnOnce(M::Result<R>) -> FailureCause,
    ) {
        let called = self.replay_call::<M, R>(rows, job, (item, carried));
        if let Some(result) = rows.checked(called, None) {
            self.report(rows, M::ITEM.name, (item, carried), why(result));
        }
    }

    /// The function's result in a cell; none where a number that it reads is a fault, which is reported.
    pub(super) fn replay_call<M: CellFn, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        (item, carried): (u32, &[f64]),
    ) -> Result<Option<M::Result<R>>, DeviceError> {
        let (row, cell) = place_of_item(job.level.rows(), item);
        let (patch, geometry) = (job.level.topology.index(row), job.level.geometry());
        let mut fields = vec![self.host::<R>(rows.level(), &[row])?];
        if let Some(numbers) = job.numbers {
            let (mut made, own) = (Vec::new(), CellCube::of_patch(&fields[0], patch, &geometry));
            numbers.fill(&own, &mut made);
            if let Some(message) = numbers.fault(&own, &made, cell) {
                rows.faults().report(|| message);
                return Ok(None);
            }
            fields.push(made);
        }
        for other in job.others {
            let bank = other.present_bank(rows.level());
            fields.push(row_of::<R>(other.values(), bank, row, cell)?);
        }
        let chosen = &job.level.components;
        let carried: Vec<R> = carried.iter().map(|x| R::lit(*x)).collect();
        Ok(Some(evaluate_cell::<M, R>(
            (chosen, &fields, &carried),
            (&geometry, patch),
            cell,
            job.given,
        )))
    }

    /// Stops the run after the schedule: what is wrong with a function in cell `item`, of which the state stands, after calls that have
    /// handed on `carried`.
    pub(super) fn report(
        &self,
        rows: &LevelRows,
        function: &'static str,
        (item, carried): (u32, &[f64]),
        why: FailureCause,
    ) {
        let level = rows.view();
        let (row, cell) = place_of_item(rows.rows(), item);
        let (patch, geometry) = (level.topology.index(row), level.geometry());
        let state = in_precision!(self.precision(), R => {
            let values = rows.checked(self.host::<R>(rows.level(), &[row]), Vec::new());
            let own = values.iter().skip(cell).step_by(CELLS);
            own.map(|x| Real::to_f64(*x)).collect()
        });
        rows.fail(CellFault {
            function,
            field: F::NAME,
            why,
            level: rows.level(),
            patch,
            cell: [cell % 8, cell / 8 % 8, cell / 64],
            centre: CellCube::<f64>::of_patch(&[], patch, &geometry)
                .place::<f64>(cell)
                .centre,
            time: geometry.time,
            state,
            carried: carried.to_vec(),
        });
    }

    /// As [`Pool::report`], where the function's result, of so many components, waits beside the state, which it would make unsound.
    pub(super) fn report_pending_result(
        &self,
        rows: &LevelRows,
        function: &'static str,
        components: usize,
        item: u32,
    ) {
        let (row, cell) = place_of_item(rows.rows(), item);
        let waiting = in_precision!(self.precision(), R => match self.storage.typed::<R>() {
            Some(typed) => {
                let values = typed.results.rows().row(row).iter().skip(cell).step_by(CELLS);
                Ok(values.map(|x| Real::to_f64(*x)).collect())
            }
            None => self.pending_result_on_device::<R>(row, cell),
        });
        let mut given = rows.checked(waiting, Vec::new());
        given.truncate(components);
        self.report(rows, function, (item, &[]), FailureCause::Unphysical(given));
    }
}

/// The values of a row of which those in a cell are wanted; on a device the others are 0.
pub(super) fn row_of<R: Loops>(
    values: &Storage,
    bank: usize,
    row: u32,
    cell: usize,
) -> Result<Vec<R>, DeviceError> {
    match (values.typed::<R>(), values) {
        (Some(typed), _) => Ok(typed.bank(bank).row(row).to_vec()),
        (None, Storage::Device(pool)) => {
            let mut sparse = vec![];
            for value in pool.cell(bank, row, cell)? {
                sparse.resize(sparse.len() + CELLS, R::lit(0.0));
                let first = sparse.len() - CELLS;
                sparse[first + cell] = R::lit(value);
            }
            Ok(sparse)
        }
        _ => panic!("all fields of a function have one precision and place"),
    }
}
