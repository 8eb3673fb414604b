//! Attempts on the device: a round of calls is a launch, first over all cells, then over a list of those that are unfinished.

use super::cells::Order;
use super::functions::Skeleton;
use crate::device::parallel::lock;
use crate::device::{Buffer, DeviceError, Stretch};
use crate::field::attempts::{CellAttempt, Left, Stop, kept_by};
use crate::field::cells::Job;
use crate::field::pool::{Field, Pool};
use crate::field::tally::Tally;
use crate::in_precision;
use nestar_device::{Number, Real};
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
        self.work()
            + if self.weighed {
                self.patches.div_ceil(2)
            } else {
                0
            }
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
        let input = self.prepared(job, (first, space), words)?;
        let lists = words.address() + 8 * space.lists() as u64;
        let (mut left, mut called, mut launch) = (Left::default(), Vec::new(), input);
        let mut cells = space.cells();
        while cells > 0 && called.len() < calls {
            let list = called.len() % 2 * 4 * space.cells();
            launch.next = (lists + list as u64).into();
            launch.listed = cells as i32;
            let round = self.round(job, cells, launch, words)?;
            if round.failed != 0 {
                let failed = (called.len(), u32::MAX - round.failed);
                left.failed = Some(self.stop::<M>(&input, space, first, failed)?);
                return Ok(left);
            }
            called.push(cells as u64);
            cells = round.unfinished as usize;
            launch.list = launch.next;
        }
        if cells == 0 {
            let given = self.tally_of(job, input, space)?;
            tally.append(Tally { called, ..given });
            return Ok(left);
        }
        let mut unfinished = vec![0; cells];
        let list = Stretch::of(launch.list.number(), cells);
        self.device().device.download(list, 0, &mut unfinished)?;
        if let Some(item) = unfinished.into_iter().min() {
            left.unfinished = Some(self.stop::<M>(&input, space, first, (calls, item))?);
        }
        Ok(left)
    }

    /// What launches over the patches from `first` on take, with nothing carried and no work done.
    fn prepared<M: CellAttempt>(
        &self,
        job: &Job<M>,
        (first, space): (usize, &Space),
        words: &Buffer<u64>,
    ) -> Result<CellInput<Number>, DeviceError> {
        let (pool, device) = (self.device(), &self.device().device);
        let mut input = self.cell_input(&job.level, job.others, Order::default());
        let carries = (job.carries > 0).then_some(job.carried());
        space.enter(&mut input, words.address(), carries);
        input.stale = pool.stale().into();
        input.rows = (input.rows.number() + 4 * first as u64).into();
        input.count = space.patches as i32;
        device.fill_zero(words, space.work()..space.lists())?;
        device.fill_zero(words, space.kept_from()..space.end())?;
        Ok(input)
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

    /// A cell of the patches from `first` on, after so many calls, with what it carries.
    fn stop<M: CellAttempt>(
        &self,
        input: &CellInput<Number>,
        space: &Space,
        first: usize,
        (call, item): (usize, u32),
    ) -> Result<Stop, DeviceError> {
        let (patch, cell) = (item as usize / CELLS, item as usize % CELLS);
        let value = |c: usize| {
            let place = (patch * space.kept + c) * CELLS + cell;
            in_precision!(self.precision(), R => {
                let mut value: [R; 1] = [0.0];
                let there = Stretch::of(input.kept.number() + (place * size_of::<R>()) as u64, 1);
                self.device().device.download(there, 0, &mut value)?;
                Ok(Real::to_f64(value[0]))
            })
        };
        let carried: Result<_, DeviceError> = (0..kept_by::<M>()[0]).map(value).collect();
        Ok(Stop {
            call,
            item: item + (first * CELLS) as u32,
            carried: carried?,
        })
    }
}
