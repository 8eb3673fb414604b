//! The calls of a function in the cells of a row on the host.

use super::listed::Loops;
use super::reader::CellReader;
use super::tally::CellTotals;
use nestar_device::{CellFn, CellState};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::order::sum_of_lanes;
use nestar_kernels::mesh::subcycle::{CONTINUE, FAILED, RETRY, SubcycleResult};

/// Numbers that a cell may hand on from call to call.
pub(super) const MOST_CARRIED: usize = 16;

/// A cell that has come to no good end.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct StoppedCell {
    /// Calls before the one in question.
    pub call: usize,
    /// Position of the cell's row among the level's, times 512, plus the cell.
    pub item: u32,
    /// What that call is given.
    pub carried: Vec<f64>,
}

/// What rounds of calls leave.
#[derive(Default)]
pub(super) struct StoppedCells {
    /// The first cell in the first round in which one has failed.
    pub failed: Option<StoppedCell>,
    /// The first that is unfinished.
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

/// The earlier of what is there.
fn first(a: Option<StoppedCell>, b: Option<StoppedCell>) -> Option<StoppedCell> {
    let earlier = |a: StoppedCell, b: StoppedCell| if b < a { b } else { a };
    a.into_iter().chain(b).reduce(earlier)
}

pub(super) type Sums<M, R> = <<M as CellFn>::Result<R> as SubcycleResult<R>>::Sums;
type CarriedState<M, R> = <<M as CellFn>::Result<R> as SubcycleResult<R>>::Carried;

/// Numbers that a cell hands on.
type CarriedNumbers<R> = [R; MOST_CARRIED];

/// The calls in a row.
pub(super) struct RowCalls {
    left: StoppedCells,
    /// `[number][cell]`: what cells give to be summed.
    sums: Vec<f64>,
    leaf: bool,
    work: u32,
    /// Cells that were called once, twice …
    called: Vec<u64>,
}

impl RowCalls {
    pub fn new(sums: usize, leaf: bool) -> Self {
        Self {
            left: StoppedCells::default(),
            sums: vec![0.0; sums * CELLS],
            leaf,
            work: 0,
            called: Vec::new(),
        }
    }

    /// What the calls give and leave, with their work where it is `weighed`.
    pub fn result(self, weighed: bool) -> (CellTotals, StoppedCells) {
        let sum = |values: &[f64]| {
            let mut lanes = [0.0; 8];
            for cells in values.as_chunks::<8>().0 {
                lanes.iter_mut().zip(cells).for_each(|(lane, x)| *lane += x);
            }
            if self.leaf { sum_of_lanes(lanes) } else { 0.0 }
        };
        let tally = CellTotals {
            sums: self.sums.chunks(CELLS).map(sum).collect(),
            work: if weighed { vec![self.work] } else { Vec::new() },
            called: self.called,
            ..CellTotals::default()
        };
        (tally, self.left)
    }

    /// Whether a cell has failed.
    pub fn has_failed(&self) -> bool {
        self.left.failed.is_some()
    }

    /// Calls the function in the cells of row `row`, number `n` of its level, until they are done or have failed, so many times at most.
    pub fn call_all<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        (n, row): (usize, u32),
        present: Rows<R>,
        scratch: &mut [Vec<R>; 2],
        calls: usize,
    ) {
        let again = self.first_calls(reader, row, scratch);
        // SAFETY: rows are distinct, and a row is read and written by its own task alone; the first calls have read theirs.
        let own = unsafe { present.row_mut(row) };
        if let Some(again) = again.filter(|_| reader.take(own, &mut scratch[1])) {
            for (cell, mut kept) in again {
                self.attempt(reader, (n, row, cell), own, scratch, (1..calls, &mut kept));
            }
            return;
        }
        // one of them fails: cell by cell, so that it alone keeps its state
        *self = Self::new(Sums::<M, R>::COUNT, self.leaf);
        for cell in 0..CELLS {
            let mut kept = [R::lit(0.0); MOST_CARRIED];
            self.attempt(reader, (n, row, cell), own, scratch, (0..calls, &mut kept));
        }
    }

    /// Calls the function once in every cell of a row, and leaves the states in the second working space: the cells that want to be called again, with
    /// what they carry. Nothing if a cell has failed.
    #[inline(always)]
    fn first_calls<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        row: u32,
        [block, values]: &mut [Vec<R>; 2],
    ) -> Option<Vec<(usize, CarriedNumbers<R>)>> {
        reader.start::<<M::Result<R> as SubcycleResult<R>>::State>(row, values);
        let (mut again, mut sound) = (Vec::new(), true);
        self.called = vec![CELLS as u64];
        reader.each(row, block, |cell, result| {
            let result = result.into_subcycle();
            self.work += result.work.max(0) as u32;
            if [CONTINUE, RETRY].contains(&result.status) {
                let mut kept = [R::lit(0.0); MOST_CARRIED];
                let mut keep = |_, c, value| kept[c] = value;
                result.carried.write(&mut keep, 0, 0);
                again.push((cell, kept));
            } else {
                sound &= result.status != FAILED && self.sum(cell, &result.sums);
            }
            if result.status != RETRY {
                let mut write = |_, c, value| values[c * CELLS + cell] = value;
                result.state.write(&mut write, 0, 0);
            }
        });
        sound.then_some(again)
    }

    /// Calls the function in a cell until it is done or has failed, first with what `kept` begins with; `calls` counts those before.
    #[inline(always)]
    pub fn attempt<M: CellFn<Result<R>: SubcycleResult<R>>, R: Loops>(
        &mut self,
        reader: &CellReader<M, R>,
        (n, row, cell): (usize, u32, usize),
        own: &mut [R],
        [made, scratch]: &mut [Vec<R>; 2],
        (calls, kept): (std::ops::Range<usize>, &mut CarriedNumbers<R>),
    ) {
        let stop = |call, kept: &[R]| {
            let carried = kept[..CarriedState::<M, R>::COUNT].iter();
            Some(StoppedCell {
                call,
                item: (n * CELLS + cell) as u32,
                carried: carried.map(|x| x.to_f64()).collect(),
            })
        };
        for call in calls.clone() {
            self.count(call);
            let result = reader.call(row, [own, made], kept, cell).into_subcycle();
            let again = [CONTINUE, RETRY].contains(&result.status);
            self.work += result.work.max(0) as u32;
            let taken = result.status != FAILED
                && (again || self.sum(cell, &result.sums))
                && (result.status == RETRY || reader.set(own, cell, &result.state, scratch));
            if !taken {
                self.left.failed = first(self.left.failed.take(), stop(call, kept));
            }
            if !taken || !again {
                return;
            }
            let mut keep = |_, c, value| kept[c] = value;
            result.carried.write(&mut keep, 0, 0);
        }
        self.left.unfinished = first(self.left.unfinished.take(), stop(calls.end, kept));
    }

    fn count(&mut self, call: usize) {
        match self.called.get_mut(call) {
            Some(cells) => *cells += 1,
            None => self.called.push(1),
        }
    }

    /// Takes what a cell that is done gives to be summed; whether it is finite.
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
