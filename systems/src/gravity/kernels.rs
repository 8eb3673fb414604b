//! The kernels of the solver on a device.

use super::bottom_kernels::BottomKernels;
use super::root_kernels::RootKernels;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::data::Precision;
use nestar_engine::data::device::DevicePool;
use nestar_engine::device::{Buffer, Device, DeviceError, Kernel, LaunchShape, ReusableBuffer};
use nestar_kernels::gravity::{self, Fall, GRAVITY_KERNELS};
use nestar_kernels::multigrid::device::{
    CELLS_PER_BLOCK, CoarseCycleParameters, LargestResidualParameters, LevelParameters, MULTIGRID,
};
use nestar_kernels::multigrid::device_items;
use std::sync::{Mutex, PoisonError};

/// Threads of a block.
const THREADS: u32 = 256;
/// Of one that does all by itself.
const THREADS_ALONE: u32 = 1024;

/// Blocks for so many cells of corrections.
pub(super) fn blocks(cells: usize) -> usize {
    cells.div_ceil(CELLS_PER_BLOCK)
}

/// Every kernel, ready to launch.
pub(super) struct Kernels {
    device: Device,
    double: bool,
    words: Buffer<u64>,
    rows: Mutex<ReusableBuffer<u32>>,
    pub relax: Kernel,
    pub restrict_residual: Kernel,
    pub add_change: Kernel,
    pub keep: Kernel,
    pub means: Kernel,
    pub tell: Kernel,
    pub tau: Kernel,
    pub kick: Kernel,
    pub accelerate: Kernel,
    pub work: Kernel,
    largest_residual: Kernel,
    fall: Kernel,
    /// Of the root level.
    pub root: RootKernels,
    /// Of its coarsest grid.
    pub bottom: BottomKernels,
    coarse_cycle: Kernel,
    /// Of rows of 4^3, 2^3 and 1 cells.
    pub relax_coarse: [Kernel; 3],
    /// From rows of 4^3 and 2^3 cells.
    pub restrict_coarse: [Kernel; 2],
    /// To rows of 8^3, 4^3 and 2^3 cells.
    pub prolong: [Kernel; 3],
}

impl Kernels {
    /// Compiles them for the pool of the unknowns.
    ///
    /// # Errors
    /// The compiler's messages; memory that does not suffice.
    pub fn new(pool: &DevicePool) -> Result<Self, DeviceError> {
        let device = pool.device().clone();
        let items = [device_items(), gravity::device_items()].concat();
        let source = pool.program(&items, &[MULTIGRID, GRAVITY_KERNELS]);
        let module = device.compile("multigrid", &source)?;
        let kernel = |name: &str| module.kernel(name);
        Ok(Self {
            relax: kernel("level_relax")?,
            restrict_residual: kernel("level_restrict_residual")?,
            add_change: kernel("level_add_change")?,
            keep: kernel("level_keep")?,
            means: kernel("composite_means")?,
            tell: kernel("composite_tell")?,
            tau: kernel("composite_tau")?,
            kick: kernel("gravity_kick")?,
            accelerate: kernel("gravity_accelerate")?,
            work: kernel("gravity_work")?,
            fall: kernel("gravity_fall")?,
            root: RootKernels::new(&device, &module)?,
            bottom: BottomKernels::new(&device, &module)?,
            largest_residual: kernel("level_largest_residual")?,
            relax_coarse: [
                kernel("coarse_relax_4")?,
                kernel("coarse_relax_2")?,
                kernel("coarse_relax_1")?,
            ],
            restrict_coarse: [
                kernel("coarse_restrict_residual_4")?,
                kernel("coarse_restrict_residual_2")?,
            ],
            prolong: [
                kernel("coarse_prolong_8")?,
                kernel("coarse_prolong_4")?,
                kernel("coarse_prolong_2")?,
            ],
            coarse_cycle: kernel("coarse_cycle")?,
            words: device.buffer(2)?,
            rows: Mutex::default(),
            double: pool.precision() == Precision::Double,
            device,
        })
    }

    /// Starts a kernel, unless there is nothing to do.
    pub fn launch<P: Parameter>(
        &self,
        kernel: &Kernel,
        blocks: usize,
        given: &P,
    ) -> Result<(), Error> {
        if blocks == 0 {
            return Ok(());
        }
        let shape = LaunchShape::of(blocks, THREADS);
        Ok(self.device.launch(kernel, shape, given)?)
    }

    /// Does all that corrections of a small level go through between two visits of it.
    pub fn correct(&self, given: &CoarseCycleParameters<Number>) -> Result<(), Error> {
        let shape = LaunchShape::of(1, THREADS_ALONE);
        Ok(self.device.launch(&self.coarse_cycle, shape, given)?)
    }

    /// A list of rows on the device: its address and length. It holds until the next.
    pub fn list(&self, rows: &[u32]) -> Result<(u64, usize), DeviceError> {
        let mut list = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if !rows.is_empty() {
            list.set(&self.device, rows)?;
        }
        Ok((list.address(), rows.len()))
    }

    /// The largest residual of a level's leaves, and the largest right-hand side of the level.
    pub fn largest_residual(&self, level: LevelParameters<Number>) -> Result<[f64; 2], Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        let given = LargestResidualParameters {
            level,
            largest: Address::from(self.words.address()),
        };
        self.launch(&self.largest_residual, level.count as usize, &given)?;
        self.numbers()
    }

    /// Address of the two words that reductions leave numbers in.
    pub fn words(&self) -> u64 {
        self.words.address()
    }

    /// The largest acceleration over the width of a cell.
    pub fn fall_rate(&self, given: &Fall<Number>) -> Result<f64, Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        self.launch(&self.fall, given.count as usize, given)?;
        Ok(self.numbers()?[0])
    }

    fn numbers(&self) -> Result<[f64; 2], Error> {
        let mut words = [0; 2];
        self.device.download(&self.words, 0, &mut words)?;
        Ok(words.map(|bits| match self.double {
            true => f64::from_bits(bits),
            false => f64::from(f32::from_bits(bits as u32)),
        }))
    }
}
