//! Cell functions that report failure or ask to be called again (sub-cycling).

use super::cell_args::{CellJob, CellReader, check_fit};
use super::criteria::DerivedInputs;
use super::failure::{
    CalledCell, CellCallResult, CellCase, FailureCause, SumNames, VERSION, locate_cell, values_of,
};
use super::field_spec::Components;
use super::function_inputs::{FunctionInputs, InputList};
use super::level::LevelRows;
use super::pool::{Field, Pool};
use super::quantities::Loops;
use super::reduce::CellTotals;
use super::storage::with_storage;
use super::update::row_of;
use crate::in_precision;
use nestar_device::{CellFn, CellState, Real};
use nestar_engine_mesh::parallel;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::mesh::order::sum_of_lanes;
use nestar_kernels::mesh::subcycle::{CONTINUE, FAILED, RETRY, Subcycle, SubcycleResult};

/// A cell function that returns an [`Outcome`](nestar_kernels::mesh::subcycle::Outcome) or a [`Subcycle`].
pub trait CellSubcycle:
    CellFn<Result<f32>: SubcycleResult<f32>> + CellFn<Result<f64>: SubcycleResult<f64>>
{
}

impl<M> CellSubcycle for M where
    M: CellFn<Result<f32>: SubcycleResult<f32>> + CellFn<Result<f64>: SubcycleResult<f64>>
{
}

/// Result type of the function in double precision.
type ResultOf<M> = <M as CellFn>::Result<f64>;

/// Returns how many numbers the function carries from call to call, and how many it sums.
pub(super) fn carried_and_summed<M: CellSubcycle>() -> [usize; 2] {
    [
        <ResultOf<M> as SubcycleResult<f64>>::Carried::COUNT,
        <ResultOf<M> as SubcycleResult<f64>>::Sums::COUNT,
    ]
}

