//! What a pool offers where its values live on a device.

use super::{DevicePool, DeviceTopology, DeviceView};
use crate::data::level::LevelView;
use crate::data::pool::{Field, Pool};
use crate::data::storage::Storage;
use crate::mesh::Topology;

impl<F: Field> Pool<F> {
    /// The device's side of the pool.
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn device(&self) -> &DevicePool {
        self.on_device().expect("the pool lives on a device")
    }

    /// The device's side of the pool, for changing.
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn device_mut(&mut self) -> &mut DevicePool {
        match &mut self.storage {
            Storage::Device(pool) => pool,
            _ => panic!("the pool lives on the host"),
        }
    }

    /// What a gather on `level` reads on the device: the twin of [`Pool::ghosts`].
    ///
    /// # Panics
    /// If the pool lives on the host.
    #[must_use]
    pub fn view(&self, tables: &DeviceTopology, topology: &Topology, level: usize) -> DeviceView {
        self.view_at(
            tables,
            topology,
            level,
            (self.current(level), self.time(level)),
        )
    }

    /// As [`Pool::view`] of the states before and after the latest step of the level, each with its time; of the present one alone where that is
    /// all there is.
    ///
    /// # Panics
    /// If the pool lives on the host.
    pub(crate) fn views(&self, level: &LevelView) -> Vec<(f64, DeviceView)> {
        let (number, tables) = (level.clock.level, level.on_device());
        let view = |bank: usize| {
            let at = (bank, self.clocks[number].times[bank]);
            (at.1, self.view_at(tables, level.topology, number, at))
        };
        self.states(number).into_iter().map(view).collect()
    }

    /// As [`Pool::view`] of the next coarser level than `level`, before and after its step where `time` is within that; else of its present state
    /// alone. Each with its time.
    ///
    /// # Panics
    /// If the pool lives on the host.
    pub(crate) fn coarser_views(&self, level: &LevelView, time: f64) -> Vec<(f64, DeviceView)> {
        let (number, tables) = (level.clock.level, level.on_device());
        let (old, new, _) = self.coarse_clock(number, time);
        let mut banks = vec![old, new];
        banks.dedup();
        let view = |bank: usize| {
            let at = (bank, self.clocks[number - 1].times[bank]);
            (at.1, self.view_at(tables, level.topology, number - 1, at))
        };
        banks.into_iter().map(view).collect()
    }

    /// As [`Pool::view`] of the state that stands in a bank, at its time.
    pub(super) fn view_at(
        &self,
        tables: &DeviceTopology,
        topology: &Topology,
        level: usize,
        (bank, time): (usize, f64),
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
}
