//! Calls of a function in a cell where it has come to no good end: what they were given is kept, and they are made once more.

use super::attempts::CellSubcycle;
use super::calls::{MOST_CARRIED, RowCalls, StoppedCell, Sums};
use super::cell_case::{CellCallResult, CellCase, VERSION};
use super::cell_fault::{place_of_item, row_of, values_of};
use super::cells::CellJob;
use super::components::Components;
use super::level::LevelRows;
use super::listed::Loops;
use super::numbers::DerivedInputs;
use super::pool::{Field, Pool};
use super::reader::CellReader;
use crate::in_precision;
use nestar_device::{CellFn, CellState, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::mesh::subcycle::{CONTINUE, FAILED, RETRY, SubcycleResult};

impl<F: Field> Pool<F> {
    /// Keeps what the function was given in a cell that ends the run.
    pub(super) fn record_case<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        stop: &StoppedCell,
    ) {
        let (level, geometry) = (rows.level(), job.level.geometry());
        let (row, cell) = place_of_item(job.level.rows(), stop.item);
        let of_cell = |values: Vec<R>| -> Vec<f64> {
            let own = values.iter().skip(cell).step_by(CELLS);
            own.map(|x| Real::to_f64(*x)).collect()
        };
        let others = job.others.iter().map(|other| {
            let values = row_of::<R>(other.values(), other.present_bank(level), row, cell);
            values.map(of_cell)
        });
        let others = rows.checked(others.collect(), Vec::new());
        let called = self.replay_call::<M, R>(rows, job, (stop.item, &stop.carried));
        let Some(called) = rows.checked(called, None) else {
            return;
        };
        rows.faults().keep(CellCase {
            cell_case: VERSION,
            why: String::new(),
            function: M::ITEM.path(),
            field: F::NAME.into(),
            precision: self.precision(),
            level,
            time: geometry.time,
            dt: geometry.dt,
            patch: job.level.topology.index(row),
            cell: [cell % 8, cell / 8 % 8, cell / 64],
            calls: stop.call,
            components: self
                .spec
                .components
                .iter()
                .map(|c| c.name.clone())
                .collect(),
            state: of_cell(rows.checked(self.host::<R>(level, &[row]), Vec::new())),
            others,
            carried: stop.carried.clone(),
            given: values_of(&called.into_subcycle().state),
            folder: String::new(),
            deck: String::new(),
        });
    }

    /// The calls of an attempt in the cell of `case`, up to so many of them in the step but one at least: the same bits as in a run.
    pub(crate) fn replay_case<M: CellSubcycle>(
        &self,
        case: &CellCase,
        there: (&LevelGeometry, usize),
        read: (Components, Option<&DerivedInputs>),
        given: &M::Parameters,
    ) -> Vec<CellCallResult> {
        in_precision!(case.precision, R => self.replay_case_in::<M, R>(case, there, read, given))
    }

    fn replay_case_in<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        case: &CellCase,
        (geometry, most): (&LevelGeometry, usize),
        (chosen, numbers): (Components, Option<&DerivedInputs>),
        given: &M::Parameters,
    ) -> Vec<CellCallResult> {
        // a patch of cells that are all like this one
        let spread = |state: &Vec<f64>| -> Vec<R> {
            let cells = state.iter().flat_map(|x| [R::lit(*x); CELLS]);
            cells.collect()
        };
        let (mut own, mut others) = (spread(&case.state), Vec::new());
        others.extend(case.others.iter().map(spread));
        let slabs: Vec<[*mut R; 1]> = std::iter::once(&mut own)
            .chain(&mut others)
            .map(|values| [values.as_mut_ptr()])
            .collect();
        let rows = slabs
            .iter()
            .zip(std::iter::once(&case.state).chain(&case.others));
        let rows = rows.map(|(slab, state)| {
            // SAFETY: each vector has a row of so many values, and outlives the reader.
            unsafe { Rows::new(slab, 0, state.len() * CELLS) }
        });
        let rows: Vec<Rows<R>> = rows.collect();
        let index = [case.patch];
        let reader =
            CellReader::<M, R>::alone(self, &rows, (chosen, numbers), (geometry, &index), given);
        let mut kept = [R::lit(0.0); MOST_CARRIED];
        kept.iter_mut()
            .zip(&case.carried)
            .for_each(|(kept, x)| *kept = R::lit(*x));
        let mut working = [Vec::new(), Vec::new()];
        reader.gather(0, &mut working[0]);
        let mut all = Vec::new();
        // SAFETY: nobody else holds the row while it is called.
        let row = unsafe { rows[0].row_mut(0) };
        for _ in case.calls..most.max(case.calls + 1) {
            let called = one_call(&reader, case.number(), row, &mut working, &mut kept);
            let again = ["unfinished", "waiting"].contains(&called.status);
            all.push(called);
            if !again {
                break;
            }
        }
        all
    }
}

/// A call, after which the row has the new state.
fn one_call<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
    reader: &CellReader<M, R>,
    cell: usize,
    row: &mut [R],
    working: &mut [Vec<R>; 2],
    kept: &mut [R; MOST_CARRIED],
) -> CellCallResult {
    let result = reader
        .call(0, [row, &working[0]], kept, cell)
        .into_subcycle();
    let mut made = RowCalls::new(Sums::<M, R>::COUNT, true);
    made.attempt(reader, (0, 0, cell), row, working, (0..1, kept));
    let status = match result.status {
        FAILED => "failed",
        _ if made.has_failed() => "unsound",
        CONTINUE => "unfinished",
        RETRY => "waiting",
        _ => "done",
    };
    let own = row.iter().skip(cell).step_by(CELLS);
    CellCallResult {
        status,
        given: values_of(&result.state),
        state: own.map(|x| Real::to_f64(*x)).collect(),
        carried: values_of(&result.carried),
        sums: values_of(&result.sums),
        work: result.work,
    }
}