impl<F: Field> Pool<F> {
    /// Updates every cell as [`Pool::update`], with a function that reports failure or asks for another call
    /// (sub-cycling). Unfinished cells are called again with the state that the previous call returned, at most `calls`
    /// times in all. A cell that fails, or that is still unfinished then, stops the run after the schedule. The message
    /// names level, patch, cell and state, and a formula among the inputs that is not a number.
    ///
    /// Numbers carried between calls are the last state of the function's tuple: zero in the first call, discarded
    /// after the last. Summed numbers and the work per patch are returned as [`CellTotals`]. A finished cell whose
    /// summed numbers are not all finite has failed.
    ///
    /// Derived inputs may depend only on components that the function leaves unchanged: devices differ in the call for
    /// which they are evaluated.
    ///
    /// # Panics
    /// As [`Pool::update`]; if the function reads neighbouring cells; if more than 16 numbers are carried, or they are
    /// not the last state of the tuple.
    pub fn iterate<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let job = CellJob::<M> {
            carries: carried_and_summed::<M>()[0],
            ..CellJob::new(rows.view(), inputs.list(), parameters)
        };
        self.subcycle_all(rows, &job, calls)
    }

    fn subcycle_all<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        job: &CellJob<M>,
        calls: usize,
    ) -> CellTotals {
        let fits = self.fits_subcycle::<M>(&job.level.components, &job.inputs);
        fits.unwrap_or_else(|why| panic!("{why}"));
        let calls = calls.max(1);
        let made = with_storage!(&self.storage,
            <R> => Ok(self.subcycle_rows::<M, R>(job, calls)),
            _ => self.launcher().subcycle(job, calls, rows.queues()));
        let (stopped, totals) = rows.checked(made, Default::default());
        self.touch(rows.level(), rows.rows());
        let failed = stopped.failed.map(|stop| (stop, None));
        let unfinished = stopped.unfinished.map(|stop| (stop, Some(calls)));
        if let Some((stop, calls)) = failed.or(unfinished) {
            in_precision!(self.precision(), R => {
                self.record_case::<M, R>(rows, job, &stop);
                let cause = |result: M::Result<R>| {
                    failure_cause(&result.into_subcycle(), calls, M::DOC, rows.sum_names())
                };
                self.report_call::<M, R>(rows, job, stop.cell(), cause);
            });
        }
        CellTotals {
            level: rows.level(),
            volume: job.level.topology.domain.cell_volume(rows.level()),
            count: carried_and_summed::<M>()[1],
            ..totals
        }
    }

    pub(super) fn fits_subcycle<M: CellSubcycle>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        let returned = <ResultOf<M> as SubcycleResult<f64>>::State::COUNT;
        let (name, field) = (M::ITEM.name, F::NAME);
        (self.spec).check_returned(name, field, chosen, returned)?;
        let returned = chosen.wanted(returned);
        if M::REACH > 0 || returned > self.components() {
            return Err(format!(
                "`{name}` gives more components than `{field}` has ({returned}), or reads neighbouring cells, which sub-cycling \
                 does not support"
            ));
        }
        let [carried, _] = carried_and_summed::<M>();
        let taken = M::State::<f64>::COMPONENTS;
        let fits = carried == 0 || taken.get(1 + inputs.count()) == Some(&carried);
        match fits && carried <= MAX_CARRIED {
            true => check_fit::<M>(chosen, self, inputs, carried),
            false => Err(format!(
                "`{name}` carries {carried} numbers: the last state of its tuple must have as many, at most \
                 {MAX_CARRIED}"
            )),
        }
    }

    fn subcycle_rows<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        job: &CellJob<M>,
        calls: usize,
    ) -> (StoppedCells, CellTotals) {
        let reader = CellReader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let present = self.present::<R>(job.level.clock.level);
        let calls_of_row = |n: usize| {
            let row = rows[n];
            let mut scratch = self.typed::<R>().cell_scratch.get();
            let mut made = RowCalls::new(Sums::<M, R>::COUNT, job.level.topology.is_leaf(row));
            made.call_all(&reader, n, row, present, &mut scratch, calls);
            made
        };
        let (mut stopped, mut totals) = (StoppedCells::default(), CellTotals::default());
        for row in parallel::map_indices(rows.len(), calls_of_row) {
            let (of_row, stopped_in_row) = row.result(M::Result::<R>::COUNTS_WORK);
            totals.append(of_row);
            stopped = stopped.or(stopped_in_row);
        }
        (stopped, totals)
    }

    /// Records all inputs of the function in the cell that ends the run.
    pub(super) fn record_case<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        stop: &StoppedCell,
    ) {
        let (level, geometry) = (rows.level(), job.level.geometry());
        let (row, cell) = locate_cell(job.level.rows(), stop.item);
        let of_cell = |values: Vec<R>| -> Vec<f64> {
            let own = values.iter().skip(cell).step_by(CELLS);
            own.map(|x| Real::to_f64(*x)).collect()
        };
        let others = job.inputs.fields().map(|other| {
            let values = row_of::<R>(other.values(), other.present_bank(level), row, cell);
            values.map(of_cell)
        });
        let others = rows.checked(others.collect(), Vec::new());
        let called = self.replay_call::<M, R>(rows, job, stop.cell());
        let Some(called) = rows.checked(called, None) else {
            return;
        };
        rows.faults().keep_record(CellCase {
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

    /// Replays the calls in the cell of `case`: at least one, at most as many as a step makes. The results are bitwise
    /// those of the run.
    pub fn replay_case<M: CellSubcycle>(
        &self,
        case: &CellCase,
        geometry: &LevelGeometry,
        most: usize,
        chosen: Components,
        numbers: Option<&DerivedInputs>,
        parameters: &M::Parameters,
    ) -> Vec<CellCallResult> {
        in_precision!(case.precision, R => self.replay_calls::<M, R>(case, geometry, most, chosen, numbers, parameters))
    }

    fn replay_calls<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &self,
        case: &CellCase,
        geometry: &LevelGeometry,
        most: usize,
        chosen: Components,
        numbers: Option<&DerivedInputs>,
        parameters: &M::Parameters,
    ) -> Vec<CellCallResult> {
        // a patch filled with copies of this cell
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
            // SAFETY: each vector holds one row of this length and outlives the reader.
            unsafe { Rows::new(slab, 0, state.len() * CELLS) }
        });
        let rows: Vec<Rows<R>> = rows.collect();
        let index = [case.patch];
        let reader = CellReader::<M, R>::for_single_row(
            self, &rows, chosen, numbers, geometry, &index, parameters,
        );
        let mut carried = [R::lit(0.0); MAX_CARRIED];
        carried
            .iter_mut()
            .zip(&case.carried)
            .for_each(|(own, x)| *own = R::lit(*x));
        let mut working = [Vec::new(), Vec::new()];
        reader.gather(0, &mut working[0]);
        let mut all = Vec::new();
        // SAFETY: nothing else accesses the row during the calls.
        let row = unsafe { rows[0].row_mut(0) };
        for _ in case.calls..most.max(case.calls + 1) {
            let called = one_call(&reader, case.number(), row, &mut working, &mut carried);
            let again = ["unfinished", "waiting"].contains(&called.status);
            all.push(called);
            if !again {
                break;
            }
        }
        all
    }
}

