//! Gas solver on a device: kernels for the update of a level and its time-step limit, on the pool in device memory.

mod faces;
mod fallback;

use super::HydroConfig;
use super::capture::{self, ExtraFields, LevelInput, StageContext, StepResult, StepTotals};
use super::stages::LevelStage;
use crate::fields::{Gas, GasModel, MagneticFaces, MassFlux};
use faces::{FaceGather, FieldKernels};
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::Precision;
use nestar_engine::data::device::{DevicePool, DeviceTopology, RegisterView};
use nestar_engine::device::{
    Buffer, Device, DeviceError, DeviceLimits, Growable, Kernel, LaunchShape,
};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{FieldView, Write};
use nestar_kernels::CELLS;
use nestar_kernels::hydro::solver::device::{
    FluidProgram, RATES, RateParameters, STEP, ScratchPlacement, ScratchSize, Status,
    StepParameters,
};
use nestar_kernels::hydro::{FluidMethod, Replacements};

/// Threads per block: each has one face per axis.
const THREADS: u32 = 576;
/// Threads per block with a field on faces. Two blocks of a multiprocessor have all registers that a thread needs.
const THREADS_WITH_FACES: u32 = 512;
/// Rows per block of the kernel `signal_rates`.
const ROWS_PER_BLOCK: u32 = 16;
/// Parameters of the kernel `fluid_step`.
type StepKernelParameters = StepParameters<Number>;

/// Returns the parameters for a part of the level.
fn on(step: &StepKernelParameters, rows: &RowList) -> StepKernelParameters {
    StepKernelParameters {
        rows: rows.device_list.into(),
        count: rows.rows.len() as i32,
        ..*step
    }
}

/// A kernel of the gas update and its launch configuration.
struct StepKernel {
    kernel: Kernel,
    threads: u32,
    /// Bytes of shared memory of a block.
    shared: u32,
    /// Number of blocks and their scratch in global memory, if there is any.
    scratch: Option<(u32, Buffer<u64>)>,
}

/// Gas solver on a device.
pub struct GasDevice {
    device: Device,
    program: FluidProgram,
    courant: f64,
    step: StepKernel,
    /// Kernel of the first-order fallback, compiled when first needed.
    fallback: Option<StepKernel>,
    /// Gathers the magnetic field on faces, if there is one.
    faces: Option<FaceGather>,
    /// Other kernels on that field.
    field: Option<FieldKernels>,
    signal_rates: Kernel,
    collect: Kernel,
    /// Per row: largest signal rate, in the precision of the run.
    rates: Growable<u64>,
    /// Per row: cells with an unphysical state after the latest update.
    unphysical: Growable<u32>,
    /// Per row: number of cells in which the internal energy replaced the total one in the latest update.
    replaced: Growable<u32>,
    /// Per row: sum of the changes of their energy densities, in the precision of the run.
    gains: Growable<u64>,
    /// Per row: cells that use first-order fluxes in the step being corrected.
    first_order: Growable<u32>,
    status: Buffer<Status>,
    /// Cached signal rate of each level.
    known: Vec<KnownRate>,
}

/// Result of a stage of a step.
#[derive(Clone, Copy)]
struct StageDone {
    /// Number of corrected cells.
    corrected: u64,
    /// `false` if the internal energy replaced the total one in no cell.
    replaces: bool,
    /// Largest signal rate of the new state, if it is known.
    rate: Option<f64>,
}

/// Cached signal rate of a level.
#[derive(Clone, Copy, Default)]
struct KnownRate {
    /// Change count of the level in the pool at which the rates of unmarked rows are valid.
    changes: u64,
    /// Largest rate at that count.
    rate: Option<f64>,
}

