//! Functions of cells and faces on the device.

use super::functions::Skeleton;
use crate::data::Element;
use crate::data::cells::{CellJob, CellMap, CellMark, CellSource, CellValue};
use crate::data::conserve::{FaceMap, FluxJob};
use crate::data::level::LevelView;
use crate::data::pool::{Field, Pool};
use crate::data::storage::Storage;
use crate::device::parallel::lock;
use crate::device::{Buffer, DeviceError, DeviceSpan};
use crate::in_precision;
use nestar_device::{Address, CellFn, CellState, Number, Precise};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::device::{
    CONSERVE, MAP, MARK, REDUCE, SkeletonFunction, WINDOW, WRITE_BACK,
};
use nestar_kernels::mesh::parameters::{CellInput, CellParameters, FluxParameters};
use nestar_kernels::mesh::subcycle::SubcycleRound;

const MAPS: Skeleton = (&[MAP, WRITE_BACK], &["cells_map", "cells_write_back"]);
const FLOWS: Skeleton = (
    &[CONSERVE, WRITE_BACK],
    &["cells_conserve", "cells_write_back"],
);
const REDUCTIONS: Skeleton = (&[REDUCE], &["cells_largest", "cells_sum"]);
const WINDOWS: Skeleton = (&[WINDOW], &["cells_window"]);
pub(super) const MARKS: Skeleton = (&[MARK], &["cells_mark"]);

/// The function of a job.
fn of_job<'a, M: CellFn>(job: &CellJob<'a, M>) -> SkeletonFunction<'a> {
    match job.numbers {
        Some(numbers) => SkeletonFunction::WithInputs(M::ITEM, numbers.text()),
        None => of_cell::<M>(),
    }
}

/// A function of a cell.
fn of_cell<M: CellFn>() -> SkeletonFunction<'static> {
    SkeletonFunction::Cell(M::ITEM, M::REACH)
}

/// What a launch is told beside the job.
#[derive(Clone, Copy, Default)]
pub(super) struct LaunchOptions {
    pub negate: bool,
    pub buffer: i32,
    /// Address of words: the largest key; then sums or sectors; then blocks.
    pub words: u64,
    /// Of a map: where the results go, 0: into the first field itself; their rows' components, and the bytes that mark changes.
    pub out: u64,
    pub out_components: i32,
    pub stale: u64,
}