/// Makes one call and updates the row with the new state.
fn one_call<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
    reader: &CellReader<M, R>,
    cell: usize,
    row: &mut [R],
    working: &mut [Vec<R>; 2],
    carried: &mut [R; MAX_CARRIED],
) -> CellCallResult {
    let result = reader
        .call(0, [row, &working[0]], carried, cell)
        .into_subcycle();
    let mut made = RowCalls::new(Sums::<M, R>::COUNT, true);
    let at = RowCell {
        position: 0,
        row: 0,
        cell,
    };
    made.call_cell(reader, at, row, working, 0..1, carried);
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

/// Returns the reason for rejecting a result. With `calls`, the cell is unfinished after this number of calls.
fn failure_cause<R: Loops, S: CellState<R>, C, T: CellState<R>>(
    result: &Subcycle<S, C, T>,
    calls: Option<usize>,
    doc: &'static str,
    names: SumNames,
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

/// Largest number of values that a cell may carry from call to call.
pub(super) const MAX_CARRIED: usize = 16;

/// A cell that has failed or is still unfinished.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct StoppedCell {
    /// Number of calls made before the one recorded here.
    pub call: usize,
    /// Cell number in the level: 512 times the position of its row, plus the cell.
    pub item: u32,
    /// Carried numbers given to that call.
    pub carried: Vec<f64>,
}

impl StoppedCell {
    fn cell(&self) -> CalledCell<'_> {
        CalledCell {
            item: self.item,
            carried: &self.carried,
        }
    }
}

/// The first failed and the first unfinished cell.
#[derive(Default)]
pub(super) struct StoppedCells {
    /// The first failed cell of the earliest round with a failure.
    pub failed: Option<StoppedCell>,
    /// The first unfinished cell.
    pub unfinished: Option<StoppedCell>,
}

impl StoppedCells {
    pub fn or(self, other: Self) -> Self {
        Self {
            failed: first(self.failed, other.failed),
            unfinished: first(self.unfinished, other.unfinished),
        }
    }
}

/// Returns the earlier one of two optional cells.
fn first(a: Option<StoppedCell>, b: Option<StoppedCell>) -> Option<StoppedCell> {
    let earlier = |a: StoppedCell, b: StoppedCell| if b < a { b } else { a };
    a.into_iter().chain(b).reduce(earlier)
}

pub(super) type Sums<M, R> = <<M as CellFn>::Result<R> as SubcycleResult<R>>::Sums;
type CarriedState<M, R> = <<M as CellFn>::Result<R> as SubcycleResult<R>>::Carried;

/// Numbers carried by a cell.
type CarriedNumbers<R> = [R; MAX_CARRIED];

/// A cell of a row, with the position of the row in its level.
#[derive(Clone, Copy)]
pub(super) struct RowCell {
    pub position: usize,
    pub row: u32,
    pub cell: usize,
}

/// The calls in the cells of one row, with their sums and work.
pub(super) struct RowCalls {
    stopped: StoppedCells,
    /// Summed numbers, `[number][cell]`.
    sums: Vec<f64>,
    leaf: bool,
    work: u32,
    /// Number of cells called in each round.
    cells_per_round: Vec<u64>,
}

impl RowCalls {
    pub fn new(sums: usize, leaf: bool) -> Self {
        Self {
            stopped: StoppedCells::default(),
            sums: vec![0.0; sums * CELLS],
            leaf,
            work: 0,
            cells_per_round: Vec::new(),
        }
    }

    /// Returns totals and stopped cells; the work is included if it is `weighed`.
    pub fn result(self, weighed: bool) -> (CellTotals, StoppedCells) {
        let sum = |values: &[f64]| {
            let mut lanes = [0.0; 8];
            for cells in values.as_chunks::<8>().0 {
                lanes.iter_mut().zip(cells).for_each(|(lane, x)| *lane += x);
            }
            if self.leaf { sum_of_lanes(lanes) } else { 0.0 }
        };
        let totals = CellTotals {
            sums: self.sums.chunks(CELLS).map(sum).collect(),
            work: if weighed { vec![self.work] } else { Vec::new() },
            cells_per_round: self.cells_per_round,
            ..CellTotals::default()
        };
        (totals, self.stopped)
    }

    /// Returns `true` if a cell has failed.
    pub fn has_failed(&self) -> bool {
        self.stopped.failed.is_some()
    }