impl GasDevice {
    /// Compiles the kernels for the method of the deck.
    ///
    /// # Errors
    /// Compiler messages; not enough memory.
    pub fn new(
        config: &HydroConfig,
        model: &GasModel,
        (pool, faces): (&DevicePool, Option<&DevicePool>),
        courant: f64,
        mass_fluxes: bool,
        levels: usize,
    ) -> Result<Self, Error> {
        let device = pool.device().clone();
        let mut program = FluidProgram {
            method: config.method(),
            law: model.law,
            scalars: model.scalars.len(),
            double: pool.precision() == Precision::Double,
            first_order_fallback: false,
            mass_fluxes,
            placement: ScratchPlacement::Global,
            threads: threads(&config.method()),
            blocks: 1,
        };
        program.placement = placement(&program, &device.limits());
        program.blocks = blocks_per_multiprocessor(&program, &device.limits());
        let source = pool.program(&program.items(), &[&program.text(), STEP, RATES]);
        let module = device.compile("fluid", &source)?;
        let rows = pool.most_rows();
        Ok(Self {
            step: StepKernel::new(&device, module.kernel("fluid_step")?, &program)?,
            fallback: None,
            faces: faces
                .map(|faces| FaceGather::new(faces, program.method.ghosts()))
                .transpose()?,
            field: faces
                .map(|_| FieldKernels::new(&device, &module, rows))
                .transpose()?,
            signal_rates: module.kernel("signal_rates")?,
            collect: module.kernel("collect_first_order")?,
            rates: device.growable(rows)?,
            unphysical: device.growable(16 * rows)?,
            replaced: device.growable(rows)?,
            gains: device.growable(rows)?,
            first_order: device.growable(16 * rows)?,
            status: device.buffer(1)?,
            known: vec![KnownRate::default(); levels],
            device,
            program,
            courant,
        })
    }

