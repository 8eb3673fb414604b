//! The level at hand: its rows, its clock, and where what goes wrong there is left.

use super::components::Components;
use super::device::DeviceTopology;
use super::faults::FaultBox;
use super::storage::Storage;
use super::store::TABLES;
use crate::device::DeviceError;
use crate::mesh::{LevelClock, Topology};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_kernels::mesh::block::LevelGeometry;

/// The rows of the level at hand, as a system's parameter.
#[derive(SystemParam)]
pub struct LevelRows<'w, 's> {
    components: Local<'s, Components>,
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    tables: Option<Res<'w, DeviceTopology>>,
    faults: Res<'w, FaultBox>,
}

impl LevelRows<'_, '_> {
    /// Lets the states of functions that are called from now on be made of these components of their first field.
    pub fn choose(&mut self, components: Components) {
        *self.components = components;
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.clock.level
    }

    /// Its rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        self.topology.rows(self.clock.level)
    }

    /// The level with its clock.
    #[must_use]
    pub fn view(&self) -> LevelView<'_> {
        LevelView {
            components: *self.components,
            topology: &self.topology,
            clock: *self.clock,
            tables: self.tables.as_deref(),
        }
    }

    /// Where what goes wrong is left.
    pub(super) fn faults(&self) -> &FaultBox {
        &self.faults
    }

    /// Stops the run after the schedule.
    pub(crate) fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
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
    pub(crate) fn on_device(&self) -> &'a DeviceTopology {
        self.tables.expect(TABLES)
    }

    /// What the places of its cells are made of.
    pub(super) fn geometry(&self) -> LevelGeometry {
        let domain = &self.topology.domain;
        LevelGeometry {
            left: domain.left_edge,
            right: domain.right_edge,
            cells: domain.cells(self.clock.level),
            level: self.clock.level as i32,
            width: self.clock.cell_width,
            time: self.clock.time,
            dt: self.clock.dt,
        }
    }
}
