//! The current level as a system parameter: rows, clock and fault reporting.

use super::device::DeviceTopology;
use super::failure::{FaultBox, SumNames};
use super::field_spec::Components;
use super::storage::Storage;
use super::store::{MeshContext, TABLES};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{Domain, LevelClock, Levels, Topology};
use nestar_kernels::mesh::block::LevelGeometry;

/// Present while the initial hierarchy is only estimated, a few patches at a time.
#[derive(Resource)]
pub struct InitialEstimate;

/// `true` if unfinished cells wait in a queue between calls.
#[derive(Resource)]
pub struct SubcycleQueues(pub bool);

/// System parameter with the rows of the current level.
#[derive(SystemParam)]
pub struct LevelRows<'w, 's> {
    components: Local<'s, Components>,
    sums: Local<'s, SumNames>,
    visited: Local<'s, Option<usize>>,
    at_end: Local<'s, bool>,
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    levels: Res<'w, Levels>,
    tables: Option<Res<'w, DeviceTopology>>,
    estimate: Option<Res<'w, InitialEstimate>>,
    faults: Res<'w, FaultBox>,
    queues: Option<Res<'w, SubcycleQueues>>,
}

impl LevelRows<'_, '_> {
    /// Selects the components of the first field that form the state of the functions called from now on.
    pub fn choose(&mut self, components: Components) {
        *self.components = components;
    }

    /// Sets the names of summed numbers in messages: the account and its numbers.
    pub fn name_sums(&mut self, account: &'static str, numbers: &'static [&'static str]) {
        *self.sums = (account, numbers);
    }

    /// Returns `true` while the initial hierarchy is only estimated, a few patches at a time. Work on whole levels is
    /// skipped then.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.estimate.is_some()
    }

    /// Switches to another level, as it is between two of its steps. Systems that work on several levels call this for
    /// the current level too.
    pub fn visit(&mut self, level: usize) {
        *self.visited = Some(level);
    }

    /// Presents the current level at the end of its step from now on, with a time step of 0.
    pub fn at_end(&mut self) {
        *self.at_end = true;
    }

    /// Returns the level.
    #[must_use]
    #[inline]
    pub fn level(&self) -> usize {
        self.visited.unwrap_or(self.clock.level)
    }

    /// Returns the rows of the level in Hilbert order.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[u32] {
        self.topology.rows(self.level())
    }

    /// Returns the level with its clock.
    #[must_use]
    #[inline]
    pub fn view(&self) -> LevelView<'_> {
        self.view_of(self.level())
    }

    /// Returns the numbers that follow the simulation time ([`Levels::numbers_at`]), in the middle of the step of the level.
    #[must_use]
    pub fn numbers_in_step(&self) -> [f64; 2] {
        self.view().clock.middle
    }

    /// Returns any level with its clock: the current level in its step, other levels between two steps.
    #[must_use]
    pub fn view_of(&self, level: usize) -> LevelView<'_> {
        let mut clock = *self.clock;
        if *self.at_end {
            (clock.time, clock.dt) = (clock.end, 0.0);
            clock.numbers = self.levels.numbers_at(clock.end);
            clock.middle = clock.numbers;
        }
        let view = LevelView {
            components: *self.components,
            topology: &self.topology,
            clock,
            tables: self.tables.as_deref(),
        };
        if level == view.clock.level {
            return view;
        }
        let clock = clock_between_steps(&self.topology, &self.levels, level);
        LevelView { clock, ..view }
    }

    /// Returns the finest level with patches on any rank.
    #[must_use]
    pub fn finest(&self) -> usize {
        self.topology.finest()
    }

    /// Returns `true` if unfinished cells wait in a queue between calls.
    pub(super) fn queues(&self) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.0)
    }

    /// Returns the names of summed numbers for messages.
    pub(super) fn sum_names(&self) -> SumNames {
        *self.sums
    }

    /// Returns the collector of faults.
    pub(super) fn faults(&self) -> &FaultBox {
        &self.faults
    }

    /// Stops the run after the schedule.
    pub fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
        self.faults.fail(error);
    }

    /// Reports the fault of a boundary rule, if a gather of `field` on a device has recorded one.
    pub(super) fn check_gathered(&self, field: &Storage) {
        if let Storage::Device(device) = field
            && let Some(message) = self.checked(device.fault(), None)
        {
            self.faults.report(|| message);
        }
    }

    /// Returns the value of `result`. An error of the device is reported and replaced by `otherwise`.
    pub(super) fn checked<T>(&self, result: Result<T, DeviceError>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.faults.check(Err(error));
            otherwise
        })
    }
}

/// Returns the clock of a level between two steps.
fn clock_between_steps(topology: &Topology, levels: &Levels, level: usize) -> LevelClock {
    let clock = levels.clock(level);
    let numbers = levels.numbers_at(clock.time);
    LevelClock {
        level,
        step: clock.steps,
        time: clock.time,
        dt: 0.0,
        end: clock.time,
        cell_width: topology.domain.cell_width(level),
        numbers,
        middle: numbers,
    }
}

/// A level at a time: all inputs of a cell function besides the fields.
#[derive(Clone, Copy)]
pub struct LevelView<'a> {
    /// Components that form the states of functions.
    pub components: Components,
    /// Topology of the hierarchy.
    pub topology: &'a Topology,
    /// Level, time and time step.
    pub clock: LevelClock,
    /// Topology tables on the device, if fields are on a device.
    pub tables: Option<&'a DeviceTopology>,
}

impl<'a> LevelView<'a> {
    /// Returns a level between two steps.
    #[must_use]
    pub fn between_steps(around: &MeshContext<'a>, level: usize) -> Self {
        Self {
            components: Components::default(),
            topology: around.topology,
            clock: clock_between_steps(around.topology, around.levels, level),
            tables: around.tables,
        }
    }

    /// Returns the rows of the level in Hilbert order.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &'a [u32] {
        self.topology.rows(self.clock.level)
    }

    /// Returns the topology tables on the device.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn on_device(&self) -> &'a DeviceTopology {
        self.tables.expect(TABLES)
    }

    /// Returns the geometry of the cells of the level.
    pub(super) fn geometry(&self) -> LevelGeometry {
        let clock = self.clock;
        let times = [clock.time, clock.dt];
        geometry(&self.topology.domain, clock.level, times, clock.middle)
    }
}

/// Returns the geometry of the cells of a level at `time`, with time step `dt` and the numbers that follow the time.
pub fn geometry(
    domain: &Domain,
    level: usize,
    [time, dt]: [f64; 2],
    numbers: [f64; 2],
) -> LevelGeometry {
    LevelGeometry {
        left: domain.left_edge,
        right: domain.right_edge,
        cells: domain.cells(level),
        level: level as i32,
        width: domain.cell_width(level),
        time,
        dt,
        numbers,
    }
}