    /// Allocates memory for `rows` rows.
    fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.rates.grow(rows)?;
        self.unphysical.grow(16 * rows)?;
        self.replaced.grow(rows)?;
        self.gains.grow(rows)?;
        self.first_order.grow(16 * rows)
    }

    /// Returns the number of ghost layers that a step reads.
    pub(super) fn ghosts(&self) -> usize {
        self.program.method.ghosts()
    }

    /// Gives the cells of `rows` the means of the magnetic field over their faces. Returns the rows that are left as they are, because a cell would
    /// lose its pressure.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn update_cell_fields(
        &mut self,
        rows: &[u32],
        gas: &FieldView<Gas>,
        field: &FieldView<MagneticFaces>,
    ) -> Result<Vec<u32>, DeviceError> {
        match &mut self.field {
            Some(kernels) => kernels.apply(&self.device, rows, gas, field),
            None => Ok(rows.to_vec()),
        }
    }

    /// Returns the largest divergence times the smallest cell width, and the largest magnetic field on a face, in rows of a bank of that field;
    /// `part` is the smallest cell width over that along each axis.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn face_extremes(
        &mut self,
        rows: &[u32],
        bank: u64,
        part: [f64; 3],
    ) -> Result<[f64; 2], DeviceError> {
        match &mut self.field {
            Some(kernels) => kernels.extremes(&self.device, rows, bank, part),
            None => Ok([0.0; 2]),
        }
    }

    /// Returns the Courant number.
    pub(super) fn courant(&self) -> f64 {
        self.courant
    }

    /// Returns the largest signal rate of the patches of the level on this rank.
    pub(super) fn largest_rate(
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
        self.known[clock.level] = KnownRate {
            changes,
            rate: Some(rate),
        };
        Ok(rate)
    }

    /// Updates the signal rates of changed rows. Returns the largest rate of the level.
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
        let shape = LaunchShape::of(count.div_ceil(ROWS_PER_BLOCK) as usize, 128);
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

    /// Advances the level into the next bank, which becomes the present one. Returns its totals.
    pub(super) fn advance(
        &mut self,
        input: LevelInput,
        tables: &DeviceTopology,
        gas: &mut Write<Gas>,
        extra: ExtraFields,
        ranks: &mut Comm,
    ) -> StepResult<StepTotals> {
        // no allocation while halo messages are in flight
        self.grow(input.topology.capacity())?;
        let (mut totals, mut rate) = (StepTotals::default(), None);
        for (time, stage) in LevelStage::of(self.program.method.scheme) {
            gas.begin_stage(stage.share.stage, time);
            let done = self.advance_stage(&input, tables, gas, extra, stage, ranks)?;
            totals.corrected += done.corrected;
            rate = done.rate;
            if self.program.method.dual.is_some() {
                self.add_replacements(&input, stage, done, &mut totals)?;
            }
        }
        gas.commit()?;
        self.known[input.clock.level] = KnownRate {
            changes: gas.own().changes(),
            rate,
        };
        Ok(totals)
    }

    /// Adds what the dual-energy formalism did in a stage.
    fn add_replacements(
        &self,
        input: &LevelInput,
        stage: LevelStage,
        done: StageDone,
        totals: &mut StepTotals,
    ) -> Result<(), DeviceError> {
        let (mut cells, mut gains) = (Vec::<u32>::new(), Vec::<u64>::new());
        if done.replaces {
            let rows = input.topology.capacity();
            cells.resize(rows, 0);
            gains.resize((rows * self.program.value_bytes()).div_ceil(8), 0);
            self.device.download(&self.replaced, 0, &mut cells)?;
            self.device.download(&self.gains, 0, &mut gains)?;
        }
        let gain = |row: usize| match self.program.double {
            true => gains.get(row).map_or(0.0, |bits| f64::from_bits(*bits)),
            false => {
                let bits = gains
                    .get(row / 2)
                    .map_or(0, |bits| bits >> (32 * (row % 2)));
                f64::from(f32::from_bits(bits as u32))
            }
        };
        let of_row = |row: u32| Replacements {
            cells: cells.get(row as usize).copied().unwrap_or(0),
            gain: gain(row as usize),
        };
        let place = (input.topology, input.clock.level);
        totals.replacements.add_stage(place, stage, of_row);
        Ok(())
    }

    /// Advances the level by one stage.
    fn advance_stage(
        &mut self,
        input: &LevelInput,
        tables: &DeviceTopology,
        gas: &mut Write<Gas>,
        extra: ExtraFields,
        stage: LevelStage,
        ranks: &mut Comm,
    ) -> StepResult<StageDone> {
        let LevelInput {
            clock,
            topology,
            capture,
            ..
        } = *input;
        let split = gas.begin_refresh(ranks, clock.level)?;
        self.device.fill_zero(&self.status, 0..1)?;
        if let Some(split) = &split {
            let view = gas.interior(clock.level, split);
            let parameters = self.parameters(input, tables, &view, extra, stage);
            self.step_rows(&on(&parameters, &split.interior), &view)?;
        }
        gas.finish_refresh(ranks, clock.level)?;
        let view = gas.get(self.program.method.ghosts())?;
        let parameters = self.parameters(input, tables, &view, extra, stage);
        match &split {
            Some(split) => self.step_rows(&on(&parameters, &split.boundary), &view)?,
            None => self.step_rows(&parameters, &view)?,
        }
        let status = self.status()?;
        let of_field = extra
            .field
            .map(|field| field.device().fault())
            .transpose()?;
        if let Some(message) = view.device().fault()?.or(of_field.flatten()) {
            return Err(Error::Setup(message).into());
        }
        if !ranks.any(status.unphysical > 0)? {
            return Ok(StageDone {
                corrected: 0,
                replaces: status.replaced > 0,
                rate: Some(self.rate_of(status)),
            });
        }
        let faces = extra.field.map(|field| (field, self.ghosts()));
        let attempt = StageContext::of(input, stage.share.stage, faces);
        let corrected = capture::apply_fallback(&view, attempt, capture, ranks, |log| {
            if log.repeat {
                self.step_rows(&parameters, &view)?;
            }
            self.first_order_fallback(parameters, attempt, topology, &view, ranks, log)
        })?;
        // the rate of a corrected level is computed from its rows
        Ok(StageDone {
            corrected,
            replaces: true,
            rate: (corrected == 0).then(|| self.rate_of(status)),
        })
    }

    /// Launches the update of the rows in `parameters`.
    fn step_rows(
        &self,
        parameters: &StepKernelParameters,
        gas: &FieldView<Gas>,
    ) -> Result<(), DeviceError> {
        let rows = parameters.count as usize;
        let row = gas.components() * CELLS * self.program.value_bytes();
        self.step.kernel.count_work(rows * CELLS, 2 * rows * row);
        self.launch(&self.step, parameters)
    }

    /// Launches a kernel that advances the rows in `parameters`. With a magnetic field on faces, these are gathered before.
    fn launch(
        &self,
        kernel: &StepKernel,
        parameters: &StepKernelParameters,
    ) -> Result<(), DeviceError> {
        let Some(faces) = &self.faces else {
            return kernel.launch(&self.device, parameters);
        };
        faces.in_parts(parameters, |part| kernel.launch(&self.device, part))
    }

    fn parameters(
        &self,
        input: &LevelInput,
        tables: &DeviceTopology,
        gas: &FieldView<Gas>,
        extra: ExtraFields,
        stage: LevelStage,
    ) -> StepKernelParameters {
        let LevelInput {
            clock,
            topology,
            cleaning,
            ..
        } = input;
        let level = clock.level;
        let device_pool = gas.device();
        let [registers, earlier] = match stage.is_one_of_several() {
            true => device_pool.stage_views(level, stage.share),
            false => [device_pool.register_view(level), RegisterView::default()],
        };
        let bank = |mass: &FieldView<MassFlux>, n: usize| mass.device().bank(n).into();
        let [mass, mass_before] = match extra.mass {
            None => [Address::NONE; 2],
            Some(mass) if stage.is_one_of_several() => {
                stage.in_order([bank(mass, 0), bank(mass, 1)])
            }
            Some(mass) => [bank(mass, 0), Address::NONE],
        };
        let after_first = |address: Address<Number>| match stage.is_first() {
            true => Address::NONE,
            false => address,
        };
        let view = gas.on_device();
        StepParameters {
            view,
            registers,
            field: faces::parameters(extra.field, level, view),
            next: device_pool.bank(gas.stage_bank(stage.share.stage)).into(),
            mass,
            before: after_first(device_pool.bank(gas.banks()[0]).into()),
            earlier,
            mass_before: after_first(mass_before),
            rows: tables.rows(level).into(),
            rates: self.rates.address().into(),
            unphysical: self.unphysical.address().into(),
            first_order: Address::NONE,
            stale: device_pool.stale().into(),
            replaced: self.replaced.address().into(),
            gains: self.gains.address().into(),
            scratch: Address::NONE,
            status: self.status.address().into(),
            rate: clock.cell_width.map(|w| clock.dt / w),
            weight: stage.weight,
            share: stage.share.share,
            cleaning_speed: cleaning.speed,
            damping: cleaning.damping,
            inverse_dx: clock.cell_width.map(|w| 1.0 / w),
            count: topology.rows(level).len() as i32,
        }
    }
}