impl<F: Field> Pool<F> {
    /// Launches kernel `n` of a skeleton over the rows of a level.
    fn launch_cells<M: CellFn>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &CellJob<M>,
        order: LaunchOptions,
    ) -> Result<(), DeviceError> {
        let mut input = self.cell_input(&job.level, job.others, order);
        input.colour = job.colour.map_or(-1, |colour| colour as i32);
        self.launch_with(skeleton, n, job, job.level.rows().len(), input)
    }

    /// Launches kernel `n` of a skeleton over so many rows.
    pub(super) fn launch_with<M: CellFn>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &CellJob<M>,
        rows: usize,
        mut input: CellInput<Number>,
    ) -> Result<(), DeviceError> {
        let (pool, function) = (self.device(), of_job(job));
        let kernel = pool.kernel_for(function, skeleton, n)?;
        if let Some(numbers) = job.numbers {
            input.given = pool.structures(numbers.structures())?.into();
        }
        in_precision!(pool.precision(), R => {
            let given = job.given.precise::<R>();
            pool.start(&kernel, function, rows, &mut CellParameters { input, given })
        })
    }

    pub(super) fn cell_input(
        &self,
        level: &LevelView,
        others: &[&dyn CellSource],
        order: LaunchOptions,
    ) -> CellInput<Number> {
        let (tables, number) = (level.on_device(), level.clock.level);
        let (fields, components) = self.read_fields(others, number);
        let count = level.rows().len();
        CellInput {
            fields,
            components,
            view: self.view(tables, level.topology, number),
            blocks: (order.words + 8 * (1 + count as u64)).into(),
            out: order.out.into(),
            out_components: order.out_components,
            chosen: level.components.numbers(),
            colour: -1,
            rows: tables.rows(number).into(),
            count: count as i32,
            index: tables.index().into(),
            first_child: tables.first_child().into(),
            stale: order.stale.into(),
            largest: order.words.into(),
            list: Address::NONE,
            next: Address::NONE,
            round: order.words.into(),
            listed: 0,
            calls: 1,
            kept: Address::NONE,
            carried: -1,
            work: Address::NONE,
            sums: (order.words + 8).into(),
            sectors: (order.words + 8).into(),
            geometry: level.geometry(),
            given: Address::NONE,
            negate: order.negate,
            buffer: order.buffer,
        }
    }

    /// Where the present states of this field and of others stand, and how many components each has.
    fn read_fields(
        &self,
        others: &[&dyn CellSource],
        level: usize,
    ) -> ([Address<Number>; 4], [i32; 4]) {
        let (mut fields, mut components) = ([Address::NONE; 4], [0; 4]);
        let all = std::iter::once(self as &dyn CellSource).chain(others.iter().copied());
        for (n, source) in all.enumerate() {
            let Storage::Device(pool) = source.values() else {
                panic!("all fields of a function live on the device");
            };
            fields[n] = pool.bank(source.present_bank(level)).into();
            components[n] = source.count() as i32;
        }
        (fields, components)
    }

    /// As `map_cells`; results of a function of a cell's surroundings wait beside the bank until all are made. The first cell, as
    /// attempts number them, that would not be sound.
    pub(in crate::data) fn map_on_device<M: CellMap>(
        &self,
        job: &CellJob<M>,
    ) -> Result<Option<u32>, DeviceError> {
        let (pool, rows) = (self.device(), job.level.rows().len());
        let waits = M::REACH > 0;
        let mut words = lock(&pool.words);
        let words = pool.for_rows(&mut words, of_cell::<M>(), rows)?;
        let order = LaunchOptions {
            words: words.address(),
            out: if waits { pool.results.address() } else { 0 },
            out_components: self.components() as i32,
            stale: pool.stale(),
            ..LaunchOptions::default()
        };
        self.launch_cells(MAPS, 0, job, order)?;
        if waits {
            self.launch_cells(MAPS, 1, job, order)?;
        }
        self.first_unphysical(words)
    }

    /// The first cell that the launches with these words have left as it was, as it would not be sound.
    fn first_unphysical(&self, words: &Buffer<u64>) -> Result<Option<u32>, DeviceError> {
        if self.spec.states.is_none() {
            return Ok(None);
        }
        let mut left = [0];
        self.device().device.download(words, 0, &mut left)?;
        let left: SubcycleRound = bytemuck::cast(left);
        Ok((left.failed != 0).then(|| u32::MAX - left.failed))
    }

    /// The results that wait for a cell.
    pub(in crate::data) fn pending_result_on_device<R: Element>(
        &self,
        row: u32,
        cell: usize,
    ) -> Result<Vec<f64>, DeviceError> {
        let pool = self.device();
        let bytes = pool.row_bytes();
        let mut values = vec![0u8; bytes];
        let there = DeviceSpan::of(pool.results.address() + row as u64 * bytes as u64, bytes);
        pool.device.download(there, 0, &mut values)?;
        let values = values
            .chunks_exact(size_of::<R>())
            .map(bytemuck::pod_read_unaligned::<R>);
        Ok(values.skip(cell).step_by(CELLS).map(R::to_f64).collect())
    }

    /// As `map_of`.
    pub(in crate::data) fn map_of_on_device<M: CellMap, G: Field>(
        &self,
        source: &Pool<G>,
        job: &CellJob<M>,
    ) -> Result<(), DeviceError> {
        let (pool, rows) = (source.device(), job.level.rows().len());
        let mut words = lock(&pool.words);
        let order = LaunchOptions {
            words: pool.for_rows(&mut words, of_cell::<M>(), rows)?.address(),
            out: self.device().bank(self.current(job.level.clock.level)),
            out_components: self.components() as i32,
            stale: self.device().stale(),
            ..LaunchOptions::default()
        };
        source.launch_cells(MAPS, 0, job, order)
    }

    /// As `fluxes`.
    pub(in crate::data) fn flow_on_device<M: FaceMap>(
        &self,
        flow: &FluxJob<M>,
    ) -> Result<Option<u32>, DeviceError> {
        let (pool, level) = (self.device(), &flow.level);
        let function = SkeletonFunction::Face(M::ITEM, M::REACH, M::Result::<f64>::COUNT);
        let rows = level.rows().len();
        let mut words = lock(&pool.words);
        let words = pool.for_rows(&mut words, function, rows)?;
        let order = LaunchOptions {
            words: words.address(),
            out: pool.results.address(),
            out_components: pool.components() as i32,
            stale: pool.stale(),
            ..LaunchOptions::default()
        };
        for n in 0..FLOWS.1.len() {
            let kernel = pool.kernel_for(function, FLOWS, n)?;
            in_precision!(pool.precision(), R => {
                let given = flow.given.precise::<R>();
                let mut parameters = self.flux_parameters(flow, order, given);
                pool.start(&kernel, function, rows, &mut parameters)?;
            });
        }
        self.first_unphysical(words)
    }

    fn flux_parameters<M: FaceMap, P>(
        &self,
        flow: &FluxJob<M>,
        order: LaunchOptions,
        given: P,
    ) -> FluxParameters<Number, P> {
        let clock = &flow.level.clock;
        let mut input = self.cell_input(&flow.level, &[], order);
        let (tables, topology) = (flow.level.on_device(), flow.level.topology);
        let before = self.flux_state(clock.level, flow.adds);
        input.view = self.view_at(tables, topology, clock.level, before);
        FluxParameters {
            input,
            registers: self.device().flux_view(clock.level, flow.adds),
            rate: clock.cell_width.map(|width| clock.dt / width),
            dt: clock.dt,
            adds: flow.adds,
            given,
        }
    }

    /// As `window`.
    /// A row with its ghost cells, of the state that stands in a bank, at its time.
    pub(in crate::data) fn window_on_device<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        at: (usize, f64),
    ) -> Result<Vec<R>, DeviceError> {
        let (pool, function) = (self.device(), SkeletonFunction::Window(layers));
        let values = function.block_values(&pool.text);
        let mut words = lock(&pool.words);
        let kept = (values * pool.value_bytes()).div_ceil(8);
        // the row itself stands behind what comes out
        let words = pool.zeroed(&mut words, function, [kept + 1, 1], 0)?;
        pool.device.upload(words, kept, &[u64::from(row)])?;
        let order = LaunchOptions {
            out: words.address(),
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(level, &[], order);
        input.view = self.view_at(level.on_device(), level.topology, level.clock.level, at);
        (input.rows, input.count) = ((words.address() + 8 * kept as u64).into(), 1);
        input.blocks = (words.address() + 8 * (kept + 1) as u64).into();
        let kernel = pool.kernel_for(function, WINDOWS, 0)?;
        let given: [R; 0] = [];
        pool.start(&kernel, function, 1, &mut CellParameters { input, given })?;
        let mut found = vec![0u64; kept];
        pool.device.download(words, 0, &mut found)?;
        Ok(bytemuck::cast_slice(&found)[..values].to_vec())
    }

    pub(in crate::data) fn largest_on_device<M: CellValue>(
        &self,
        job: &CellJob<M>,
        negate: bool,
    ) -> Result<u64, DeviceError> {
        let order = LaunchOptions {
            negate,
            ..LaunchOptions::default()
        };
        let found = self.found::<M, u64>((REDUCTIONS, 0), job, order, 0, 1)?;
        Ok(found.first().copied().unwrap_or(0))
    }

    pub(in crate::data) fn sums_on_device<M: CellValue>(
        &self,
        job: &CellJob<M>,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = job.level.rows().len();
        self.found::<M, f64>((REDUCTIONS, 1), job, LaunchOptions::default(), 1, count)
    }

    pub(in crate::data) fn sectors_on_device<M: CellMark>(
        &self,
        job: &CellJob<M>,
        buffer: usize,
    ) -> Result<Vec<u32>, DeviceError> {
        let order = LaunchOptions {
            buffer: buffer as i32,
            ..LaunchOptions::default()
        };
        let count = job.level.rows().len();
        self.found::<M, u32>((MARKS, 0), job, order, 1, count)
    }

    /// Launches a kernel of a skeleton and fetches the `count` values that it leaves from word `first` on.
    fn found<M: CellFn, T: bytemuck::Pod>(
        &self,
        (skeleton, n): (Skeleton, usize),
        job: &CellJob<M>,
        order: LaunchOptions,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, DeviceError> {
        let (pool, rows) = (self.device(), job.level.rows().len());
        let mut words = lock(&pool.words);
        let words = pool.for_rows(&mut words, of_cell::<M>(), rows)?;
        let order = LaunchOptions {
            words: words.address(),
            ..order
        };
        self.launch_cells(skeleton, n, job, order)?;
        let mut found = vec![0u64; (count * size_of::<T>()).div_ceil(8)];
        pool.device.download(words, first, &mut found)?;
        Ok(bytemuck::cast_slice(&found)[..count].to_vec())
    }
}
