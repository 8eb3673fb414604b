//! Cell and face functions on a device: compilation at the first use, working space, launches.

use super::DevicePool;
use crate::cell_args::{CellJob, CellMap, CellMark, CellValue};
use crate::columns::ColumnSums;
use crate::criteria::{CriteriaList, FAULT};
use crate::field_spec::Element;
use crate::function_inputs::{CellSource, InputList};
use crate::in_precision;
use crate::level::LevelView;
use crate::pool::{BankTime, CellLauncher, Field, Pool};
use crate::quantities::Structures;
use crate::storage::Storage;
use crate::update::{FaceMap, FluxJob};
use nestar_device::{Address, CellFn, CellState, Number, Parameter, Precise};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Buffer, DeviceError, DeviceSpan, Kernel, LaunchShape, ReusableBuffer};
use nestar_kernels::mesh::device::{
    COLUMN_SUMS, CONSERVE, MAP, MARK, REDUCE, SkeletonFunction, WINDOW, WRITE_BACK,
};
use nestar_kernels::mesh::parameters::{CellInput, CellParameters, ColumnOptions, FluxParameters};
use nestar_kernels::mesh::subcycle::SubcycleRound;
use nestar_kernels::mesh::{self, fault_place};
use nestar_kernels::{CELLS, PATCH};

pub(crate) const MAPS: Skeleton = (&[MAP, WRITE_BACK], &["cells_map", "cells_write_back"]);
pub(crate) const FLOWS: Skeleton = (
    &[CONSERVE, WRITE_BACK],
    &["cells_conserve", "cells_write_back"],
);
pub(crate) const REDUCTIONS: Skeleton = (&[REDUCE], &["cells_largest", "cells_sum"]);
const WINDOWS: Skeleton = (&[WINDOW], &["cells_window"]);
pub(crate) const COLUMNS: Skeleton = (&[COLUMN_SUMS], &["cells_columns"]);
pub(crate) const MARKS: Skeleton = (&[MARK], &["cells_mark"]);

/// Returns a cell function that reads these inputs.
pub(crate) fn function_of<'a, M: CellFn>(inputs: &InputList<'a>) -> SkeletonFunction<'a> {
    match inputs.numbers {
        Some(numbers) => SkeletonFunction::WithInputs(M::ITEM, numbers.text()),
        None => of_cell::<M>(),
    }
}

/// Returns a cell function.
fn of_cell<M: CellFn>() -> SkeletonFunction<'static> {
    SkeletonFunction::Cell(M::ITEM, M::REACH)
}

/// Returns a function of cell faces.
pub(crate) fn face_function<M: FaceMap>() -> SkeletonFunction<'static> {
    SkeletonFunction::Face(M::ITEM, M::REACH, M::Result::<f64>::COUNT)
}

/// Options of a launch besides the job.
#[derive(Clone, Copy, Default)]
pub(super) struct LaunchOptions {
    pub negate: bool,
    pub buffer: i32,
    /// Address of the result words: the largest key, then sums or sectors, then blocks.
    pub words: u64,
    /// Address of the results of an update; 0 to overwrite the first field.
    pub out: u64,
    pub out_components: i32,
    pub stale: u64,
}

/// Threads per block.
pub(super) const THREADS: u32 = 128;

/// Sources and names of the kernels of a skeleton.
pub(crate) type Skeleton = (&'static [&'static str], &'static [&'static str]);

/// Largest number of bytes of shared memory that skeletons declare themselves.
const DECLARED: usize = 1024;
/// Blocks per multiprocessor for gathers into global memory.
const GATHERING: usize = 4;