impl StepKernel {
    fn new(device: &Device, kernel: Kernel, program: &FluidProgram) -> Result<Self, DeviceError> {
        let ScratchSize { shared, global } = program.scratch();
        let blocks = device.limits().multiprocessors * program.blocks;
        let bytes = global * program.value_bytes() * blocks as usize;
        let scratch = match global {
            0 => None,
            _ => Some((blocks, device.buffer(bytes.div_ceil(size_of::<u64>()))?)),
        };
        Ok(Self {
            kernel,
            threads: program.threads,
            shared: (shared * program.value_bytes()) as u32,
            scratch,
        })
    }

    fn launch(
        &self,
        device: &Device,
        parameters: &StepKernelParameters,
    ) -> Result<(), DeviceError> {
        let mut parameters = *parameters;
        let mut blocks = parameters.count as u32;
        if let Some((most, scratch)) = &self.scratch {
            blocks = blocks.min(*most);
            parameters.scratch = scratch.address().into();
        }
        let shape = LaunchShape {
            shared: self.shared,
            ..LaunchShape::of(blocks as usize, self.threads)
        };
        device.launch(&self.kernel, shape, &parameters)
    }
}

/// Returns `true` if the scratch memory of `blocks` blocks fits into the shared memory of a multiprocessor.
fn fits(program: &FluidProgram, limits: &DeviceLimits, blocks: u32) -> bool {
    // masks and block reduction
    const DECLARED: u32 = 1536;
    let bytes = (program.scratch().shared * program.value_bytes()) as u32 + DECLARED;
    bytes <= limits.shared_per_block
        && blocks * (bytes + limits.shared_reserved_per_block) <= limits.shared_per_multiprocessor
}

/// Returns the threads of a block.
fn threads(method: &FluidMethod) -> u32 {
    match method.has_face_field() {
        true => THREADS_WITH_FACES,
        false => THREADS,
    }
}

/// Returns the placement with the most scratch in shared memory.
fn placement(program: &FluidProgram, limits: &DeviceLimits) -> ScratchPlacement {
    let placements = [ScratchPlacement::Shared, ScratchPlacement::Split];
    let fitting = placements.into_iter().find(|&placement| {
        let placed = FluidProgram {
            placement,
            ..*program
        };
        fits(&placed, limits, 1)
    });
    fitting.unwrap_or(ScratchPlacement::Global)
}

/// Returns the number of blocks per multiprocessor: two if scratch memory and registers suffice.
fn blocks_per_multiprocessor(program: &FluidProgram, limits: &DeviceLimits) -> u32 {
    let threads = 2 * program.threads <= limits.threads_per_multiprocessor;
    // in double precision two blocks would leave too few registers per thread
    if threads && !program.double && fits(program, limits, 2) {
        2
    } else {
        1
    }
}
