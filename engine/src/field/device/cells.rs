//! Functions of one cell on the device.

use super::{DevicePool, shape};
use crate::device::{Buffer, DeviceError, Kernel};
use crate::field::cells::{CellMap, CellMark, CellSource, CellValue, LevelView};
use crate::field::{Field, Pool, Precision, Storage};
use nestar_device::{Address, CellFn, Item, Number, Precise};
use nestar_kernels::CELLS;
use nestar_kernels::criteria::device::SECTORS;
use nestar_kernels::mesh::device::{CELL_FUNCTIONS, MAP, MARK, REDUCE, function_text};
use nestar_kernels::mesh::parameters::{CellInput, Cells};
use std::sync::PoisonError;

/// Threads of a block.
const THREADS: u32 = 128;

/// A kernel for functions of a cell: its name and its text.
type Skeleton = (&'static str, &'static str);

const MAPS: Skeleton = ("cells_map", MAP);
const LARGEST: Skeleton = ("cells_largest", REDUCE);
const SUMS: Skeleton = ("cells_sum", REDUCE);
const MARKS: Skeleton = ("cells_mark", MARK);

impl DevicePool {
    /// The kernel of a skeleton for a function, compiled at its first use.
    fn cell_kernel(&self, item: &'static Item, skeleton: Skeleton) -> Result<Kernel, DeviceError> {
        let (name, text) = skeleton;
        let key = (name, item.path());
        let mut known = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = known.get(&key) {
            return Ok(kernel.clone());
        }
        let texts = [CELL_FUNCTIONS, SECTORS, &function_text(item), text];
        let source = self.program(&[item], &texts);
        let kernel = self.device.compile("cells", &source)?.kernel(name)?;
        known.insert(key, kernel.clone());
        Ok(kernel)
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

/// What a launch is told beside the function's own parameters.
#[derive(Clone, Copy, Default)]
struct Order {
    negate: bool,
    buffer: i32,
    /// Address of words: the largest key; then sums or sectors.
    words: u64,
}

impl<F: Field> Pool<F> {
    /// Launches a skeleton over the rows of a level.
    fn launch_cells<M: CellFn>(
        &self,
        skeleton: Skeleton,
        level: &LevelView,
        others: &[&dyn CellSource],
        order: Order,
        given: &M::Parameters,
    ) -> Result<(), DeviceError> {
        let device = self.device();
        let kernel = device.cell_kernel(M::ITEM, skeleton)?;
        let count = level.rows().len();
        kernel.works_on(count * CELLS, count * device.row_bytes());
        let input = self.cell_input(level, others, order);
        let shape = shape(count, THREADS);
        match device.precision() {
            Precision::Single => {
                let given = given.precise::<f32>();
                device
                    .device
                    .launch(&kernel, shape, &Cells { input, given })
            }
            Precision::Double => {
                let given = given.precise::<f64>();
                device
                    .device
                    .launch(&kernel, shape, &Cells { input, given })
            }
        }
    }

    fn cell_input(
        &self,
        level: &LevelView,
        others: &[&dyn CellSource],
        order: Order,
    ) -> CellInput<Number> {
        let Some(tables) = level.tables else {
            panic!("a pool on a device needs its topology there");
        };
        let number = level.clock.level;
        let (mut fields, mut components) = ([Address::NONE; 4], [0; 4]);
        let all = std::iter::once(self as &dyn CellSource).chain(others.iter().copied());
        for (n, source) in all.enumerate() {
            let Storage::Device(pool) = source.values() else {
                panic!("all fields of a function live on the device");
            };
            fields[n] = pool.bank(source.present_bank(number)).into();
            components[n] = source.count() as i32;
        }
        CellInput {
            fields,
            components,
            rows: tables.rows(number).into(),
            index: tables.index().into(),
            first_child: tables.first_child().into(),
            stale: self.device().stale().into(),
            largest: order.words.into(),
            sums: (order.words + 8).into(),
            sectors: (order.words + 8).into(),
            geometry: level.geometry(),
            negate: order.negate,
            buffer: order.buffer,
        }
    }

    pub(in crate::field) fn map_on_device<M: CellMap>(
        &mut self,
        level: &LevelView,
        others: &[&dyn CellSource],
        given: &M::Parameters,
    ) -> Result<(), DeviceError> {
        self.launch_cells::<M>(MAPS, level, others, Order::default(), given)
    }

    pub(in crate::field) fn largest_on_device<M: CellValue>(
        &self,
        level: &LevelView,
        negate: bool,
        given: &M::Parameters,
    ) -> Result<u64, DeviceError> {
        let order = Order {
            negate,
            ..Order::default()
        };
        let found = self.found::<M, u64>(LARGEST, level, order, given, 0, 1)?;
        Ok(found.first().copied().unwrap_or(0))
    }

    pub(in crate::field) fn sums_on_device<M: CellValue>(
        &self,
        level: &LevelView,
        given: &M::Parameters,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = level.rows().len();
        self.found::<M, f64>(SUMS, level, Order::default(), given, 1, count)
    }

    pub(in crate::field) fn sectors_on_device<M: CellMark>(
        &self,
        level: &LevelView,
        buffer: usize,
        given: &M::Parameters,
    ) -> Result<Vec<u32>, DeviceError> {
        let order = Order {
            buffer: buffer as i32,
            ..Order::default()
        };
        let count = level.rows().len();
        self.found::<M, u32>(MARKS, level, order, given, 1, count)
    }

    /// Launches a skeleton and fetches the `count` values that it leaves from word `first` on.
    fn found<M: CellFn, T: bytemuck::Pod>(
        &self,
        skeleton: Skeleton,
        level: &LevelView,
        order: Order,
        given: &M::Parameters,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, DeviceError> {
        let device = self.device();
        let words = device.words(1 + level.rows().len())?;
        let order = Order {
            words: words.address(),
            ..order
        };
        self.launch_cells::<M>(skeleton, level, &[], order, given)?;
        let mut found = vec![0u64; (count * size_of::<T>()).div_ceil(8)];
        device.device.download(&words, first, &mut found)?;
        device.give_back(words);
        Ok(bytemuck::cast_slice(&found)[..count].to_vec())
    }
}
