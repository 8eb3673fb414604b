//! Sub-cycled cell functions on a device.
//!
//! Each round of calls is one launch: first over all cells, then over a list of the unfinished ones. Without lists, a
//! single launch calls each cell until it is done.

use super::cells::{LaunchOptions, Skeleton};
use crate::cell_args::CellJob;
use crate::in_precision;
use crate::iterate::{CellSubcycle, StoppedCell, StoppedCells, carried_and_summed};
use crate::pool::{CellLauncher, Field};
use crate::reduce::CellTotals;
use nestar_device::{Address, Number, Real};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Buffer, DeviceError, DeviceSpan};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::device::SUBCYCLE;
use nestar_kernels::mesh::parameters::CellInput;
use nestar_kernels::mesh::subcycle::{SHARED_SUM_BYTES, SubcycleResult, SubcycleRound};
use std::ops::Range;

pub(crate) const SUBCYCLES: Skeleton = (&[SUBCYCLE], &["cells_subcycle", "cells_subcycle_sums"]);

/// Largest number of patches in a batch. It bounds the working space: 8 bytes per cell for the lists, plus carried or
/// summed numbers.
const PATCHES: usize = 8192;

/// A batch of patches, starting at number `first`, with the layout of its working space in words.
/// Round state, sums and work belong to the batch. The two lists of cells and the carried numbers are reused by the
/// next batch.
struct BatchLayout {
    first: usize,
    patches: usize,
    /// Offset of the round state.
    round: usize,
    /// Offset of the part shared by all batches.
    shared: usize,
    /// Number of sums.
    sums: usize,
    /// Numbers stored per cell between launches, carried or summed.
    stored: usize,
    /// `true` if unfinished cells are listed.
    lists: bool,
    weighed: bool,
    value_bytes: usize,
}

impl BatchLayout {
    /// Splits `patches` patches of a level into equal batches. `once`: a single call per cell; `lists`: unfinished
    /// cells are listed.
    fn all<M: CellSubcycle>(
        patches: usize,
        value_bytes: usize,
        once: bool,
        lists: bool,
    ) -> Vec<Self> {
        let [carried, sums] = carried_and_summed::<M>();
        let at_once = once && sums * CELLS * value_bytes <= SHARED_SUM_BYTES as usize;
        let parts = patches.div_ceil(PATCHES).max(1);
        let together = patches.div_ceil(parts).max(1);
        let mut round = 0;
        let of_patches = |first: usize| {
            let batch = Self {
                first,
                patches: together.min(patches - first),
                round,
                shared: 0,
                sums,
                stored: if at_once { 0 } else { carried.max(sums) },
                lists,
                weighed: M::Result::<f64>::COUNTS_WORK,
                value_bytes,
            };
            round = batch.results().end;
            batch
        };
        let firsts = (0..patches).step_by(together);
        let mut batches: Vec<Self> = firsts.map(of_patches).collect();
        batches.iter_mut().for_each(|batch| batch.shared = round);
        batches
    }

    fn cells(&self) -> usize {
        self.patches * CELLS
    }

    fn work(&self) -> usize {
        self.round + 1 + self.patches * self.sums
    }

    /// Returns the range of the results: round state, sums and work.
    fn results(&self) -> Range<usize> {
        let work = if self.weighed { self.patches } else { 0 };
        self.round..self.work() + work.div_ceil(2)
    }

    fn stored_words(&self) -> Range<usize> {
        let lists = if self.lists { self.cells() } else { 0 };
        let first = self.shared + lists;
        first..first + (self.cells() * self.stored * self.value_bytes).div_ceil(8)
    }

    /// Sets the addresses in the input of the kernels; carried numbers replace the field `carried`.
    fn set_addresses(&self, input: &mut CellInput<Number>, base: u64, carried: Option<usize>) {
        let word = |n: usize| base + 8 * n as u64;
        input.rows = (input.rows.number() + 4 * self.first as u64).into();
        input.count = self.patches as i32;
        input.round = word(self.round).into();
        input.sums = word(self.round + 1).into();
        input.work = word(self.work()).into();
        input.kept = match self.stored {
            0 => Address::NONE,
            _ => word(self.stored_words().start).into(),
        };
        if let Some(field) = carried {
            input.fields[field] = input.kept;
            input.components[field] = self.stored as i32;
            input.carried = field as i32;
        }
    }
}

/// A batch after its launches, with the number of cells called in each round.
struct LaunchedBatch<'a> {
    batch: &'a BatchLayout,
    input: CellInput<Number>,
    cells_per_round: Vec<u64>,
}

