//! Kernels of gravity on a device: levels, the root level and the exterior potential.

use super::direct_solver::DirectSolverKernels;
use super::multipole::MultipoleExpansion;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{Element, Precision};
use nestar_engine::device::{
    Buffer, Device, DeviceError, Kernel, LaunchShape, Module, ReusableBuffer, Segment,
};
use nestar_kernels::gravity::{self, GRAVITY_KERNELS, SlopeParameters};
use nestar_kernels::multigrid::device::{
    CELLS_PER_BLOCK, CoarseCycleParameters, ExteriorTableParameters, LargestResidualParameters,
    LevelParameters, MULTIGRID, MomentsParameters,
};
use nestar_kernels::multigrid::expansion::value_count;
use nestar_kernels::multigrid::exterior::table_length;
use nestar_kernels::multigrid::{device_items, moments};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Threads per block.
const THREADS: u32 = 256;
/// Threads per block of the kernel for the coarse part of a V-cycle.
const THREADS_OF_COARSE_CYCLE: u32 = 512;
/// Cells of one colour in a row of 4^3.
const CELLS_OF_COLOUR: usize = 32;
/// Number of cells of one colour up to which one block performs the coarse part of a V-cycle.
const ITEMS_OF_ONE_BLOCK: usize = 1024;
/// Number of blocks that saturates a device.
const ENOUGH_BLOCKS: usize = 2048;
/// Largest number of patches whose moments one block sums.
const MOST_PATCHES: usize = 32;

/// Returns the number of blocks for cells of corrections.
pub(super) fn blocks(cells: usize) -> usize {
    cells.div_ceil(CELLS_PER_BLOCK)
}

