//! The gas on a device: the step of a level and its limit, by kernels that read and write the pool where it lives.

mod mending;

use super::HydroConfig;
use super::capture::{self, Given, StepResult};
use crate::fields::{Gas, GasModel, MassFlux};
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::Precision;
use nestar_engine::data::device::{DevicePool, DeviceTopology};
use nestar_engine::device::{
    Buffer, Device, DeviceError, DeviceLimits, Growable, Kernel, LaunchShape,
};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{FieldView, Write};
use nestar_kernels::CELLS;
use nestar_kernels::hydro::solver::device::{
    FluidProgram, RATES, RateParameters, STEP, Status, StepParameters,
};

/// Threads of a block: a face of each axis for each thread.
const THREADS: u32 = 576;
/// Rows that a block of `signal_rates` looks after.
const ROWS_PER_BLOCK: u32 = 16;
/// The parameters of the kernel `fluid_step`.
type Step = StepParameters<Number>;

/// The same for a part of the level.
fn on(step: &Step, rows: &RowList) -> Step {
    Step {
        rows: rows.device_list.into(),
        count: rows.rows.len() as i32,
        ..*step
    }
}

/// A kernel of the fluid step with what it needs to be launched.
struct StepKernel {
    kernel: Kernel,
    shared: u32,
    /// Blocks and their scratch, where that does not fit into shared memory.
    scratch: Option<(u32, Buffer<u64>)>,
}

/// The gas solver on a device.
pub struct GasDevice {
    device: Device,
    program: FluidProgram,
    courant: f64,
    step: StepKernel,
    /// Compiled when the first cell needs it.
    mend: Option<StepKernel>,
    signal_rates: Kernel,
    collect: Kernel,
    /// Per row: the largest signal rate, in the run's precision.
    rates: Growable<u64>,
    /// Per row: cells whose latest update came out unphysical.
    unphysical: Growable<u32>,
    /// Per row: cells that take first-order fluxes in the step being mended.
    first_order: Growable<u32>,
    status: Buffer<Status>,
    /// What is known of each level.
    known: Vec<Known>,
}

/// What is known of a level.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The pool's count of changes of the level for which the rates of the rows hold that are not marked as changed.
    changes: u64,
    /// The largest rate at that count.
    rate: Option<f64>,
}

impl GasDevice {
    /// Compiles the kernels for the method of the deck.
    ///
    /// # Errors
    /// The compiler's messages; memory that does not suffice.
    pub fn new(
        config: &HydroConfig,
        model: &GasModel,
        pool: &DevicePool,
        (courant, mass_fluxes): (f64, bool),
        levels: usize,
    ) -> Result<Self, Error> {
        let device = pool.device().clone();
        let mut program = FluidProgram {
            method: config.method(),
            gamma: model.gamma,
            scalars: model.scalars.len(),
            double: pool.precision() == Precision::Double,
            first_order_fallback: false,
            mass_fluxes,
            in_shared: false,
            threads: THREADS,
            blocks: 1,
        };
        program.blocks = blocks_per_multiprocessor(&program, &device.limits());
        program.in_shared = fits(&program, &device.limits(), 1);
        let source = pool.program(&program.items(), &[&program.text(), STEP, RATES]);
        let module = device.compile("fluid", &source)?;
        let rows = pool.most_rows();
        Ok(Self {
            step: StepKernel::new(&device, module.kernel("fluid_step")?, &program)?,
            mend: None,
            signal_rates: module.kernel("signal_rates")?,
            collect: module.kernel("collect_first_order")?,
            rates: device.growable(rows)?,
            unphysical: device.growable(16 * rows)?,
            first_order: device.growable(16 * rows)?,
            status: device.buffer(1)?,
            known: vec![Known::default(); levels],
            device,
            program,
            courant,
        })
    }