impl<F: Field> CellLauncher<'_, F> {
    /// Launches kernel `n` of a skeleton over the rows of a level.
    fn launch_cells<M: CellFn>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &CellJob<M>,
        order: LaunchOptions,
    ) -> Result<(), DeviceError> {
        let mut input = self.cell_input(&job.level, job.inputs, order);
        input.colour = job.colour.map_or(-1, |colour| colour as i32);
        self.launch_with(skeleton, n, job, job.level.rows().len(), input)
    }

    /// Launches kernel `n` of a skeleton over `rows` rows.
    pub(super) fn launch_with<M: CellFn>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &CellJob<M>,
        rows: usize,
        mut input: CellInput<Number>,
    ) -> Result<(), DeviceError> {
        let (pool, function) = (self.pool.device(), function_of::<M>(&job.inputs));
        let kernel = pool.kernel_for(function, skeleton, n)?;
        if let Some(numbers) = job.inputs.numbers {
            input.parameters = pool
                .structures(numbers.structures(), input.geometry.numbers)?
                .into();
        }
        in_precision!(pool.precision(), R => {
            let parameters = job.parameters.precise::<R>();
            pool.start(&kernel, function, rows, &mut CellParameters { input, parameters })
        })
    }

    pub(super) fn cell_input(
        &self,
        level: &LevelView,
        inputs: InputList,
        order: LaunchOptions,
    ) -> CellInput<Number> {
        let (tables, number) = (level.on_device(), level.clock.level);
        let (fields, components) = self.read_fields(inputs, number);
        let count = level.rows().len();
        CellInput {
            fields,
            components,
            view: self.pool.view(tables, level.topology, number),
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
            parameters: Address::NONE,
            negate: order.negate,
            buffer: order.buffer,
        }
    }

    /// Returns addresses and component counts of the present states of this field and of `inputs`.
    fn read_fields(&self, inputs: InputList, level: usize) -> ([Address<Number>; 4], [i32; 4]) {
        let (mut fields, mut components) = ([Address::NONE; 4], [0; 4]);
        let all = std::iter::once(self.pool as &dyn CellSource).chain(inputs.fields());
        for (n, source) in all.enumerate() {
            let Storage::Device(pool) = source.values() else {
                panic!("all fields of a function are on the device");
            };
            fields[n] = pool.bank(source.present_bank(level)).into();
            components[n] = source.count() as i32;
        }
        (fields, components)
    }

    /// As [`Pool::update`]. If the function reads neighbouring cells, results are buffered until all are computed.
    /// Returns the number of the first cell whose state would be unphysical.
    pub(crate) fn map<M: CellMap>(&self, job: &CellJob<M>) -> Result<Option<u32>, DeviceError> {
        let (pool, rows) = (self.pool.device(), job.level.rows().len());
        let waits = M::REACH > 0;
        let mut words = lock(&pool.words);
        let words = pool.for_rows(&mut words, of_cell::<M>(), rows)?;
        let order = LaunchOptions {
            words: words.address(),
            out: if waits { pool.results.address() } else { 0 },
            out_components: self.pool.components() as i32,
            stale: pool.stale(),
            ..LaunchOptions::default()
        };
        self.launch_cells(MAPS, 0, job, order)?;
        if waits {
            self.launch_cells(MAPS, 1, job, order)?;
        }
        self.first_unphysical(words)
    }

    /// Returns the first cell that the launches with these words left unchanged because its state would be unphysical.
    fn first_unphysical(&self, words: &Buffer<u64>) -> Result<Option<u32>, DeviceError> {
        if self.pool.spec.states.is_none() {
            return Ok(None);
        }
        let mut left = [0];
        self.pool.device().device.download(words, 0, &mut left)?;
        let left: SubcycleRound = bytemuck::cast(left);
        Ok((left.failed != 0).then(|| u32::MAX - left.failed))
    }

    /// Returns the buffered result of a cell.
    pub(crate) fn pending_result<R: Element>(
        &self,
        row: u32,
        cell: usize,
    ) -> Result<Vec<f64>, DeviceError> {
        let pool = self.pool.device();
        let bytes = pool.row_bytes();
        let mut values = vec![0u8; bytes];
        let there = DeviceSpan::of(pool.results.address() + row as u64 * bytes as u64, bytes);
        pool.device.download(there, 0, &mut values)?;
        let values = values
            .chunks_exact(size_of::<R>())
            .map(bytemuck::pod_read_unaligned::<R>);
        Ok(values.skip(cell).step_by(CELLS).map(R::to_f64).collect())
    }

    /// As [`Pool::update_around`].
    pub(crate) fn map_of<M: CellMap, G: Field>(
        &self,
        source: &Pool<G>,
        job: &CellJob<M>,
    ) -> Result<(), DeviceError> {
        let (pool, rows) = (source.device(), job.level.rows().len());
        let mut words = lock(&pool.words);
        let order = LaunchOptions {
            words: pool.for_rows(&mut words, of_cell::<M>(), rows)?.address(),
            out: self
                .pool
                .device()
                .bank(self.pool.current(job.level.clock.level)),
            out_components: self.pool.components() as i32,
            stale: self.pool.device().stale(),
            ..LaunchOptions::default()
        };
        CellLauncher { pool: source }.launch_cells(MAPS, 0, job, order)
    }

    /// As [`Pool::flux`].
    pub(crate) fn flux<M: FaceMap>(&self, job: &FluxJob<M>) -> Result<Option<u32>, DeviceError> {
        let (pool, level) = (self.pool.device(), &job.level);
        let function = face_function::<M>();
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
                let own = job.parameters.precise::<R>();
                let mut parameters = self.flux_parameters(job, order, own);
                pool.start(&kernel, function, rows, &mut parameters)?;
            });
        }
        self.first_unphysical(words)
    }

    fn flux_parameters<M: FaceMap, P>(
        &self,
        job: &FluxJob<M>,
        order: LaunchOptions,
        parameters: P,
    ) -> FluxParameters<Number, P> {
        let clock = &job.level.clock;
        let mut input = self.cell_input(&job.level, InputList::default(), order);
        let (tables, topology) = (job.level.on_device(), job.level.topology);
        let before = self.pool.flux_state(clock.level, job.adds);
        input.view = self.pool.view_at(tables, topology, clock.level, before);
        FluxParameters {
            input,
            registers: self.pool.device().flux_view(clock.level, job.adds),
            rate: clock.cell_width.map(|width| clock.dt / width),
            dt: clock.dt,
            adds: job.adds,
            parameters,
        }
    }

    /// Gathers a row with its ghost cells, for the state in a bank at its time, as `window`.
    pub(crate) fn window<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        at: BankTime,
    ) -> Result<Vec<R>, DeviceError> {
        let (pool, function) = (self.pool.device(), SkeletonFunction::Window(layers));
        let values = function.block_values(&pool.text);
        let mut words = lock(&pool.words);
        let result_words = (values * pool.value_bytes()).div_ceil(8);
        // the row number is stored after the results
        let words = pool.zeroed(&mut words, function, [result_words + 1, 1], 0)?;
        pool.device.upload(words, result_words, &[u64::from(row)])?;
        let order = LaunchOptions {
            out: words.address(),
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(level, InputList::default(), order);
        input.view = self
            .pool
            .view_at(level.on_device(), level.topology, level.clock.level, at);
        (input.rows, input.count) = ((words.address() + 8 * result_words as u64).into(), 1);
        input.blocks = (words.address() + 8 * (result_words + 1) as u64).into();
        let kernel = pool.kernel_for(function, WINDOWS, 0)?;
        let parameters: [R; 0] = [];
        pool.start(
            &kernel,
            function,
            1,
            &mut CellParameters { input, parameters },
        )?;
        let mut found = vec![0u64; result_words];
        pool.device.download(words, 0, &mut found)?;
        Ok(bytemuck::cast_slice(&found)[..values].to_vec())
    }

    pub(crate) fn largest<M: CellValue>(
        &self,
        job: &CellJob<M>,
        negate: bool,
    ) -> Result<u64, DeviceError> {
        let order = LaunchOptions {
            negate,
            ..LaunchOptions::default()
        };
        let found = self.launch_and_fetch::<M, u64>(REDUCTIONS, 0, job, order, 0, 1)?;
        Ok(found.first().copied().unwrap_or(0))
    }

    pub(crate) fn sums<M: CellValue>(&self, job: &CellJob<M>) -> Result<Vec<f64>, DeviceError> {
        let count = job.level.rows().len();
        self.launch_and_fetch::<M, f64>(REDUCTIONS, 1, job, LaunchOptions::default(), 1, count)
    }

    pub(crate) fn sectors<M: CellMark>(
        &self,
        job: &CellJob<M>,
        buffer: usize,
    ) -> Result<Vec<u32>, DeviceError> {
        let order = LaunchOptions {
            buffer: buffer as i32,
            ..LaunchOptions::default()
        };
        let count = job.level.rows().len();
        self.launch_and_fetch::<M, u32>(MARKS, 0, job, order, 1, count)
    }

    /// Launches a kernel of a skeleton and fetches its `count` results from word `first` on.
    fn launch_and_fetch<M: CellFn, T: bytemuck::Pod>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &CellJob<M>,
        order: LaunchOptions,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, DeviceError> {
        let (pool, rows) = (self.pool.device(), job.level.rows().len());
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

    /// Computes sums along an axis in the columns of patches, `[row][quantity][64]`.
    pub(crate) fn column_sums(
        &self,
        level: &LevelView,
        wanted: &ColumnSums,
        sums: &mut [f64],
    ) -> Result<(), DeviceError> {
        let (pool, count) = (self.pool.device(), wanted.rows.len());
        if count == 0 {
            return Ok(());
        }
        let function = SkeletonFunction::Numbers(wanted.quantities.text());
        let (results, rows) = (sums.len(), count.div_ceil(2));
        let mut words = lock(&pool.words);
        // results, factors and rows
        let words = pool.zeroed(
            &mut words,
            function,
            [results + count * PATCH + rows, count],
            0,
        )?;
        let factors: &[u64] = bytemuck::cast_slice(wanted.factors);
        pool.device.upload(words, results, factors)?;
        let mut packed = vec![0u64; rows];
        bytemuck::cast_slice_mut::<u64, u32>(&mut packed)[..count].copy_from_slice(wanted.rows);
        pool.device
            .upload(words, results + factors.len(), &packed)?;
        let address = |word: usize| words.address() + 8 * word as u64;
        let mut input = self.cell_input(level, InputList::default(), LaunchOptions::default());
        (input.rows, input.count) = (address(results + factors.len()).into(), count as i32);
        let structures = wanted.quantities.structures();
        input.parameters = pool.structures(structures, input.geometry.numbers)?.into();
        let parameters = ColumnOptions {
            factors: address(results).into(),
            sums: address(0).into(),
            axis: wanted.axis as i32,
            weighted: wanted.weighted,
        };
        let kernel = pool.kernel_for(function, COLUMNS, 0)?;
        pool.start(
            &kernel,
            function,
            count,
            &mut CellParameters { input, parameters },
        )?;
        pool.device
            .download(words, 0, bytemuck::cast_slice_mut::<f64, u64>(sums))
    }

    /// As [`Pool::mark_by_list`]; also returns the message about a formula that is not a number.
    pub(crate) fn sectors_by_list(
        &self,
        level: &LevelView,
        buffer: usize,
        marks: &CriteriaList,
    ) -> Result<(Vec<u32>, Option<String>), DeviceError> {
        let (pool, count) = (self.pool.device(), level.rows().len());
        let function = SkeletonFunction::List(marks.text());
        let mut words = lock(&pool.words);
        let sectors = FAULT_WORDS + count.div_ceil(2);
        let words = pool.zeroed(&mut words, function, [sectors, count], FAULT_WORDS)?;
        let order = LaunchOptions {
            buffer: buffer as i32,
            ..LaunchOptions::default()
        };
        let mut input = self.cell_input(level, InputList::default(), order);
        let address = |word: usize| words.address() + 8 * word as u64;
        // faults of rules and formulas are fetched together with the sectors
        input.view.fault = address(0).into();
        input.sectors = address(FAULT_WORDS).into();
        input.blocks = address(sectors).into();
        let structures = &marks.written.structures;
        input.parameters = pool.structures(structures, input.geometry.numbers)?.into();
        let kernel = pool.kernel_for(function, MARKS, 0)?;
        in_precision!(pool.precision(), R => {
            let parameters: [R; 0] = [];
            pool.start(&kernel, function, count, &mut CellParameters { input, parameters })?;
        });
        let mut found = vec![0u64; sectors];
        pool.device.download(words, 0, &mut found)?;
        let found: &[u32] = bytemuck::cast_slice(&found);
        let fault = found
            .first_chunk()
            .and_then(|fault| self.explain(marks, fault));
        Ok((found[2 * FAULT_WORDS..][..count].to_vec(), fault))
    }

    /// Returns the message of a fault: of a quantity of the list or of a boundary rule.
    fn explain(&self, marks: &CriteriaList, fault: &[u32; mesh::FAULT_WORDS]) -> Option<String> {
        let Some(n) = fault[0].checked_sub(FAULT) else {
            return self.pool.device().explain(fault);
        };
        let mut numbers = marks.list.iter().flat_map(|mark| &mark.of);
        let (place, time) = fault_place(fault);
        numbers.nth(n as usize)?.fault(place, time)
    }
}

impl DevicePool {
    /// Returns kernel `n` of a skeleton for a function. The first call starts to compile it.
    pub(crate) fn kernel_for(
        &self,
        function: SkeletonFunction,
        (texts, names): Skeleton,
        n: usize,
    ) -> Result<Kernel, DeviceError> {
        let mut known = lock(&self.functions);
        let key = function.key();
        if let Some(kernel) = known.get(&(names[0], names[n], key.clone())) {
            return Ok(kernel.clone());
        }
        let texts = function.texts(self.gathers_in_shared(function), texts);
        let source = self.text.program(&function.items(), &texts);
        let module = self.device.compile("cells", &source)?;
        for &name in names {
            known.insert((names[0], name, key.clone()), module.kernel(name)?);
        }
        Ok(known[&(names[0], names[n], key)].clone())
    }

    /// Returns the bytes of a block with ghost cells as read by the function.
    fn block_bytes(&self, function: SkeletonFunction) -> usize {
        function.block_values(&self.text) * self.value_bytes()
    }

    fn gathers_in_shared(&self, function: SkeletonFunction) -> bool {
        let room = self.device.limits().shared_per_block as usize;
        self.block_bytes(function) + DECLARED <= room
    }

    /// Returns the blocks of a launch over `rows` rows, and the words per block for gathers in global memory.
    fn blocks(&self, function: SkeletonFunction, rows: usize) -> (usize, usize) {
        if self.gathers_in_shared(function) {
            return (rows, 0);
        }
        let most = GATHERING * self.device.limits().multiprocessors as usize;
        (rows.min(most), self.block_bytes(function).div_ceil(8))
    }

    /// Returns working space for a launch over `rows` rows: a zeroed word, one word per row, then gather blocks.
    pub(super) fn for_rows<'a>(
        &self,
        words: &'a mut ReusableBuffer<u64>,
        function: SkeletonFunction,
        rows: usize,
    ) -> Result<&'a Buffer<u64>, DeviceError> {
        self.zeroed(words, function, [1 + rows, rows], 1)
    }

    /// Returns working space with `first` words, the first `zeros` of them zeroed, and gather blocks for `rows` rows.
    pub(super) fn zeroed<'a>(
        &self,
        words: &'a mut ReusableBuffer<u64>,
        function: SkeletonFunction,
        [first, rows]: [usize; 2],
        zeros: usize,
    ) -> Result<&'a Buffer<u64>, DeviceError> {
        let (blocks, each) = self.blocks(function, rows);
        let words = words.provide(&self.device, first + blocks * each)?;
        self.device.fill_zero(words, 0..zeros)?;
        Ok(words)
    }

    /// Launches a kernel for a function over `rows` rows, after uploading the tables among the parameters.
    pub(super) fn start<P: Parameter>(
        &self,
        kernel: &Kernel,
        function: SkeletonFunction,
        rows: usize,
        parameters: &mut P,
    ) -> Result<(), DeviceError> {
        kernel.count_work(rows * CELLS, rows * self.row_bytes());
        let (blocks, words) = self.blocks(function, rows);
        let in_shared = if words > 0 {
            0
        } else {
            self.block_bytes(function)
        };
        let shape = LaunchShape {
            shared: in_shared as u32,
            ..LaunchShape::of(blocks, THREADS)
        };
        self.tables.bind(|place| parameters.bind(place))?;
        self.device.launch(kernel, shape, parameters)
    }

    /// Returns the device address of the parameter structures of a list for these numbers of the clock, uploaded with their tables at the
    /// first use.
    pub(super) fn structures(
        &self,
        list: &Structures,
        numbers: [f64; 2],
    ) -> Result<u64, DeviceError> {
        if list.is_empty() {
            return Ok(0);
        }
        let bytes = self
            .tables
            .bind(|place| list.bytes(self.precision, numbers, place))?;
        let mut there = lock(&self.structures);
        if let Some((_, buffer)) = there.iter().find(|(known, _)| *known == bytes) {
            return Ok(buffer.address());
        }
        // Parameters that follow the time have new bytes in each step. An upload follows earlier launches, so that it may replace the
        // oldest structures; memory of another size is released, which waits for the device.
        let oldest = (there.len() == MOST_STRUCTURES).then(|| there.remove(0).1);
        let buffer = match oldest.filter(|buffer| buffer.len() == bytes.len()) {
            Some(buffer) => buffer,
            None => self.device.buffer::<u8>(bytes.len())?,
        };
        self.device.upload(&buffer, 0, &bytes)?;
        let address = buffer.address();
        there.push((bytes, buffer));
        Ok(address)
    }
}

/// Largest number of parameter structures of lists that stay on a device.
const MOST_STRUCTURES: usize = 64;

/// Words of the fault record, stored before the sectors.
const FAULT_WORDS: usize = mesh::FAULT_WORDS.div_ceil(2);
