//! The pool of a field: banks of rows with a clock per level, and gathers of patches with their ghost cells.

use super::Precision;
use super::device::{DevicePool, DeviceTopology, DeviceView};
use super::field_spec::{BoundaryCondition, Correct, Element, FieldSpec};
use super::level::LevelView;
use super::storage::{Storage, TypedPool, with_storage};
use bevy_ecs::prelude::*;
use nestar_engine_device::{Device, DeviceError};
use nestar_engine_mesh::Topology;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::gather::{GatherTarget, gather_sectors};
use nestar_kernels::mesh::{Centring, GatherScratch, GhostView, Rows, gather_faces};
use std::marker::PhantomData;

/// A bank with the simulation time of its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankTime {
    pub bank: usize,
    pub time: f64,
}

/// A registered field: a marker type that identifies its pool.
pub trait Field: Send + Sync + 'static {
    /// Name in messages.
    const NAME: &'static str;
}

/// Pool of field `F`: rows `[component][8][8][8]` (or as its centring says), one per patch, in several banks.
/// The first one or two banks are time levels, before and after a step of the level; the others are scratch memory.
///
/// Systems access it by the parameters `Read` and `Write` only, which check that the halo is valid. Code with access
/// to the world uses [`Pool::of`].
pub struct Pool<F: Field> {
    /// Declaration of the field.
    pub spec: FieldSpec,
    /// Values of the field.
    pub(super) storage: Storage,
    pub(super) clocks: Vec<BankClock>,
    pub(super) changes: Vec<ChangeCounts>,
    pub(super) epochs: Vec<u32>,
    /// `true` if an update reads neighbouring cells, so that results need a buffer.
    pub(super) keeps_results: bool,
    marker: PhantomData<F>,
}

/// Times and halo state of the banks of a level.
#[derive(Clone, Debug)]
pub(super) struct BankClock {
    /// Bank with the present state.
    pub(super) current: usize,
    /// Simulation time of the first two banks.
    pub(super) times: [f64; 2],
    /// State that gathers read during the stages of a step.
    pub(super) stage: Option<BankTime>,
    /// Number of valid halo layers per bank, equal on all ranks. Also kept on a single rank, so that any run detects a
    /// missing exchange.
    pub(super) valid_layers: Vec<usize>,
}

/// Number of changes of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangeCounts {
    pub(super) all: u64,
    /// Value of `all` at the latest change that may concern any row.
    pub(super) of_all_rows: u64,
}

/// A pool as a resource. Systems cannot name it; they use the engine's handles:
///
/// ```compile_fail,E0277
/// # use bevy_ecs::prelude::*;
/// # use nestar_engine_data::{Field, Pool};
/// # struct Dust;
/// # impl Field for Dust { const NAME: &'static str = "dust"; }
/// fn peek(dust: Res<Pool<Dust>>) {}
/// ```
#[derive(Resource)]
pub struct PoolResource<F: Field>(pub Pool<F>);

impl<F: Field> Pool<F> {
    /// Creates an empty pool for `levels` levels with boundary conditions `[axis][side]`, on `device` if there is one.
    ///
    /// # Errors
    /// A boundary rule works on the host only; the device refuses.
    pub fn new(
        spec: FieldSpec,
        beyond: &[[BoundaryCondition; 2]; 3],
        precision: Precision,
        device: Option<&Device>,
        levels: usize,
    ) -> Result<Self, DeviceError> {
        let storage = Storage::new(&spec, beyond, precision, device, levels)?;
        let clock = BankClock {
            current: 0,
            times: [0.0; 2],
            stage: None,
            valid_layers: vec![0; spec.banks],
        };
        Ok(Self {
            spec,
            storage,
            clocks: vec![clock; levels],
            changes: vec![ChangeCounts::default(); levels],
            epochs: Vec::new(),
            keeps_results: false,
            marker: PhantomData,
        })
    }

