//! The kernels of the root level on a device.

use nestar_device::{Number, Parameter};
use nestar_engine::Error;
use nestar_engine::device::{Buffer, Device, DeviceError, Kept, Kernel, Module, Shape};
use nestar_kernels::multigrid::device::{CELLS_PER_BLOCK, Moments, Numbers};
use nestar_kernels::multigrid::moments;
use std::sync::{Mutex, PoisonError};

/// Threads of a block.
const THREADS: u32 = 256;

/// What sums over the root level, and passes numbers of its patches to the host and back.
pub(super) struct RootKernels {
    device: Device,
    words: Buffer<u64>,
    numbers: Mutex<Kept<f64>>,
    moments: Kernel,
    shift: Kernel,
    gather: Kernel,
    scatter: Kernel,
}

impl RootKernels {
    /// Of the compiled kernels of the solver.
    pub fn new(device: &Device, module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            words: device.buffer(1 + moments::count(moments::MOST_ORDER))?,
            numbers: Mutex::default(),
            moments: module.kernel("root_moments")?,
            shift: module.kernel("root_shift")?,
            gather: module.kernel("root_gather")?,
            scatter: module.kernel("root_scatter")?,
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
}
