//! Functions of one cell on the device.

use super::{DevicePool, shape};
use crate::device::{Buffer, DeviceError, Kernel, Shape};
use crate::field::cells::{CellMap, CellMark, CellSource, CellValue, Job};
use crate::field::{Field, Pool, Precision, Storage};
use nestar_device::{Address, Around, CellFn, Number, Precise};
use nestar_kernels::criteria::device::SECTORS;
use nestar_kernels::mesh::device::{CELL_FUNCTIONS, MAP, MARK, REDUCE, function_text};
use nestar_kernels::mesh::parameters::{CellInput, Cells};
use nestar_kernels::{CELLS, PATCH};
use std::sync::PoisonError;

/// Threads of a block.
const THREADS: u32 = 128;

/// Kernels for functions of a cell: their text and their names.
type Skeleton = (&'static str, &'static [&'static str]);

const MAPS: Skeleton = (MAP, &["cells_map", "cells_take"]);
const REDUCTIONS: Skeleton = (REDUCE, &["cells_largest", "cells_sum"]);
const MARKS: Skeleton = (MARK, &["cells_mark"]);

/// Bytes of shared memory that the skeletons declare themselves, at most.
const DECLARED: usize = 1024;
/// Blocks on a multiprocessor where a block gathers into global memory.
const GATHERING: usize = 4;

impl DevicePool {
    /// Kernel `n` of a skeleton for a function, compiled at its first use.
    fn cell_kernel<M: CellFn>(
        &self,
        (text, names): Skeleton,
        n: usize,
    ) -> Result<Kernel, DeviceError> {
        let known = self.functions.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = known.get(&(names[n], M::ITEM.path())) {
            return Ok(kernel.clone());
        }
        let function = function_text(M::ITEM, self.gathers_in_shared::<M>());
        let texts = [CELL_FUNCTIONS, SECTORS, &function, text];
        let module = self
            .device
            .compile("cells", &self.program(&[M::ITEM, Around], &texts))?;
        for &name in names {
            known.insert((name, M::ITEM.path()), module.kernel(name)?);
        }
        Ok(known[&(names[n], M::ITEM.path())].clone())
    }

    /// Bytes of a block with ghost cells as the function reads it.
    fn block_bytes<M: CellFn>(&self) -> usize {
        let cells = (PATCH + 2 * M::REACH).pow(3);
        let bytes = self.components * cells * self.value_bytes();
        if M::REACH > 0 { bytes } else { 0 }
    }

    fn gathers_in_shared<M: CellFn>(&self) -> bool {
        let room = self.device.limits().shared_per_block as usize;
        self.block_bytes::<M>() + DECLARED <= room
    }

    /// Blocks of a launch over so many rows, and how many words each needs to gather.
    fn blocks<M: CellFn>(&self, rows: usize) -> (usize, usize) {
        if self.gathers_in_shared::<M>() {
            return (rows, 0);
        }
        let most = GATHERING * self.device.limits().multiprocessors as usize;
        (rows.min(most), self.block_bytes::<M>().div_ceil(8))
    }

    /// Memory of so many words, of which the first is 0.
    fn words(&self, length: usize) -> Result<Buffer<u64>, DeviceError> {
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = match kept.take() {
            Some(words) if words.len() >= length => words,
            small => {
                // the old one goes first, to make room
                drop(small);
                self.device.buffer(length + length / 4)?
            }
        };
        self.device.fill_zero(&words, 0..1)?;
        Ok(words)
    }

    fn give_back(&self, words: Buffer<u64>) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }
}

/// What a launch is told beside the job.
#[derive(Clone, Copy, Default)]
struct Order {
    negate: bool,
    buffer: i32,
    /// Address of words: the largest key; then sums or sectors; then blocks.
    words: u64,
    /// Of a map: where the results go, their rows' components, and the bytes that mark changes.
    out: u64,
    out_components: i32,
    stale: u64,
}

impl<F: Field> Pool<F> {
    /// Launches kernel `n` of a skeleton over the rows of a level.
    fn launch_cells<M: CellFn>(
        &self,
        skeleton: Skeleton,
        n: usize,
        job: &Job<M>,
        order: Order,
    ) -> Result<(), DeviceError> {
        let pool = self.device();
        let kernel = pool.cell_kernel::<M>(skeleton, n)?;
        let count = job.level.rows().len();
        kernel.works_on(count * CELLS, count * pool.row_bytes());
        let (blocks, words) = pool.blocks::<M>(count);
        let in_shared = if words > 0 {
            0
        } else {
            pool.block_bytes::<M>()
        };
        let shape = Shape {
            shared: in_shared as u32,
            ..shape(blocks, THREADS)
        };
        let input = self.cell_input(job, order);
        match pool.precision() {
            Precision::Single => {
                let given = job.given.precise::<f32>();
                pool.device.launch(&kernel, shape, &Cells { input, given })
            }
            Precision::Double => {
                let given = job.given.precise::<f64>();
                pool.device.launch(&kernel, shape, &Cells { input, given })
            }
        }
    }

    fn cell_input<M: CellFn>(&self, job: &Job<M>, order: Order) -> CellInput<Number> {
        let level = &job.level;
        let Some(tables) = level.tables else {
            panic!("a pool on a device needs its topology there");
        };
        let number = level.clock.level;
        let (mut fields, mut components) = ([Address::NONE; 4], [0; 4]);
        let all = std::iter::once(self as &dyn CellSource).chain(job.others.iter().copied());
        for (n, source) in all.enumerate() {
            let Storage::Device(pool) = source.values() else {
                panic!("all fields of a function live on the device");
            };
            fields[n] = pool.bank(source.present_bank(number)).into();
            components[n] = source.count() as i32;
        }
        let count = level.rows().len();
        CellInput {
            fields,
            components,
            view: self.view(tables, level.topology, number),
            blocks: (order.words + 8 * (1 + count as u64)).into(),
            out: order.out.into(),
            out_components: order.out_components,
            colour: job.colour.map_or(-1, |colour| colour as i32),
            rows: tables.rows(number).into(),
            count: count as i32,
            index: tables.index().into(),
            first_child: tables.first_child().into(),
            stale: order.stale.into(),
            largest: order.words.into(),
            sums: (order.words + 8).into(),
            sectors: (order.words + 8).into(),
            geometry: level.geometry(),
            negate: order.negate,
            buffer: order.buffer,
        }
    }

    /// As `map_cells`; results of a function of a cell's surroundings wait beside the bank until all are made.
    pub(in crate::field) fn map_on_device<M: CellMap>(
        &self,
        job: &Job<M>,
    ) -> Result<(), DeviceError> {
        let pool = self.device();
        let waits = M::REACH > 0;
        let out = if waits {
            pool.results.address()
        } else {
            pool.bank(self.current(job.level.clock.level))
        };
        self.map_to(self, job, out)?;
        if !waits {
            return Ok(());
        }
        let order = Order {
            out,
            out_components: pool.components() as i32,
            ..Order::default()
        };
        self.launch_cells(MAPS, 1, job, order)
    }

    /// As `map_of`.
    pub(in crate::field) fn map_of_on_device<M: CellMap, G: Field>(
        &self,
        source: &Pool<G>,
        job: &Job<M>,
    ) -> Result<(), DeviceError> {
        let bank = self.device().bank(self.current(job.level.clock.level));
        self.map_to(source, job, bank)
    }

    /// The results of a function whose first field is `source` go to rows of this field that stand at `out`.
    fn map_to<M: CellMap, G: Field>(
        &self,
        source: &Pool<G>,
        job: &Job<M>,
        out: u64,
    ) -> Result<(), DeviceError> {
        let (pool, rows) = (source.device(), job.level.rows().len());
        let (blocks, each) = pool.blocks::<M>(rows);
        let words = (each > 0)
            .then(|| pool.words(1 + rows + blocks * each))
            .transpose()?;
        let order = Order {
            words: words.as_ref().map_or(0, Buffer::address),
            out,
            out_components: self.components() as i32,
            stale: self.device().stale(),
            ..Order::default()
        };
        source.launch_cells(MAPS, 0, job, order)?;
        words.into_iter().for_each(|words| pool.give_back(words));
        Ok(())
    }

    pub(in crate::field) fn largest_on_device<M: CellValue>(
        &self,
        job: &Job<M>,
        negate: bool,
    ) -> Result<u64, DeviceError> {
        let order = Order {
            negate,
            ..Order::default()
        };
        let found = self.found::<M, u64>((REDUCTIONS, 0), job, order, 0, 1)?;
        Ok(found.first().copied().unwrap_or(0))
    }

    pub(in crate::field) fn sums_on_device<M: CellValue>(
        &self,
        job: &Job<M>,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = job.level.rows().len();
        self.found::<M, f64>((REDUCTIONS, 1), job, Order::default(), 1, count)
    }

    pub(in crate::field) fn sectors_on_device<M: CellMark>(
        &self,
        job: &Job<M>,
        buffer: usize,
    ) -> Result<Vec<u32>, DeviceError> {
        let order = Order {
            buffer: buffer as i32,
            ..Order::default()
        };
        let count = job.level.rows().len();
        self.found::<M, u32>((MARKS, 0), job, order, 1, count)
    }

    /// Launches a kernel of a skeleton and fetches the `count` values that it leaves from word `first` on.
    fn found<M: CellFn, T: bytemuck::Pod>(
        &self,
        (skeleton, n): (Skeleton, usize),
        job: &Job<M>,
        order: Order,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, DeviceError> {
        let (pool, rows) = (self.device(), job.level.rows().len());
        let (blocks, each) = pool.blocks::<M>(rows);
        let words = pool.words(1 + rows + blocks * each)?;
        let order = Order {
            words: words.address(),
            ..order
        };
        self.launch_cells(skeleton, n, job, order)?;
        let mut found = vec![0u64; (count * size_of::<T>()).div_ceil(8)];
        pool.device.download(&words, first, &mut found)?;
        pool.give_back(words);
        Ok(bytemuck::cast_slice(&found)[..count].to_vec())
    }
}