    /// Returns the number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.spec.components.len()
    }

    /// Returns the precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        with_storage!(&self.storage, <R> => R::PRECISION, device => device.precision())
    }

    /// Returns the bytes reserved by all banks; on a device, also by associated buffers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        with_storage!(&self.storage,
            typed => typed.bytes(),
            device => device.bytes())
    }

    /// Returns the bytes of the flux and circulation registers.
    #[must_use]
    pub fn register_bytes(&self) -> usize {
        with_storage!(&self.storage,
            typed => typed.registers.bytes() + typed.circulations.bytes(),
            device => device.register_bytes())
    }

    /// Grows to `rows` rows.
    ///
    /// # Errors
    /// The memory does not suffice.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.epochs.resize(rows, 0);
        with_storage!(&mut self.storage,
            typed => typed.grow(rows),
            device => device.grow(rows))
    }

    /// Returns the values on the host.
    ///
    /// # Panics
    /// If the pool has the other precision or is on a device; [`Pool::host`] copies rows from there.
    #[must_use]
    pub fn typed<R: Element>(&self) -> &TypedPool<R> {
        self.storage
            .typed()
            .expect("the pool is on the host in the requested precision")
    }

    /// Returns the device pool, if the values are on a device.
    #[must_use]
    pub fn on_device(&self) -> Option<&DevicePool> {
        match &self.storage {
            Storage::Device(pool) => Some(pool),
            _ => None,
        }
    }

    /// Returns `true` if only some rows are in memory, as in previews of the initial hierarchy.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        with_storage!(&self.storage, typed => typed.is_partial(), _ => false)
    }

    /// Returns the bank with the present state of `level`.
    #[must_use]
    pub fn current(&self, level: usize) -> usize {
        self.clocks[level].current
    }

    /// Returns the simulation time of the present state of `level`.
    #[must_use]
    pub fn time(&self, level: usize) -> f64 {
        let clock = &self.clocks[level];
        clock.times[clock.current]
    }

    /// Returns the bank that gathers on `level` read, with its time: the present one, or that of a stage.
    pub(super) fn gathered(&self, level: usize) -> BankTime {
        self.clocks[level].stage.unwrap_or(BankTime {
            bank: self.current(level),
            time: self.time(level),
        })
    }

    /// Returns the bank that stage `stage` of a step of `level` writes. The last one writes the next bank.
    ///
    /// # Panics
    /// If the field has one time level or no scratch bank.
    #[must_use]
    pub fn stage_bank(&self, level: usize, stage: usize) -> usize {
        match (self.spec.stages - 1 - stage).is_multiple_of(2) {
            true => self.next_bank(level),
            false => self.scratch_bank(0),
        }
    }

    /// Begins a stage of a step of `level`: gathers read the result of the stage before, as the state at `time`, until the step is accepted or
    /// [`Pool::end_stages`]. Its halo is out of date. The first stage reads the present state.
    pub fn begin_stage(&mut self, level: usize, stage: usize, time: f64) {
        let Some(before) = stage.checked_sub(1) else {
            return self.end_stages(level);
        };
        let bank = self.stage_bank(level, before);
        let clock = &mut self.clocks[level];
        clock.valid_layers[bank] = 0;
        clock.stage = Some(BankTime { bank, time });
    }

    /// Lets gathers on `level` read the present state again.
    pub fn end_stages(&mut self, level: usize) {
        self.clocks[level].stage = None;
    }

    /// Returns the rows of a bank.
    ///
    /// # Panics
    /// If the field has no such bank.
    #[must_use]
    pub fn bank<R: Element>(&self, bank: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(bank)
    }

    /// Returns the rows of the present state of `level`.
    #[must_use]
    pub fn present<R: Element>(&self, level: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.current(level))
    }

    /// Returns the bank that a step of `level` writes.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn next_bank(&self, level: usize) -> usize {
        assert_eq!(self.spec.time_levels, 2, "time levels of `{}`", F::NAME);
        1 - self.current(level)
    }

    /// Returns the rows that a step of `level` writes.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn next<R: Element>(&self, level: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.next_bank(level))
    }

    /// Returns the number of scratch bank `n` among all banks.
    ///
    /// # Panics
    /// If the field has no such bank.
    #[must_use]
    pub fn scratch_bank(&self, n: usize) -> usize {
        let bank = self.spec.time_levels + n;
        assert!(bank < self.spec.banks, "bank {bank} of `{}`", F::NAME);
        bank
    }

    /// Returns the rows of scratch bank `n`.
    ///
    /// # Panics
    /// If the field has no such bank.
    #[must_use]
    pub fn scratch<R: Element>(&self, n: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.scratch_bank(n))
    }

    /// Accepts a step of `level` of length `dt` to time `time`. With two time levels, the next bank becomes the present
    /// state.
    /// Marks `rows` as changed and counts their fluxes or circulations in the registers. On a device, kernels have marked the rows.
    ///
    /// # Errors
    /// The device fails.
    pub fn commit(
        &mut self,
        level: usize,
        time: f64,
        dt: f64,
        rows: &[u32],
    ) -> Result<(), DeviceError> {
        match self.spec.correct {
            Correct::Fluxes => with_storage!(&mut self.storage,
                typed => typed.registers.commit(level, dt),
                device => device.commit(level, dt)?),
            Correct::Circulations => with_storage!(&mut self.storage,
                typed => typed.circulations.commit(level, dt),
                device => device.commit(level, dt)?),
            Correct::None => (),
        }
        self.end_stages(level);
        self.swap_banks(level, time);
        self.touch(level, rows);
        Ok(())
    }

    /// Exchanges the time levels of `level` with their halo state.
    fn swap_banks(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.current = self.spec.time_levels - 1 - clock.current;
        clock.times[clock.current] = time;
    }

    /// Sets the time of the present state of `level` and invalidates its other bank.
    pub fn set_time(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.times = [time; 2];
        if self.spec.time_levels == 2 {
            clock.valid_layers[1 - clock.current] = 0;
        }
    }

    /// Returns the inputs of a gather of up to `reach` ghost layers on `level`. Coarse ghost cells are interpolated to
    /// the present time, or to that of the stage.
    ///
    /// # Panics
    /// If the values lie on edges.
    #[must_use]
    pub fn ghosts<'a, R: Element>(
        &'a self,
        topology: &'a Topology,
        level: usize,
        reach: usize,
    ) -> GhostView<'a, R> {
        let at = self.gathered(level);
        self.ghosts_at(topology, level, reach, at)
    }

    /// As [`Pool::ghosts`] for the state in a bank, at its time.
    pub(super) fn ghosts_at<'a, R: Element>(
        &'a self,
        topology: &'a Topology,
        level: usize,
        reach: usize,
        BankTime { bank, time }: BankTime,
    ) -> GhostView<'a, R> {
        let centring = self.spec.centring;
        assert_ne!(centring, Centring::Edge, "centring of `{}`", F::NAME);
        let typed = self.typed::<R>();
        let (coarse_old, coarse_new, weight) = self.coarse_banks::<R>(level, time);
        GhostView {
            level: typed.bank(bank),
            coarse_old,
            coarse_new,
            weight: R::lit(weight),
            neighbours: topology.neighbour_table(),
            parent: topology.parent_table(),
            index: topology.index_table(),
            number: level as i32,
            domain_cells: topology.domain.cells(level),
            edges: [topology.domain.left_edge, topology.domain.right_edge],
            boundaries: &typed.boundaries,
            time,
            limiter: self.spec.prolong.limiter(),
            states: typed.states,
            reach,
            centring,
        }
    }

    /// Returns the banks of the next coarser level and the weight of the newer one at `time`.
    fn coarse_banks<R: Element>(&self, level: usize, time: f64) -> (Rows<'_, R>, Rows<'_, R>, f64) {
        let typed = self.typed::<R>();
        let (old, new, weight) = self.coarse_clock(level, time);
        (typed.bank(old), typed.bank(new), weight)
    }

    /// Returns the bank from which fluxes are computed, with its time.
    /// After an earlier update in this step (`adds`), it is the bank before that update, so that cells and ghost cells
    /// have the same time.
    pub(super) fn flux_state(&self, level: usize, adds: bool) -> BankTime {
        let clock = &self.clocks[level];
        let bank = match adds && self.spec.time_levels == 2 {
            true => 1 - clock.current,
            false => clock.current,
        };
        let time = clock.times[bank];
        BankTime { bank, time }
    }

    /// Returns the interpolation weights of the newer state of level `other` at the times of the states of `level`.
    /// The present state of `level` is the last.
    pub fn weights_on(&self, level: usize, other: usize) -> [f64; 2] {
        let next = self.next_bank(level);
        [next, 1 - next].map(|bank| {
            let time = self.clocks[level].times[bank];
            self.coarse_clock(other + 1, time).2
        })
    }

    /// Returns the banks of the next coarser level before and after its step, and the latter's weight at `time`.
    pub(super) fn coarse_clock(&self, level: usize, time: f64) -> (usize, usize, f64) {
        let clock = &self.clocks[level.saturating_sub(1)];
        let (present, next) = (clock.current, 1 - clock.current);
        let (old, new) = (clock.times[next], clock.times[present]);
        if level == 0 || self.spec.time_levels == 1 || time >= new || old >= new {
            return (present, present, 1.0);
        }
        (next, present, (time - old) / (new - old))
    }

    /// Returns the pool in `world`.
    ///
    /// # Panics
    /// If the field is not registered.
    #[must_use]
    pub fn of(world: &World) -> &Self {
        &world.resource::<PoolResource<F>>().0
    }

    /// Returns the pool in `world` for writing.
    ///
    /// # Panics
    /// As [`Pool::of`].
    #[must_use]
    pub fn of_mut(world: &mut World) -> &mut Self {
        &mut world.resource_mut::<PoolResource<F>>().into_inner().0
    }

    /// Counts a change of `level` whose rows are marked elsewhere, as by kernels on a device. Invalidates the halo.
    /// Collective.
    pub(crate) fn mark_changed(&mut self, level: usize) {
        self.changes[level].all += 1;
        self.invalidate_present_halo(level);
    }

    /// Counts a change of any rows of `level`: invalidates the halo and all values derived from them. Collective.
    pub fn mark_all_changed(&mut self, level: usize) {
        self.mark_changed(level);
        self.changes[level].of_all_rows = self.changes[level].all;
    }

    /// Marks `rows` of `level` as changed and invalidates the halo. Collective, also without rows. On a device, kernels
    /// mark the rows.
    pub fn touch(&mut self, level: usize, rows: &[u32]) {
        self.mark_changed(level);
        if self.on_device().is_none() {
            for &row in rows {
                self.epochs[row as usize] = self.epochs[row as usize].wrapping_add(1);
            }
        }
    }

    /// Invalidates the halo of the present state of `level`.
    pub(super) fn invalidate_present_halo(&mut self, level: usize) {
        let clock = &mut self.clocks[level];
        clock.valid_layers[clock.current] = 0;
    }

    /// Marks the rows of `level` that the correction at coarse-fine borders changes.
    pub(super) fn touch_corrected(&mut self, level: usize) {
        self.mark_changed(level);
        let epochs = &mut self.epochs;
        with_storage!(&self.storage,
            typed => {
                let by_fluxes = typed.registers.corrected(level).iter().map(|(row, _)| row);
                for row in by_fluxes.chain(typed.circulations.corrected(level)) {
                    epochs[*row as usize] = epochs[*row as usize].wrapping_add(1);
                }
            },
            _ => ());
    }

    /// Returns the number of changes of the values or patches of `level`. Values derived from the level are valid while
    /// it is constant.
    #[must_use]
    pub fn changes(&self, level: usize) -> u64 {
        self.changes[level].all
    }

    /// Returns `true` if any row may have changed since the count of `level` was `count`, see
    /// [`Pool::mark_all_changed`].
    /// Other changes mark their rows: by [`Pool::epoch`] on the host, by
    /// [`DevicePool::stale`](super::device::DevicePool::stale) on a device.
    #[must_use]
    pub fn any_row_changed_since(&self, level: usize, count: u64) -> bool {
        self.changes[level].of_all_rows > count
    }

    /// Returns the number of changes of a row on the host. A cached value is valid while this is constant and
    /// [`Pool::any_row_changed_since`] is `false`.
    #[must_use]
    pub fn epoch(&self, row: u32) -> u32 {
        self.epochs[row as usize]
    }

    /// Gathers the present state of a row with `layers` ghost layers into `values`.
    /// The shape is `[component][n][n][n]` with n = 8 + 2 `layers`; at least one layer. Values on faces have one more
    /// along the axis of the component. Of the 27 patches, only those in the bit mask `wanted` are needed; others may be
    /// read.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool has the other precision.
    pub fn window<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        (layers, wanted): (usize, u32),
        values: &mut Vec<R>,
    ) -> Result<(), DeviceError> {
        let number = level.clock.level;
        let at = self.gathered(number);
        self.window_at(level, row, layers, wanted, at, values)
    }

    /// As [`Pool::window`] for the states before and after the latest step of the level, with their times. Only the
    /// present state if there is no other.
    ///
    /// # Errors
    /// As [`Pool::window`].
    ///
    /// # Panics
    /// As [`Pool::window`].
    pub fn windows<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        self.windows_of(level, row, layers, self.states(level.clock.level))
    }

    /// Returns the banks with the states of a level before and after its latest step, or the present bank alone.
    pub(super) fn states(&self, level: usize) -> Vec<usize> {
        let clock = &self.clocks[level];
        let (present, other) = (clock.current, 1 - clock.current);
        match self.spec.time_levels > 1 && clock.times[other] < clock.times[present] {
            true => vec![other, present],
            false => vec![present],
        }
    }

    /// As [`Pool::window`] for a row of the next coarser level, with the times of the states.
    /// If `time` lies within its step, the states before and after are gathered, else the present one.
    ///
    /// # Errors
    /// As [`Pool::window`].
    ///
    /// # Panics
    /// As [`Pool::window`].
    pub fn coarser_windows<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        time: f64,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        let number = level.clock.level;
        let (old, new, _) = self.coarse_clock(number, time);
        let mut below = *level;
        below.clock.level = number - 1;
        below.clock.cell_width = level.topology.domain.cell_width(number - 1);
        let mut banks = vec![old, new];
        banks.dedup();
        self.windows_of(&below, row, layers, banks)
    }

    /// Returns the time of the present state of the next coarser level.
    ///
    /// # Panics
    /// On the root level.
    #[must_use]
    pub fn coarser_time(&self, level: usize) -> f64 {
        let clock = &self.clocks[level - 1];
        clock.times[clock.current]
    }

    fn windows_of<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        banks: Vec<usize>,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        let window = |bank: usize| {
            let time = self.clocks[level.clock.level].times[bank];
            let (at, mut values) = (BankTime { bank, time }, Vec::new());
            self.window_at(level, row, layers, u32::MAX, at, &mut values)?;
            Ok((time, values))
        };
        banks.into_iter().map(window).collect()
    }

    /// As [`Pool::window`] for the state in a bank, at its time.
    fn window_at<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        wanted: u32,
        at: BankTime,
        window: &mut Vec<R>,
    ) -> Result<(), DeviceError> {
        with_storage!(&self.storage,
            _typed => {
                let view = self.ghosts_at::<R>(level.topology, level.clock.level, layers, at);
                let scratch = &self.typed::<R>().gather_scratch;
                let shape = [self.components(), layers];
                gather_block(&view, row, wanted, shape, window, &mut scratch.get());
            },
            _ => *window = self.launcher().window(level, row, layers, at)?);
        Ok(())
    }

    /// Returns the device pool.
    ///
    /// # Panics
    /// If the pool is on the host.
    #[must_use]
    pub fn device(&self) -> &DevicePool {
        self.on_device().expect("the pool is on a device")
    }

    /// Returns the device pool for writing.
    ///
    /// # Panics
    /// If the pool is on the host.
    #[must_use]
    pub fn device_mut(&mut self) -> &mut DevicePool {
        match &mut self.storage {
            Storage::Device(pool) => pool,
            _ => panic!("the pool is on the host"),
        }
    }

    /// Returns the inputs of a gather on `level`: the device version of [`Pool::ghosts`].
    ///
    /// # Panics
    /// If the pool is on the host.
    #[must_use]
    pub fn view(&self, tables: &DeviceTopology, topology: &Topology, level: usize) -> DeviceView {
        self.view_at(tables, topology, level, self.gathered(level))
    }

    /// As [`Pool::view`] for the states before and after the latest step of the level, with their times. Only the
    /// present state if there is no other.
    ///
    /// # Panics
    /// If the pool is on the host.
    pub fn views(&self, level: &LevelView) -> Vec<(f64, DeviceView)> {
        let (number, tables) = (level.clock.level, level.on_device());
        let view = |bank: usize| {
            let time = self.clocks[number].times[bank];
            let at = BankTime { bank, time };
            (time, self.view_at(tables, level.topology, number, at))
        };
        self.states(number).into_iter().map(view).collect()
    }

    /// As [`Pool::view`] for the next coarser level, with the times of the states.
    /// If `time` lies within its step, the states before and after are returned, else the present one.
    ///
    /// # Panics
    /// If the pool is on the host.
    pub fn coarser_views(&self, level: &LevelView, time: f64) -> Vec<(f64, DeviceView)> {
        let (number, tables) = (level.clock.level, level.on_device());
        let (old, new, _) = self.coarse_clock(number, time);
        let mut banks = vec![old, new];
        banks.dedup();
        let view = |bank: usize| {
            let time = self.clocks[number - 1].times[bank];
            let at = BankTime { bank, time };
            (time, self.view_at(tables, level.topology, number - 1, at))
        };
        banks.into_iter().map(view).collect()
    }

    /// As [`Pool::view`] for the state in a bank, at its time.
    pub(super) fn view_at(
        &self,
        tables: &DeviceTopology,
        topology: &Topology,
        level: usize,
        BankTime { bank, time }: BankTime,
    ) -> DeviceView {
        let pool = self.device();
        let (old, new, weight) = self.coarse_clock(level, time);
        DeviceView {
            level: pool.bank(bank).into(),
            coarse_old: pool.bank(old).into(),
            coarse_new: pool.bank(new).into(),
            neighbours: tables.neighbours().into(),
            parent: tables.parent().into(),
            first_child: tables.first_child().into(),
            index: tables.index().into(),
            fault: pool.fault.address().into(),
            weight,
            time,
            left: topology.domain.left_edge,
            right: topology.domain.right_edge,
            domain_cells: topology.domain.cells(level),
        }
    }

    /// Returns the launcher of cell functions, for a pool on a device.
    pub(super) fn launcher(&self) -> CellLauncher<'_, F> {
        CellLauncher { pool: self }
    }
}

/// Launches cell and face functions of a pool on its device.
#[derive(Clone, Copy)]
pub(super) struct CellLauncher<'a, F: Field> {
    pub pool: &'a Pool<F>,
}

/// Gathers `components` components of a row with `ghosts` ghost layers into `block`.
/// Of the 27 patches, those in the bit mask `wanted` are read.
pub(super) fn gather_block<R: Element>(
    view: &GhostView<R>,
    row: u32,
    wanted: u32,
    [components, ghosts]: [usize; 2],
    block: &mut Vec<R>,
    scratch: &mut GatherScratch<R>,
) {
    let lengths = view.centring.lengths(0, [PATCH + 2 * ghosts; 3]);
    let stride = lengths.iter().product();
    block.resize(components * stride, R::lit(0.0));
    let mut target = GatherTarget {
        values: block,
        stride,
        components,
        ghosts,
    };
    match view.centring {
        Centring::Face => gather_faces(view, row, &mut target),
        _ => gather_sectors(view, row, (&mut target, wanted), scratch),
    }
}
