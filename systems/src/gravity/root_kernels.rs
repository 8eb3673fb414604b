//! The kernels of the root level on a device.

use super::around::length;
use super::root::Expansion;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::device::{Buffer, Device, DeviceError, Kept, Kernel, Module, Shape};
use nestar_engine::field::Element;
use nestar_kernels::multigrid::device::{Around, CELLS_PER_BLOCK, Moments, Numbers};
use nestar_kernels::multigrid::exterior::table_length;
use nestar_kernels::multigrid::moments;
use std::sync::{Mutex, PoisonError};

/// Threads of a block.
const THREADS: u32 = 256;

/// What sums over the root level, and passes numbers of its patches to the host and back.
pub(super) struct RootKernels {
    device: Device,
    words: Buffer<u64>,
    numbers: Mutex<Kept<f64>>,
    terms: Mutex<Kept<f64>>,
    moments: Kernel,
    shift: Kernel,
    gather: Kernel,
    scatter: Kernel,
    expand: Kernel,
    tabulate: Kernel,
}

impl RootKernels {
    /// Of the compiled kernels of the solver.
    pub fn new(device: &Device, module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            words: device.buffer(1 + moments::count(moments::MOST_ORDER))?,
            numbers: Mutex::default(),
            terms: Mutex::default(),
            moments: module.kernel("root_moments")?,
            shift: module.kernel("root_shift")?,
            gather: module.kernel("root_gather")?,
            scatter: module.kernel("root_scatter")?,
            expand: module.kernel("root_expand")?,
            tabulate: module.kernel("root_tabulate")?,
            device: device.clone(),
        })
    }

    fn launch<P: Parameter>(&self, kernel: &Kernel, blocks: usize, given: &P) -> Result<(), Error> {
        if blocks == 0 {
            return Ok(());
        }
        let shape = Shape::of(blocks, THREADS);
        Ok(self.device.launch(kernel, shape, given)?)
    }

    /// The bits of the largest moment of a patch, and the sums of all as whole numbers if there is a factor.
    pub fn moments(&self, given: &Moments<Number>) -> Result<Vec<u64>, Error> {
        let sums = match given.factor {
            0.0 => 0,
            _ => moments::count(given.order as usize),
        };
        let mut words = vec![0; 1 + sums];
        self.device.fill_zero(&self.words, 0..words.len())?;
        let given = Moments {
            words: self.words.address().into(),
            ..*given
        };
        self.launch(&self.moments, given.count as usize, &given)?;
        self.device.download(&self.words, 0, &mut words)?;
        Ok(words)
    }

    /// Takes the mean away.
    pub fn shift(&self, given: &Moments<Number>) -> Result<(), Error> {
        self.launch(&self.shift, given.count as usize, given)
    }

    /// A value of each of some rows of one cell.
    pub fn gather(&self, given: &Numbers<Number>) -> Result<Vec<f64>, Error> {
        let count = given.count as usize;
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = vec![0.0; count];
        let numbers = kept.provide(&self.device, count.max(1))?;
        let given = Numbers {
            numbers: numbers.address().into(),
            ..*given
        };
        self.launch(&self.gather, count.div_ceil(CELLS_PER_BLOCK), &given)?;
        self.device.download(numbers, 0, &mut values)?;
        Ok(values)
    }

    /// Puts a value into each of some rows of one cell.
    pub fn scatter(&self, given: &Numbers<Number>, values: &[f64]) -> Result<(), Error> {
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if values.is_empty() {
            return Ok(());
        }
        kept.set(&self.device, values)?;
        let given = Numbers {
            numbers: kept.address().into(),
            ..*given
        };
        let blocks = values.len().div_ceil(CELLS_PER_BLOCK);
        self.launch(&self.scatter, blocks, &given)
    }

    /// Makes the tables around an isolated domain of so many root cells of values.
    pub fn tabulate<R: Element>(
        &self,
        cells: [i32; 3],
        values: &[f64],
        table: &mut Kept<R>,
    ) -> Result<(), Error> {
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        kept.set(&self.device, values)?;
        self.tabulate_at(cells, kept.address(), table)
    }

    /// The same of an expansion.
    pub fn expand<R: Element>(
        &self,
        cells: [i32; 3],
        expansion: &Expansion,
        table: &mut Kept<R>,
    ) -> Result<(), Error> {
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.set(&self.device, expansion.terms.as_flattened())?;
        let count = length(cells);
        let given = Around {
            values: kept.provide(&self.device, count)?.address().into(),
            terms: terms.address().into(),
            count: count as i32,
            order: expansion.order as i32,
            half: expansion.half,
            centre: expansion.centre,
            nearest: expansion.nearest(),
            ..around(cells)
        };
        self.launch(&self.expand, count.div_ceil(CELLS_PER_BLOCK), &given)?;
        self.tabulate_at(cells, kept.address(), table)
    }

    fn tabulate_at<R: Element>(
        &self,
        cells: [i32; 3],
        values: u64,
        table: &mut Kept<R>,
    ) -> Result<(), Error> {
        let count = table_length(cells);
        let given = Around {
            values: values.into(),
            table: table.provide(&self.device, 2 * count)?.address().into(),
            count: count as i32,
            ..around(cells)
        };
        self.launch(&self.tabulate, count.div_ceil(CELLS_PER_BLOCK), &given)
    }
}

/// Nothing around a domain of so many root cells.
fn around(cells: [i32; 3]) -> Around<Number> {
    Around {
        values: Address::NONE,
        table: Address::NONE,
        terms: Address::NONE,
        count: 0,
        order: 0,
        cells,
        half: [0.0; 3],
        centre: [0.0; 3],
        nearest: 0.0,
    }
}
