//! The level at hand: its rows, its clock, and where what goes wrong there is left.

use super::components::Components;
use super::device::DeviceTopology;
use super::faults::FaultBox;
use super::storage::Storage;
use super::store::TABLES;
use crate::device::DeviceError;
use crate::mesh::{Domain, LevelClock, Levels, Topology};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_kernels::mesh::block::LevelGeometry;

/// There while the beginning of a run is only looked at, a few patches at a time.
#[derive(Resource)]
pub(crate) struct InitialEstimate;

/// Whether cells that are to be called again wait in a queue.
#[derive(Resource)]
pub(crate) struct SubcycleQueues(pub bool);

/// An account and its numbers, by which messages name what functions give to be summed; no numbers: by their places.
pub(super) type SumNames = (&'static str, &'static [&'static str]);

/// The rows of the level at hand, as a system's parameter.
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
    /// Lets the states of functions that are called from now on be made of these components of their first field.
    pub fn choose(&mut self, components: Components) {
        *self.components = components;
    }

    /// Lets messages name what functions give to be summed from now on: by the name of an account and those of its numbers.
    pub fn name_sums(&mut self, names: (&'static str, &'static [&'static str])) {
        *self.sums = names;
    }

    /// Whether the beginning of the run is only looked at, a few patches at a time, to find its hierarchy: what takes whole levels is
    /// left out then.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.estimate.is_some()
    }

    /// From now on these are the rows of another level, as it stands between two of its steps: for systems that work on several
    /// levels, which call this for the level at hand too.
    pub fn visit(&mut self, level: usize) {
        *self.visited = Some(level);
    }

    /// From now on functions see the level at hand as it stands when its step is over: the time is that of the end, and the step that is
    /// left is 0.
    pub fn at_end(&mut self) {
        *self.at_end = true;
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.visited.unwrap_or(self.clock.level)
    }

    /// Its rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        self.topology.rows(self.level())
    }

    /// The level with its clock.
    #[must_use]
    pub fn view(&self) -> LevelView<'_> {
        self.view_of(self.level())
    }

    /// Any level with its clock: of the level at hand in its step, of others between two of theirs.
    #[must_use]
    pub fn view_of(&self, level: usize) -> LevelView<'_> {
        let mut clock = *self.clock;
        if *self.at_end {
            (clock.time, clock.dt) = (clock.end, 0.0);
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
        let clock = self.levels.clock(level);
        let clock = LevelClock {
            level,
            step: clock.steps,
            time: clock.time,
            dt: 0.0,
            end: clock.time,
            cell_width: view.topology.domain.cell_width(level),
        };
        LevelView { clock, ..view }
    }

    /// The finest level that has patches, on any rank.
    #[must_use]
    pub fn finest(&self) -> usize {
        self.topology.finest()
    }

    /// Whether cells that are to be called again wait in a queue.
    pub(super) fn queues(&self) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.0)
    }

    /// By which names functions give numbers to be summed.
    pub(super) fn sum_names(&self) -> SumNames {
        *self.sums
    }

    /// Where what goes wrong is left.
    pub(super) fn faults(&self) -> &FaultBox {
        &self.faults
    }

    /// Stops the run after the schedule.
    pub fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
        self.faults.fail(error);
    }

    /// Stops the run after the schedule with the fault of a boundary rule, if a gather of `field` on a device has met one.
    pub(super) fn check_gathered(&self, field: &Storage) {
        if let Storage::Device(device) = field
            && let Some(message) = self.checked(device.fault(), None)
        {
            self.faults.report(|| message);
        }
    }

    /// The value; an error of the device stops the run after the schedule.
    pub(super) fn checked<T>(&self, result: Result<T, DeviceError>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.faults.check(Err(error));
            otherwise
        })
    }
}

/// A level at a time: what a skeleton needs beside the fields.
#[derive(Clone, Copy)]
pub struct LevelView<'a> {
    /// What the states of functions consist of.
    pub components: Components,
    /// The hierarchy.
    pub topology: &'a Topology,
    /// Level and time.
    pub clock: LevelClock,
    /// The hierarchy's tables where fields live on a device.
    pub tables: Option<&'a DeviceTopology>,
}

impl<'a> LevelView<'a> {
    /// Its rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &'a [u32] {
        self.topology.rows(self.clock.level)
    }

    /// The tables on the device.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn on_device(&self) -> &'a DeviceTopology {
        self.tables.expect(TABLES)
    }

    /// What the places of its cells are made of.
    pub(super) fn geometry(&self) -> LevelGeometry {
        let clock = self.clock;
        geometry(&self.topology.domain, clock.level, [clock.time, clock.dt])
    }
}

/// What the places of the cells of a level are made of, at a time with the length of its step.
pub(crate) fn geometry(domain: &Domain, level: usize, [time, dt]: [f64; 2]) -> LevelGeometry {
    LevelGeometry {
        left: domain.left_edge,
        right: domain.right_edge,
        cells: domain.cells(level),
        level: level as i32,
        width: domain.cell_width(level),
        time,
        dt,
    }
}