    /// Makes room for `rows` rows.
    fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.rates.grow(rows)?;
        self.unphysical.grow(16 * rows)?;
        self.first_order.grow(16 * rows)
    }

    /// Bytes a row takes beside the pool.
    #[must_use]
    pub const fn bytes_per_row() -> usize {
        size_of::<u64>() + 32 * size_of::<u32>()
    }

    /// The longest step of the level that the Courant number allows.
    pub(super) fn limit(
        &mut self,
        clock: &LevelClock,
        topology: &Topology,
        tables: &DeviceTopology,
        gas: &FieldView<Gas>,
    ) -> Result<f64, DeviceError> {
        let changes = gas.changes();
        let known = self.known[clock.level];
        let rate = match known.rate.filter(|_| known.changes == changes) {
            Some(rate) => rate,
            None => self.renew_rates(clock, topology, tables, gas)?,
        };
        self.known[clock.level] = Known {
            changes,
            rate: Some(rate),
        };
        Ok(self.courant / rate)
    }

    /// Signal rates of the rows that changed; the level's largest.
    fn renew_rates(
        &mut self,
        clock: &LevelClock,
        topology: &Topology,
        tables: &DeviceTopology,
        gas: &FieldView<Gas>,
    ) -> Result<f64, DeviceError> {
        self.grow(topology.capacity())?;
        self.device.fill_zero(&self.status, 0..1)?;
        let count = topology.rows(clock.level).len() as u32;
        let parameters = RateParameters::<Number> {
            level: gas.device().bank(gas.banks()[0]).into(),
            rows: tables.rows(clock.level).into(),
            rates: self.rates.address().into(),
            stale: gas.device().stale().into(),
            status: self.status.address().into(),
            inverse_dx: clock.cell_width.map(|w| 1.0 / w),
            count: count as i32,
            all: i32::from(gas.any_row_changed_since(self.known[clock.level].changes)),
        };
        let shape = LaunchShape {
            blocks: count.div_ceil(ROWS_PER_BLOCK),
            threads: 128,
            shared: 0,
        };
        self.device.launch(&self.signal_rates, shape, &parameters)?;
        let status = self.status()?;
        Ok(self.rate_of(status))
    }

    fn status(&self) -> Result<Status, DeviceError> {
        let mut status = [Status::default()];
        self.device.download(&self.status, 0, &mut status)?;
        Ok(status[0])
    }

    fn rate_of(&self, status: Status) -> f64 {
        if self.program.double {
            f64::from_bits(status.largest_rate)
        } else {
            f64::from(f32::from_bits(status.largest_rate as u32))
        }
    }

    /// Advances the level into the next bank, which becomes the present one; the number of mended cells.
    pub(super) fn advance(
        &mut self,
        (clock, topology, wanted): Given,
        tables: &DeviceTopology,
        gas: &mut Write<Gas>,
        mass: Option<&FieldView<MassFlux>>,
        ranks: &mut Comm,
    ) -> StepResult<u64> {
        // no memory is asked for while copies are under way
        self.grow(topology.capacity())?;
        let split = gas.begin_refresh(ranks)?;
        self.device.fill_zero(&self.status, 0..1)?;
        if let Some(split) = &split {
            let view = gas.interior(split);
            let parameters = self.parameters((clock, topology), tables, &view, mass);
            self.step_rows(&on(&parameters, &split.interior), &view)?;
        }
        gas.finish_refresh(ranks)?;
        let view = gas.get(self.program.method.ghosts())?;
        let parameters = self.parameters((clock, topology), tables, &view, mass);
        match &split {
            Some(split) => self.step_rows(&on(&parameters, &split.boundary), &view)?,
            None => self.step_rows(&parameters, &view)?,
        }
        let status = self.status()?;
        if let Some(message) = view.device().fault()? {
            return Err(Error::Setup(message).into());
        }
        let mended = if ranks.any(status.unphysical > 0)? {
            capture::mended(&view, clock, wanted, ranks, |watch| {
                if watch.again {
                    self.step_rows(&parameters, &view)?;
                }
                self.mend(parameters, clock, topology, &view, ranks, watch)
            })?
        } else {
            0
        };
        gas.commit()?;
        self.known[clock.level] = Known {
            changes: gas.own().changes(),
            // the rate of a mended level is made from those of its rows
            rate: (mended == 0).then(|| self.rate_of(status)),
        };
        Ok(mended)
    }

    /// Starts the step of the rows that `parameters` lists.
    fn step_rows(&self, parameters: &Step, gas: &FieldView<Gas>) -> Result<(), DeviceError> {
        let rows = parameters.count as usize;
        let row = gas.components() * CELLS * self.program.value_bytes();
        self.step.kernel.count_work(rows * CELLS, 2 * rows * row);
        self.step.launch(&self.device, parameters)
    }

    fn parameters(
        &self,
        (clock, topology): (&LevelClock, &Topology),
        tables: &DeviceTopology,
        gas: &FieldView<Gas>,
        mass: Option<&FieldView<MassFlux>>,
    ) -> Step {
        let level = clock.level;
        let device_pool = gas.device();
        StepParameters {
            view: gas.on_device(),
            registers: device_pool.register_view(level),
            next: device_pool.bank(gas.banks()[1]).into(),
            mass: mass.map_or(Address::NONE, |mass| mass.device().bank(0).into()),
            rows: tables.rows(level).into(),
            rates: self.rates.address().into(),
            unphysical: self.unphysical.address().into(),
            first_order: Address::NONE,
            stale: device_pool.stale().into(),
            scratch: Address::NONE,
            status: self.status.address().into(),
            rate: clock.cell_width.map(|w| clock.dt / w),
            inverse_dx: clock.cell_width.map(|w| 1.0 / w),
            count: topology.rows(level).len() as i32,
        }
    }
}