impl<F: Field> CellLauncher<'_, F> {
    /// As [`Pool::iterate`](crate::Pool::iterate) with `calls` calls per cell; `queues` lists unfinished cells.
    /// With one call and no carried numbers, the host waits only once, for all batches.
    pub(crate) fn subcycle<M: CellSubcycle>(
        &self,
        job: &CellJob<M>,
        calls: usize,
        queues: bool,
    ) -> Result<(StoppedCells, CellTotals), DeviceError> {
        let device = &self.pool.device().device;
        let at_once = calls == 1 && job.carries == 0;
        let (rounds, each) = if queues { (calls, 1) } else { (1, calls) };
        let batches = BatchLayout::all::<M>(
            job.level.rows().len(),
            self.pool.device().value_bytes(),
            at_once,
            rounds > 1,
        );
        let (mut stopped, mut totals) = (StoppedCells::default(), CellTotals::default());
        let Some(last) = batches.last() else {
            return Ok((stopped, totals));
        };
        let results = 0..last.results().end;
        let end = batches.iter().map(|batch| batch.stored_words().end).max();
        let mut words = lock(&self.pool.device().words);
        let words = words.provide(device, end.unwrap_or(0))?;
        device.fill_zero(words, results.clone())?;
        let (mut found, mut waiting) = (vec![0; results.end], Vec::new());
        for batch in &batches {
            let mut input = self.prepare_input(job, batch, words)?;
            input.calls = each as i32;
            let cells_per_round = self.call_patches(job, batch, input, words, rounds)?;
            let made = LaunchedBatch {
                batch,
                input,
                cells_per_round,
            };
            if at_once {
                waiting.push(made);
                continue;
            }
            let results = batch.results();
            device.download(words, results.start, &mut found[results])?;
            stopped = stopped.or(self.result_of::<M>(made, rounds, calls, &found, &mut totals)?);
        }
        if at_once {
            device.download(words, 0, &mut found)?;
        }
        for made in waiting {
            stopped = stopped.or(self.result_of::<M>(made, rounds, calls, &found, &mut totals)?);
        }
        Ok((stopped, totals))
    }

    /// Calls the cells of a batch until all are done, at most `rounds` times, and sums their numbers. Returns the
    /// number of cells in each round.
    /// The results of the last round are not waited for.
    fn call_patches<M: CellSubcycle>(
        &self,
        job: &CellJob<M>,
        batch: &BatchLayout,
        input: CellInput<Number>,
        words: &Buffer<u64>,
        rounds: usize,
    ) -> Result<Vec<u64>, DeviceError> {
        let device = &self.pool.device().device;
        let lists = words.address() + 8 * batch.shared as u64;
        let (mut cells_per_round, mut launch) = (Vec::new(), input);
        let mut cells = batch.cells();
        while cells > 0 {
            let list = cells_per_round.len() % 2 * 4 * batch.cells();
            let last = cells_per_round.len() + 1 == rounds;
            launch.next = if last {
                Address::NONE
            } else {
                (lists + list as u64).into()
            };
            launch.listed = cells as i32;
            self.launch_with(SUBCYCLES, 0, job, cells.div_ceil(CELLS), launch)?;
            cells_per_round.push(cells as u64);
            if last {
                break;
            }
            let mut state = [0];
            device.download(words, batch.round, &mut state)?;
            let round: SubcycleRound = bytemuck::cast(state);
            if round.failed != 0 || round.unfinished == 0 {
                break;
            }
            device.fill_zero(words, batch.round..batch.round + 1)?;
            cells = round.unfinished as usize;
            launch.list = launch.next;
        }
        if batch.sums > 0 && batch.stored > 0 {
            self.launch_with(SUBCYCLES, 1, job, batch.patches, input)?;
        }
        Ok(cells_per_round)
    }

    /// Prepares the input of launches over a batch, with carried numbers set to zero.
    fn prepare_input<M: CellSubcycle>(
        &self,
        job: &CellJob<M>,
        batch: &BatchLayout,
        words: &Buffer<u64>,
    ) -> Result<CellInput<Number>, DeviceError> {
        let (pool, device) = (self.pool.device(), &self.pool.device().device);
        let mut input = self.cell_input(&job.level, job.inputs, LaunchOptions::default());
        let carries = (job.carries > 0).then_some(job.carried());
        batch.set_addresses(&mut input, words.address(), carries);
        input.stale = pool.stale().into();
        if job.carries > 0 {
            device.fill_zero(words, batch.stored_words())?;
        }
        Ok(input)
    }

    /// Reads the results of a batch from `words`: either stopped cells, or totals to append.
    fn result_of<M: CellSubcycle>(
        &self,
        made: LaunchedBatch,
        rounds: usize,
        calls: usize,
        words: &[u64],
        totals: &mut CellTotals,
    ) -> Result<StoppedCells, DeviceError> {
        let LaunchedBatch {
            batch,
            input,
            cells_per_round,
        } = made;
        let round: SubcycleRound = bytemuck::cast(words[batch.round]);
        let mut stopped = StoppedCells::default();
        let stop = |call, key: u32| {
            self.stopped_cell::<M>(&input, batch, call, u32::MAX - key)
                .map(Some)
        };
        if round.failed != 0 {
            stopped.failed = stop(cells_per_round.len() - 1, round.failed)?;
        } else if cells_per_round.len() == rounds && round.unfinished != 0 {
            stopped.unfinished = stop(calls, round.unfinished)?;
        } else {
            let sums = &words[batch.round + 1..batch.work()];
            let work: &[u32] = bytemuck::cast_slice(&words[batch.work()..batch.results().end]);
            totals.append(CellTotals {
                sums: bytemuck::cast_slice(sums).to_vec(),
                work: work[..work.len().min(batch.patches)].to_vec(),
                cells_per_round,
                ..CellTotals::default()
            });
        }
        Ok(stopped)
    }

    /// Returns a stopped cell of a batch with its carried numbers.
    fn stopped_cell<M: CellSubcycle>(
        &self,
        input: &CellInput<Number>,
        batch: &BatchLayout,
        call: usize,
        item: u32,
    ) -> Result<StoppedCell, DeviceError> {
        let (patch, cell) = (item as usize / CELLS, item as usize % CELLS);
        let value = |c: usize| {
            let place = (patch * batch.stored + c) * CELLS + cell;
            in_precision!(self.pool.precision(), R => {
                let mut value: [R; 1] = [0.0];
                let there = DeviceSpan::of(input.kept.number() + (place * size_of::<R>()) as u64, 1);
                self.pool.device().device.download(there, 0, &mut value)?;
                Ok(Real::to_f64(value[0]))
            })
        };
        let carried: Result<_, DeviceError> =
            (0..carried_and_summed::<M>()[0]).map(value).collect();
        Ok(StoppedCell {
            call,
            item: item + (batch.first * CELLS) as u32,
            carried: carried?,
        })
    }
}
