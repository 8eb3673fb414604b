//! Kernels of gravity on a device.

use super::direct_solver::DirectSolverKernels;
use super::root_kernels::RootKernels;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::data::Precision;
use nestar_engine::data::device::DevicePool;
use nestar_engine::device::{Buffer, Device, DeviceError, Kernel, LaunchShape, ReusableBuffer};
use nestar_kernels::gravity::{self, GRAVITY_KERNELS, SlopeParameters};
use nestar_kernels::multigrid::device::{
    CELLS_PER_BLOCK, CoarseCycleParameters, LargestResidualParameters, LevelParameters, MULTIGRID,
};
use nestar_kernels::multigrid::device_items;
use std::sync::{Mutex, PoisonError};

/// Threads per block.
const THREADS: u32 = 256;
/// Threads of a block that does all the work.
const THREADS_OF_SINGLE_BLOCK: u32 = 1024;

/// Returns the number of blocks for cells of corrections.
pub(super) fn blocks(cells: usize) -> usize {
    cells.div_ceil(CELLS_PER_BLOCK)
}

/// Kernels of gravity.
pub(super) struct GravityKernels {
    device: Device,
    double: bool,
    words: Buffer<u64>,
    rows: Mutex<ReusableBuffer<u32>>,
    pub relax: Kernel,
    pub restrict_residual: Kernel,
    pub add_change: Kernel,
    pub copy: Kernel,
    pub restrict_solution: Kernel,
    pub restrict_fine_residual: Kernel,
    pub tau: Kernel,
    pub kick: Kernel,
    pub accelerate: Kernel,
    pub work: Kernel,
    largest_residual: Kernel,
    largest_rate: Kernel,
    /// Kernels of the root level.
    pub root: RootKernels,
    /// Kernels of its coarsest grid.
    pub direct: DirectSolverKernels,
    coarse_cycle: Kernel,
    /// For rows of 4^3, 2^3 and 1 cells.
    pub relax_coarse: [Kernel; 3],
    /// From rows of 4^3 and 2^3 cells.
    pub restrict_coarse: [Kernel; 2],
    /// To rows of 8^3, 4^3 and 2^3 cells.
    pub prolong: [Kernel; 3],
}

impl GravityKernels {
    /// Compiles the kernels for the pool of the potential.
    ///
    /// # Errors
    /// Compiler messages; not enough memory.
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
            copy: kernel("level_copy")?,
            restrict_solution: kernel("composite_restrict_solution")?,
            restrict_fine_residual: kernel("composite_restrict_residual")?,
            tau: kernel("composite_tau")?,
            kick: kernel("gravity_kick")?,
            accelerate: kernel("gravity_accelerate")?,
            work: kernel("gravity_flux_work")?,
            largest_rate: kernel("gravity_largest_rate")?,
            root: RootKernels::new(&device, &module)?,
            direct: DirectSolverKernels::new(&device, &module)?,
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

    /// Launches a kernel, unless there are no blocks.
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

    /// Performs the coarse part of a V-cycle of a small level in one block.
    pub fn coarse_cycle(&self, given: &CoarseCycleParameters<Number>) -> Result<(), Error> {
        let shape = LaunchShape::of(1, THREADS_OF_SINGLE_BLOCK);
        Ok(self.device.launch(&self.coarse_cycle, shape, given)?)
    }

    /// Uploads a list of rows. Returns its address and length; it is valid until the next call.
    pub fn list(&self, rows: &[u32]) -> Result<(u64, usize), DeviceError> {
        let mut list = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if !rows.is_empty() {
            list.set(&self.device, rows)?;
        }
        Ok((list.address(), rows.len()))
    }

    /// Returns the largest residual of the leaves of a level, and the largest right-hand side of the level.
    pub fn largest_residual(&self, level: LevelParameters<Number>) -> Result<[f64; 2], Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        let given = LargestResidualParameters {
            level,
            largest: Address::from(self.words.address()),
        };
        self.launch(&self.largest_residual, level.count as usize, &given)?;
        self.numbers()
    }

    /// Returns the address of the two words for results of reductions.
    pub fn words(&self) -> u64 {
        self.words.address()
    }

    /// Returns the largest acceleration over the cell width.
    pub fn largest_rate_over_width(&self, given: &SlopeParameters<Number>) -> Result<f64, Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        self.launch(&self.largest_rate, given.count as usize, given)?;
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