    /// Calls the function in all cells of `row`, number `position` of its level, until they are done or have failed.
    /// There are at most `calls` calls per cell.
    pub fn call_all<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        position: usize,
        row: u32,
        present: Rows<R>,
        scratch: &mut [Vec<R>; 2],
        calls: usize,
    ) {
        let again = self.first_calls(reader, row, scratch);
        // SAFETY: rows are distinct, each row belongs to one task, and the first calls have already read theirs.
        let own = unsafe { present.row_mut(row) };
        if let Some(again) = again.filter(|_| reader.store_row(own, &mut scratch[1])) {
            for (cell, mut carried) in again {
                let at = RowCell {
                    position,
                    row,
                    cell,
                };
                self.call_cell(reader, at, own, scratch, 1..calls, &mut carried);
            }
            return;
        }
        // a cell fails: repeat cell by cell, so that it alone keeps its state
        *self = Self::new(Sums::<M, R>::COUNT, self.leaf);
        for cell in 0..CELLS {
            let mut carried = [R::lit(0.0); MAX_CARRIED];
            let at = RowCell {
                position,
                row,
                cell,
            };
            self.call_cell(reader, at, own, scratch, 0..calls, &mut carried);
        }
    }

    /// Calls the function once in every cell of a row and leaves the states in the second scratch vector.
    /// Returns the unfinished cells with their carried numbers, or `None` if a cell has failed.
    #[inline(always)]
    fn first_calls<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        row: u32,
        [block, values]: &mut [Vec<R>; 2],
    ) -> Option<Vec<(usize, CarriedNumbers<R>)>> {
        reader.load_state::<<M::Result<R> as SubcycleResult<R>>::State>(row, values);
        let (mut again, mut physical) = (Vec::new(), true);
        self.cells_per_round = vec![CELLS as u64];
        reader.each(row, block, |cell, result| {
            let result = result.into_subcycle();
            self.work += result.work.max(0) as u32;
            if [CONTINUE, RETRY].contains(&result.status) {
                let mut carried = [R::lit(0.0); MAX_CARRIED];
                let mut keep = |_, c, value| carried[c] = value;
                result.carried.write(&mut keep, 0, 0);
                again.push((cell, carried));
            } else {
                physical &= result.status != FAILED && self.sum(cell, &result.sums);
            }
            if result.status != RETRY {
                let mut write = |_, c, value| values[c * CELLS + cell] = value;
                result.state.write(&mut write, 0, 0);
            }
        });
        physical.then_some(again)
    }

    /// Calls the function in one cell until it is done or has failed. `calls` is the range of call numbers, `carried`
    /// holds the carried numbers.
    #[inline(always)]
    pub fn call_cell<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        at: RowCell,
        own: &mut [R],
        [made, scratch]: &mut [Vec<R>; 2],
        calls: std::ops::Range<usize>,
        carried: &mut CarriedNumbers<R>,
    ) {
        let RowCell {
            position,
            row,
            cell,
        } = at;
        let stop = |call, carried: &[R]| {
            let carried = carried[..CarriedState::<M, R>::COUNT].iter();
            Some(StoppedCell {
                call,
                item: (position * CELLS + cell) as u32,
                carried: carried.map(|x| x.to_f64()).collect(),
            })
        };
        for call in calls.clone() {
            self.count(call);
            let result = reader.call(row, [own, made], carried, cell).into_subcycle();
            let again = [CONTINUE, RETRY].contains(&result.status);
            self.work += result.work.max(0) as u32;
            let taken = result.status != FAILED
                && (again || self.sum(cell, &result.sums))
                && (result.status == RETRY || reader.store_cell(own, cell, &result.state, scratch));
            if !taken {
                self.stopped.failed = first(self.stopped.failed.take(), stop(call, carried));
            }
            if !taken || !again {
                return;
            }
            let mut keep = |_, c, value| carried[c] = value;
            result.carried.write(&mut keep, 0, 0);
        }
        self.stopped.unfinished = first(self.stopped.unfinished.take(), stop(calls.end, carried));
    }

    fn count(&mut self, call: usize) {
        match self.cells_per_round.get_mut(call) {
            Some(cells) => *cells += 1,
            None => self.cells_per_round.push(1),
        }
    }

    /// Stores the summed numbers of a finished cell. Returns `true` if all are finite.
    #[inline(always)]
    fn sum<R: Loops>(&mut self, cell: usize, sums: &impl CellState<R>) -> bool {
        let mut finite = true;
        let mut write = |_, k, value: R| {
            finite &= value.is_finite();
            self.sums[k * CELLS + cell] = value.to_f64();
        };
        sums.write(&mut write, 0, 0);
        finite
    }
}