impl StepKernel {
    fn new(device: &Device, kernel: Kernel, program: &FluidProgram) -> Result<Self, DeviceError> {
        let limits = device.limits();
        let bytes = program.scratch() * program.value_bytes();
        if program.in_shared {
            return Ok(Self {
                kernel,
                shared: bytes as u32,
                scratch: None,
            });
        }
        let blocks = limits.multiprocessors * program.blocks;
        let scratch = device.buffer((bytes * blocks as usize).div_ceil(size_of::<u64>()))?;
        Ok(Self {
            kernel,
            shared: 0,
            scratch: Some((blocks, scratch)),
        })
    }

    fn launch(&self, device: &Device, parameters: &Step) -> Result<(), DeviceError> {
        let mut parameters = *parameters;
        let mut blocks = parameters.count as u32;
        if let Some((most, scratch)) = &self.scratch {
            blocks = blocks.min(*most);
            parameters.scratch = scratch.address().into();
        }
        let shape = LaunchShape {
            blocks,
            threads: THREADS,
            shared: self.shared,
        };
        device.launch(&self.kernel, shape, &parameters)
    }
}

/// Whether `blocks` blocks have their scratch in the shared memory of a multiprocessor.
fn fits(program: &FluidProgram, limits: &DeviceLimits, blocks: u32) -> bool {
    // masks and the reduction over a block
    const DECLARED: u32 = 1024;
    let bytes = (program.scratch() * program.value_bytes()) as u32 + DECLARED;
    bytes <= limits.shared_per_block
        && blocks * (bytes + limits.shared_reserved_per_block) <= limits.shared_per_multiprocessor
}

/// Blocks that share a multiprocessor: two where scratch and registers suffice.
fn blocks_per_multiprocessor(program: &FluidProgram, limits: &DeviceLimits) -> u32 {
    let threads = 2 * THREADS <= limits.threads_per_multiprocessor;
    let in_global = !fits(program, limits, 1);
    // in double precision two blocks would leave each thread too few registers
    if threads && !program.double && (in_global || fits(program, limits, 2)) {
        2
    } else {
        1
    }
}