/// Launches a kernel, unless there are no blocks.
fn launch<P: Parameter>(
    device: &Device,
    kernel: &Kernel,
    blocks: usize,
    parameters: &P,
) -> Result<(), Error> {
    if blocks == 0 {
        return Ok(());
    }
    let shape = LaunchShape::of(blocks, THREADS);
    Ok(device.launch(kernel, shape, parameters)?)
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
        parameters: &P,
    ) -> Result<(), Error> {
        launch(&self.device, kernel, blocks, parameters)
    }

    /// Performs the coarse part of a V-cycle of a level.
    pub fn coarse_cycle(&self, parameters: &CoarseCycleParameters<Number>) -> Result<(), Error> {
        let items = parameters.coarse_4.count as usize * CELLS_OF_COLOUR;
        let blocks = match items {
            0..=ITEMS_OF_ONE_BLOCK => 1,
            _ => items.div_ceil(THREADS_OF_COARSE_CYCLE as usize),
        };
        let shape = LaunchShape::together(blocks, THREADS_OF_COARSE_CYCLE);
        Ok(self.device.launch(&self.coarse_cycle, shape, parameters)?)
    }

    /// Uploads a list of rows. Returns its address and length; it is valid until the next call.
    pub fn list(&self, rows: &[u32]) -> Result<(u64, usize), DeviceError> {
        let mut list = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if !rows.is_empty() {
            list.set(&self.device, rows)?;
        }
        Ok((list.address(), rows.len()))
    }

    /// Returns the largest residual of a level, of covered cells too if `covered`, and its largest right-hand side.
    pub fn largest_residual(
        &self,
        level: LevelParameters<Number>,
        covered: bool,
    ) -> Result<[f64; 2], Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        let parameters = LargestResidualParameters {
            level,
            largest: Address::from(self.words.address()),
            covered: covered.into(),
        };
        self.launch(&self.largest_residual, level.count as usize, &parameters)?;
        self.numbers()
    }

    /// Returns the address of the two words for results of reductions.
    pub fn words(&self) -> u64 {
        self.words.address()
    }

    /// Returns the largest acceleration over the cell width.
    pub fn largest_rate_over_width(
        &self,
        parameters: &SlopeParameters<Number>,
    ) -> Result<f64, Error> {
        self.device.fill_zero(&self.words, 0..2)?;
        self.launch(&self.largest_rate, parameters.count as usize, parameters)?;
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

/// Kernels of the root level: moments and the exterior potential.
pub(super) struct RootKernels {
    device: Device,
    words: Buffer<u64>,
    numbers: Mutex<ReusableBuffer<f64>>,
    terms: Mutex<ReusableBuffer<f64>>,
    moments: Kernel,
    shift: Kernel,
    expand: Kernel,
    tabulate: Kernel,
}

impl RootKernels {
    /// Loads the kernels from the compiled module of the solver.
    pub fn new(device: &Device, module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            words: device.buffer(1 + moments::count(moments::MAX_ORDER))?,
            numbers: Mutex::default(),
            terms: Mutex::default(),
            moments: module.kernel("root_moments")?,
            shift: module.kernel("root_shift")?,
            expand: module.kernel("root_expand")?,
            tabulate: module.kernel("root_tabulate")?,
            device: device.clone(),
        })
    }

    fn launch<P: Parameter>(
        &self,
        kernel: &Kernel,
        blocks: usize,
        parameters: &P,
    ) -> Result<(), Error> {
        launch(&self.device, kernel, blocks, parameters)
    }

    /// Returns the bits of the largest sum of absolute values over a patch, then the fixed-point sums of all moments if
    /// there is a factor.
    pub fn moments(&self, parameters: &MomentsParameters<Number>) -> Result<Vec<u64>, Error> {
        let sums = match parameters.factor {
            0.0 => 0,
            _ => moments::count(parameters.order as usize),
        };
        let mut words = vec![0; 1 + sums];
        self.device.fill_zero(&self.words, 0..words.len())?;
        let (rows, each) = (
            parameters.count as usize,
            patches_of_a_block(parameters.count as usize),
        );
        let parameters = MomentsParameters {
            words: self.words.address().into(),
            each: each as i32,
            ..*parameters
        };
        self.launch(&self.moments, rows.div_ceil(each), &parameters)?;
        self.device.download(&self.words, 0, &mut words)?;
        Ok(words)
    }

    /// Subtracts the mean.
    pub fn shift(&self, parameters: &MomentsParameters<Number>) -> Result<(), Error> {
        self.launch(&self.shift, parameters.count as usize, parameters)
    }

    /// Fills the tables around an isolated domain from values.
    pub fn tabulate<R: Element>(
        &self,
        cells: [i32; 3],
        values: &[f64],
        table: &mut ReusableBuffer<R>,
    ) -> Result<(), Error> {
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        kept.set(&self.device, values)?;
        self.tabulate_at(cells, kept.address(), table)
    }

    /// Fills the tables from an expansion; each rank evaluates a part. Collective over all ranks.
    pub fn expand<R: Element>(
        &self,
        cells: [i32; 3],
        others: &Comm,
        expansion: &MultipoleExpansion,
        table: &mut ReusableBuffer<R>,
    ) -> Result<(), Error> {
        let mut kept = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        terms.set(&self.device, expansion.terms.as_flattened())?;
        let values = kept.provide(&self.device, value_count(cells))?;
        let ranks = others.ranks();
        let part = |rank: usize| rank_range(value_count(cells), rank, ranks.size());
        let own = part(ranks.rank());
        let parameters = ExteriorTableParameters {
            values: values.address().into(),
            terms: terms.address().into(),
            first: own.start as i32,
            count: own.len() as i32,
            order: expansion.order as i32,
            half: expansion.half,
            centre: expansion.centre,
            nearest: expansion.nearest(),
            ..around(cells)
        };
        self.launch(
            &self.expand,
            own.len().div_ceil(CELLS_PER_BLOCK),
            &parameters,
        )?;
        let peers = (0..ranks.size()).filter(|&peer| peer != ranks.rank());
        let sends = peers
            .clone()
            .map(|peer| Segment::of(peer, values, own.clone()));
        let receives = peers.map(|peer| Segment::of(peer, values, part(peer)));
        let [sends, receives]: [Vec<Segment>; 2] = [
            sends.collect::<Result<_, _>>()?,
            receives.collect::<Result<_, _>>()?,
        ];
        others.exchange_segments(&sends, &receives)?;
        self.tabulate_at(cells, values.address(), table)
    }

    fn tabulate_at<R: Element>(
        &self,
        cells: [i32; 3],
        values: u64,
        table: &mut ReusableBuffer<R>,
    ) -> Result<(), Error> {
        let count = table_length(cells);
        let parameters = ExteriorTableParameters {
            values: values.into(),
            table: table.provide(&self.device, 2 * count)?.address().into(),
            count: count as i32,
            ..around(cells)
        };
        self.launch(&self.tabulate, count.div_ceil(CELLS_PER_BLOCK), &parameters)
    }
}

/// Returns empty parameters for a domain of root cells.
fn around(cells: [i32; 3]) -> ExteriorTableParameters<Number> {
    ExteriorTableParameters {
        values: Address::NONE,
        table: Address::NONE,
        terms: Address::NONE,
        first: 0,
        count: 0,
        order: 0,
        cells,
        half: [0.0; 3],
        centre: [0.0; 3],
        nearest: 0.0,
    }
}

/// Returns the number of patches per block.
fn patches_of_a_block(patches: usize) -> usize {
    patches.div_ceil(ENOUGH_BLOCKS).clamp(1, MOST_PATCHES)
}

/// Returns the range of values around the domain that a rank evaluates.
pub(super) fn rank_range(values: usize, rank: usize, size: usize) -> Range<usize> {
    values * rank / size..values * (rank + 1) / size
}
