//! Kernels of the root level on a device, except those of its coarsest grid.

use super::exterior_layout::{rank_range, value_count};
use super::multipole::MultipoleExpansion;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::comm::Comm;
use nestar_engine::data::Element;
use nestar_engine::device::{
    Buffer, Device, DeviceError, Kernel, LaunchShape, Module, ReusableBuffer, Segment,
};
use nestar_kernels::multigrid::device::{
    CELLS_PER_BLOCK, ExteriorTableParameters, MomentsParameters,
};
use nestar_kernels::multigrid::exterior::table_length;
use nestar_kernels::multigrid::moments;
use std::sync::{Mutex, PoisonError};

/// Threads per block.
const THREADS: u32 = 256;
/// Number of blocks that saturates a device.
const ENOUGH_BLOCKS: usize = 2048;
/// Largest number of patches whose moments one block sums.
const MOST_PATCHES: usize = 32;

/// Kernels for moments and the exterior potential.
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

    fn launch<P: Parameter>(&self, kernel: &Kernel, blocks: usize, given: &P) -> Result<(), Error> {
        if blocks == 0 {
            return Ok(());
        }
        let shape = LaunchShape::of(blocks, THREADS);
        Ok(self.device.launch(kernel, shape, given)?)
    }

    /// Returns the bits of the largest sum of absolute values over a patch, then the fixed-point sums of all moments if
    /// there is a factor.
    pub fn moments(&self, given: &MomentsParameters<Number>) -> Result<Vec<u64>, Error> {
        let sums = match given.factor {
            0.0 => 0,
            _ => moments::count(given.order as usize),
        };
        let mut words = vec![0; 1 + sums];
        self.device.fill_zero(&self.words, 0..words.len())?;
        let (rows, each) = (
            given.count as usize,
            patches_of_a_block(given.count as usize),
        );
        let given = MomentsParameters {
            words: self.words.address().into(),
            each: each as i32,
            ..*given
        };
        self.launch(&self.moments, rows.div_ceil(each), &given)?;
        self.device.download(&self.words, 0, &mut words)?;
        Ok(words)
    }

    /// Subtracts the mean.
    pub fn shift(&self, given: &MomentsParameters<Number>) -> Result<(), Error> {
        self.launch(&self.shift, given.count as usize, given)
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
        let given = ExteriorTableParameters {
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
        self.launch(&self.expand, own.len().div_ceil(CELLS_PER_BLOCK), &given)?;
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
        let given = ExteriorTableParameters {
            values: values.into(),
            table: table.provide(&self.device, 2 * count)?.address().into(),
            count: count as i32,
            ..around(cells)
        };
        self.launch(&self.tabulate, count.div_ceil(CELLS_PER_BLOCK), &given)
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
