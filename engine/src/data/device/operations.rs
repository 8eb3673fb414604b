//! What the engine does with a field, on the device.

use super::{DevicePool, DeviceTopology, DeviceView};
use crate::device::{DeviceError, LaunchShape};
use crate::mesh::{LevelClock, Topology};
use nestar_device::Number;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::parameters::{
    ProlongParameters, RepairedCells, RestrictParameters, ShareParameters,
};

impl DevicePool {
    /// Follows a change of `level`'s patches: storage and registers.
    pub(in crate::data) fn on_regrid(
        &mut self,
        tables: &DeviceTopology,
        topology: &Topology,
        level: usize,
    ) -> Result<(), DeviceError> {
        self.grow(tables.capacity())?;
        match &mut self.registers {
            Some(registers) => registers.on_regrid(tables, topology, level),
            None => Ok(()),
        }
    }

    /// Fills new rows by interpolation; `view` gathers on their level, whose present bank is `bank`. For values on faces,
    /// `marks` says of each row whether it is new.
    pub(in crate::data) fn prolong(
        &mut self,
        tables: &DeviceTopology,
        view: DeviceView,
        bank: usize,
        marks: &[u8],
    ) -> Result<(), DeviceError> {
        if self.text.shape.centring == Centring::Face {
            self.fresh = self.device.buffer(marks.len())?;
            self.device.upload(&self.fresh, 0, marks)?;
        }
        let parameters = ProlongParameters {
            view,
            rows_of_level: self.bank(bank).into(),
            rows: tables.new_rows().into(),
            stale: self.stale().into(),
            fresh: self.fresh.address().into(),
        };
        let rows = tables.new_count();
        let shape = LaunchShape::of(rows, 64);
        // an eighth of a coarse row makes a fine one
        self.kernels
            .prolong
            .count_work(rows * CELLS, rows * self.row_bytes() * 9 / 8);
        self.device
            .launch(&self.kernels.prolong, shape, &parameters)
    }

    /// Covered cells of `level` take the averages of their children; `banks` are the present ones of both levels. Whether
    /// there are any.
    pub(in crate::data) fn restrict(
        &self,
        tables: &DeviceTopology,
        level: usize,
        banks: [usize; 2],
    ) -> Result<bool, DeviceError> {
        let octets = tables.count(level + 1) / 8;
        if octets == 0 {
            return Ok(false);
        }
        let parameters = RestrictParameters::<Number> {
            coarse: self.bank(banks[0]).into(),
            fine: self.bank(banks[1]).into(),
            rows: (tables.rows(level + 1)).into(),
            parent: tables.parent().into(),
            stale: self.stale().into(),
            mended: self.mended.address().into(),
        };
        self.kernels
            .restrict
            .count_work(octets * CELLS, 9 * octets * self.row_bytes());
        self.device.launch(
            &self.kernels.restrict,
            LaunchShape::of(octets, 128),
            &parameters,
        )?;
        Ok(true)
    }

    /// Gives the values that patches of `level` share to one of them; `bank` is the level's present one.
    pub(in crate::data) fn share(
        &self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
    ) -> Result<(), DeviceError> {
        let parameters = ShareParameters::<Number> {
            level: self.bank(bank).into(),
            rows: tables.rows(level).into(),
            neighbours: tables.neighbours().into(),
            first_child: tables.first_child().into(),
            stale: self.stale().into(),
        };
        let shape = LaunchShape::of(tables.count(level), 64);
        self.device.launch(&self.kernels.share, shape, &parameters)
    }

    /// Cells beside a coarse-fine face take the fine fluxes of the step; `bank` is the level's present one. Whether there are
    /// any.
    pub(in crate::data) fn correct(
        &self,
        tables: &DeviceTopology,
        clock: &LevelClock,
        bank: usize,
    ) -> Result<bool, DeviceError> {
        let (bank, stale) = (self.bank(bank).into(), self.stale().into());
        match &self.registers {
            Some(registers) => {
                registers.correct(tables, bank, stale, self.mended.address().into(), clock)
            }
            None => Ok(false),
        }
    }

    /// A step of `level` of length `dt` stands.
    pub(in crate::data) fn commit(&mut self, level: usize, dt: f64) -> Result<(), DeviceError> {
        match &mut self.registers {
            Some(registers) => registers.commit(level, dt),
            None => Ok(()),
        }
    }

    /// Cells that were mended since the start.
    pub(in crate::data) fn mended(&self) -> Result<RepairedCells, DeviceError> {
        let mut mended = [RepairedCells::default()];
        self.device.download(&self.mended, 0, &mut mended)?;
        Ok(mended[0])
    }
}
