//! Attempts on the device: a round of calls is a launch, first over all cells, then over a list of those that are unfinished.

use super::functions::Skeleton;
use super::cells::Order;
use crate::device::parallel::lock;
use crate::device::{Buffer, DeviceError, Stretch};
use crate::field::attempts::{CellAttempt, Left, Stop, kept_by};
use crate::field::cells::Job;
use crate::field::pool::{Field, Pool};
use crate::field::tally::Tally;
use crate::in_precision;
use nestar_device::Number;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::attempt::{Attempted, Round};
use nestar_kernels::mesh::device::ATTEMPT;
use nestar_kernels::mesh::parameters::CellInput;

const ATTEMPTS: Skeleton = (&[ATTEMPT], &["cells_attempt", "cells_attempt_sums"]);

/// Patches that are called together, which bounds the working space: 8 bytes a cell for lists and what cells carry, or give to be summed.
const PATCHES: usize = 8192;

/// Where things stand in the working space of so many patches, in words: the round; sums and work of patches; two lists of cells; what
/// cells keep.
struct Space {
    patches: usize,
    /// Numbers that are summed, and numbers that a cell keeps.
    sums: usize,
    kept: usize,
    weighed: bool,
    value_bytes: usize,
}

impl Space {
    fn cells(&self) -> usize {
        self.patches * CELLS
    }

    fn work(&self) -> usize {
        1 + self.patches * self.sums
    }

    fn lists(&self) -> usize {
        self.work() + if self.weighed { self.patches.div_ceil(2) } else { 0 }
    }

    fn kept_from(&self) -> usize {
        self.lists() + self.cells()
    }

    fn end(&self) -> usize {
        self.kept_from() + (self.cells() * self.kept * self.value_bytes).div_ceil(8)
    }

    /// Tells the kernels where everything is; numbers that are carried stand in place of a field.
    fn enter(&self, input: &mut CellInput<Number>, base: u64, carried: Option<usize>) {
        let word = |n: usize| base + 8 * n as u64;
        input.round = word(0).into();
        input.sums = word(1).into();
        input.work = word(self.work()).into();
        input.kept = word(self.kept_from()).into();
        if let Some(field) = carried {
            input.fields[field] = input.kept;
            input.components[field] = self.kept as i32;
            input.carried = field as i32;
        }
    }
}

impl<F: Field> Pool<F> {
    /// As `map_attempts`.
    pub(in crate::field) fn attempt_on_device<M: CellAttempt>(
        &self,
        job: &Job<M>,
        calls: usize,
    ) -> Result<(Left, Tally), DeviceError> {
        let mut words = lock(&self.device().words);
        let rows = job.level.rows();
        let (mut left, mut tally) = (Left::default(), Tally::default());
        for first in (0..rows.len()).step_by(PATCHES) {
            let [carried, sums] = kept_by::<M>();
            let space = Space {
                patches: PATCHES.min(rows.len() - first),
                sums,
                kept: carried.max(sums),
                weighed: M::Result::<f64>::WEIGHED,
                value_bytes: self.device().value_bytes(),
            };
            let words = words.provide(&self.device().device, space.end())?;
            let found = self.attempt_patches(job, (first, &space), words, calls, &mut tally)?;
            left = left.or(found);
        }
        Ok((left, tally))
    }

    /// Rounds of calls in the patches from `first` on.
    fn attempt_patches<M: CellAttempt>(
        &self,
        job: &Job<M>,
        (first, space): (usize, &Space),
        words: &Buffer<u64>,
        calls: usize,
        tally: &mut Tally,
    ) -> Result<Left, DeviceError> {
        let (pool, device) = (self.device(), &self.device().device);
        let mut input = self.cell_input(&job.level, job.others, Order::default());
        let carries = (job.carries > 0).then_some(1 + job.others.len());
        space.enter(&mut input, words.address(), carries);
        input.stale = pool.stale().into();
        input.rows = (input.rows.number() + 4 * first as u64).into();
        input.count = space.patches as i32;
        device.fill_zero(words, space.work()..space.lists())?;
        device.fill_zero(words, space.kept_from()..space.end())?;
        let list = |call: usize| words.address() + 8 * space.lists() as u64 + (call % 2 * 4 * space.cells()) as u64;
        let stop = |call, item: u32| {
            let carried = self.carried_in::<M>(&input, space.kept, item)?;
            let item = item + (first * CELLS) as u32;
            Ok::<_, DeviceError>(Some(Stop { call, item, carried }))
        };
        let (mut left, mut cells, mut called) = (Left::default(), space.cells(), Vec::new());
        let mut launch = input;
        for call in 0..calls {
            called.push(cells as u64);
            launch.next = list(call).into();
            launch.listed = cells as i32;
            let round = self.round(job, cells, launch, words)?;
            if round.failed != 0 {
                left.failed = stop(call, u32::MAX - round.failed)?;
                return Ok(left);
            }
            cells = round.unfinished as usize;
            launch.list = launch.next;
            if cells == 0 {
                break;
            }
        }
        if cells > 0 && calls > 0 {
            let mut unfinished = vec![0; cells];
            device.download(Stretch::of(launch.list.number(), cells), 0, &mut unfinished)?;
            left.unfinished = match unfinished.into_iter().min() {
                Some(item) => stop(calls, item)?,
                None => None,
            };
            return Ok(left);
        }
        tally.append(Tally { called, ..self.tally_of(job, input, space)? });
        Ok(left)
    }

    /// Calls so many cells; what that leaves.
    fn round<M: CellAttempt>(
        &self,
        job: &Job<M>,
        cells: usize,
        input: CellInput<Number>,
        words: &Buffer<u64>,
    ) -> Result<Round, DeviceError> {
        let device = &self.device().device;
        device.fill_zero(words, 0..1)?;
        self.launch_with(ATTEMPTS, 0, job, cells.div_ceil(CELLS), input)?;
        let mut left = [0];
        device.download(words, 0, &mut left)?;
        Ok(bytemuck::cast(left))
    }

    /// What the cells, all of which are done, have given.
    fn tally_of<M: CellAttempt>(
        &self,
        job: &Job<M>,
        input: CellInput<Number>,
        space: &Space,
    ) -> Result<Tally, DeviceError> {
        let device = &self.device().device;
        let mut tally = Tally::default();
        if space.sums > 0 {
            self.launch_with(ATTEMPTS, 1, job, space.patches, input)?;
            tally.sums = vec![0.0; space.patches * space.sums];
            let there = Stretch::of(input.sums.number(), tally.sums.len());
            device.download(there, 0, &mut tally.sums)?;
        }
        if space.weighed {
            tally.work = vec![0; space.patches];
            let there = Stretch::of(input.work.number(), space.patches);
            device.download(there, 0, &mut tally.work)?;
        }
        Ok(tally)
    }

    /// What a cell carries.
    fn carried_in<M: CellAttempt>(
        &self,
        input: &CellInput<Number>,
        kept: usize,
        item: u32,
    ) -> Result<Vec<f64>, DeviceError> {
        let (patch, cell) = (item as usize / CELLS, item as usize % CELLS);
        let value = |c: usize| {
            let place = (patch * kept + c) * CELLS + cell;
            in_precision!(self.precision(), R => {
                let mut value: [R; 1] = [0.0];
                let there = Stretch::of(input.kept.number() + (place * size_of::<R>()) as u64, 1);
                self.device().device.download(there, 0, &mut value)?;
                Ok(f64::from(value[0]))
            })
        };
        (0..kept_by::<M>()[0]).map(value).collect()
    }
}
