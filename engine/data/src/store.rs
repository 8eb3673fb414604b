//! Interface to all data with one row per patch. Communication, snapshots, restarts, memory estimates and load
//! balancing use only this.
//!
//! [`Pool`](super::Pool) implements it, and plugins may add others.

use super::Precision;
use super::columns::ColumnSums;
use super::criteria::DerivedInputs;
use super::device::topology::DeviceTopology;
use super::field_spec::FieldSpec;
use bevy_ecs::prelude::*;
use nestar_engine_device::{Device, DeviceError, DeviceSpan};
use nestar_engine_mesh::{Levels, NewRows, Topology};
use nestar_kernels::mesh::parameters::RepairedCells;
pub use nestar_kernels::mesh::shape::{Piece, RowShape};
use nestar_snapshot::Values;
use std::ops::Range;

/// A bank of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelBank {
    /// The level.
    pub level: usize,
    /// The bank, [`LevelBank::REGISTERS`] or [`LevelBank::CIRCULATIONS`].
    pub bank: usize,
}

impl LevelBank {
    /// Denotes the fine-side flux registers between the level and the next finer one.
    pub const REGISTERS: usize = usize::MAX;
    /// Denotes the fine-side circulation registers between the level and the next finer one.
    pub const CIRCULATIONS: usize = usize::MAX - 1;
}

/// Inputs of a store for adapting to the hierarchy.
pub struct MeshContext<'a> {
    /// Topology of the hierarchy.
    pub topology: &'a Topology,
    /// Clocks of the levels.
    pub levels: &'a Levels,
    /// Topology tables on the device, if the run uses one.
    pub tables: Option<&'a DeviceTopology>,
}

impl<'a> MeshContext<'a> {
    /// Returns the context of `world`.
    #[must_use]
    pub fn of(world: &'a World) -> Self {
        Self {
            topology: world.resource::<Topology>(),
            levels: world.resource::<Levels>(),
            tables: world.get_resource::<DeviceTopology>(),
        }
    }

    /// Returns the topology tables on the device.
    ///
    /// # Panics
    /// If there are none.
    pub(super) fn on_device(&self) -> &'a DeviceTopology {
        self.tables.expect(TABLES)
    }
}

/// Message of the panic if a field on a device has no tables there.
pub(super) const TABLES: &str = "a field on a device needs topology tables there";

/// Data with one row for every patch on a rank, including halo patches.
pub trait Store: Send + Sync {
    /// Returns the name in messages.
    fn name(&self) -> &'static str;
    /// Returns the declaration.
    fn spec(&self) -> &FieldSpec;
    /// Returns the precision of the values, which is that of the run.
    fn precision(&self) -> Precision;

    /// Returns the shape of a row.
    fn shape(&self) -> RowShape {
        self.spec().shape()
    }
    /// Returns the bytes of one value of a [`Piece`]: all components of a cell, or one value of each vector.
    fn value_bytes(&self) -> usize {
        let spec = self.spec();
        spec.components.len() / spec.centring.groups() * self.precision().bytes()
    }
    /// Returns the bytes of a row in all banks and associated buffers; equal on all ranks.
    fn total_row_bytes(&self) -> usize {
        self.spec().row_bytes(self.precision())
    }
    /// Returns the bytes of a row in one bank.
    fn row_bytes(&self) -> usize {
        self.shape().row() * self.value_bytes()
    }

    /// Returns the bank with the present state of `level`.
    fn present_bank(&self, level: usize) -> LevelBank {
        LevelBank { level, bank: 0 }
    }
    /// Returns the banks read by a gather on `level`: its present bank and those of the coarser level.
    fn read_by_gather(&self, level: usize) -> [Option<LevelBank>; 3] {
        [Some(self.present_bank(level)), None, None]
    }
    /// Returns the number of valid halo layers of a bank; equal on all ranks.
    fn valid_layers(&self, at: LevelBank) -> usize;
    /// Sets the number of valid halo layers of a bank.
    fn set_valid_layers(&mut self, at: LevelBank, layers: usize);
    /// Invalidates all halo patches of `level`, after a change of the halo or of the cells read from it.
    fn invalidate_halos(&mut self, level: usize);

    /// Adapts to a regrid of `level` with new rows `new`: allocates all rows of the topology and invalidates halos.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn on_regrid(
        &mut self,
        around: &MeshContext,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError>;
    /// Keeps only the rows of `_octets`, to estimate the initial hierarchy part by part. New octets are zero. Stores
    /// without this keep all rows.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn allocate_octets(&mut self, _octets: &[u32]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Fills new rows as declared; not called for [`Prolong::Own`](super::Prolong::Own).
    ///
    /// # Errors
    /// The device fails.
    fn fill(&mut self, around: &MeshContext, new: &NewRows) -> Result<(), DeviceError>;

    /// Packs consecutive pieces of rows, `[piece][component][value]`, or of registers: `[piece][2][component][4][4]` of
    /// fluxes, `[piece][2][component][64]` of circulations. `out` starts with the first.
    ///
    /// # Errors
    /// The device fails.
    fn pack(&self, at: LevelBank, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError>;
    /// Unpacks pieces of distinct rows from the bytes of [`Store::pack`]; `owned` rows count as a change of the level.
    ///
    /// # Errors
    /// The device fails.
    fn unpack(
        &mut self,
        at: LevelBank,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError>;
    /// Starts packing pieces into device memory; a store on the host packs there and copies.
    ///
    /// # Errors
    /// The device fails.
    fn pack_on_device(&self, at: LevelBank, list: &DevicePieces) -> Result<(), DeviceError> {
        let mut bytes = vec![0; self.bytes_of(list)];
        self.pack(at, list.entries, &mut bytes)?;
        list.device.upload(list.bytes(bytes.len()), 0, &bytes)
    }
    /// As [`Store::unpack`] from device memory.
    ///
    /// # Errors
    /// The device fails.
    fn unpack_on_device(
        &mut self,
        at: LevelBank,
        list: &DevicePieces,
        owned: bool,
    ) -> Result<(), DeviceError> {
        let mut bytes = vec![0; self.bytes_of(list)];
        list.device
            .download(list.bytes(bytes.len()), 0, &mut bytes)?;
        self.unpack(at, list.entries, &bytes, owned)
    }
    /// Returns the bytes of the pieces of a list.
    fn bytes_of(&self, list: &DevicePieces) -> usize {
        let values = list.entries.iter().map(|piece| piece.values(self.shape()));
        values.sum::<usize>() * self.value_bytes()
    }

    /// Returns the reserved memory, bytes.
    fn bytes(&self) -> usize;
    /// Returns the memory of flux registers, bytes.
    fn register_bytes(&self) -> usize {
        0
    }
    /// Returns the sums over leaf cells in ranges of the patches of a level on this rank, `[range][component]`. Empty
    /// without totals.
    ///
    /// # Errors
    /// The device fails.
    fn node_sums(
        &self,
        _: &MeshContext,
        _: usize,
        _: &[Range<usize>],
    ) -> Result<Vec<f64>, DeviceError> {
        Ok(Vec::new())
    }
    /// Returns the number of cells repaired on a device since the start of this process.
    ///
    /// # Errors
    /// The device fails.
    fn repaired_on_device(&self) -> Result<RepairedCells, DeviceError> {
        Ok(RepairedCells::default())
    }

    /// Returns a component in some rows of a level, `[row][k][j][i]`, in the precision of the store.
    ///
    /// # Errors
    /// The device fails.
    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError>;
    /// Starts to compile sums of these quantities along an axis for a device.
    fn prepare_column_sums(&self, _quantities: &DerivedInputs) {}
    /// Computes sums along an axis in the columns of patches at the present time, `[row][quantity][64]`, into `sums`, whose length changes.
    /// Returns `false` if the store cannot compute them.
    ///
    /// # Errors
    /// The device fails.
    fn column_sums(
        &self,
        _around: &MeshContext,
        _level: usize,
        _wanted: &ColumnSums,
        _sums: &mut Vec<f64>,
    ) -> Result<bool, DeviceError> {
        Ok(false)
    }
    /// Sets a component in some rows of a level at its present time, converting the precision.
    ///
    /// # Errors
    /// The values do not fit, or the device fails.
    fn load(
        &mut self,
        around: &MeshContext,
        level: usize,
        component: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String>;
    /// Starts packing components of whole rows of a level into device memory, component by component.
    ///
    /// # Errors
    /// The device fails.
    fn save_on_device(
        &self,
        level: usize,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let rows: Vec<u32> = list.entries.iter().map(|piece| piece.row).collect();
        let mut packed = Vec::new();
        for component in components {
            packed.extend_from_slice(self.save(level, component, &rows)?.bytes());
        }
        list.device.upload(list.bytes(packed.len()), 0, &packed)
    }
}

/// Returns the banks read by a gather on `level` that have fewer than `depth` valid halo layers.
pub fn stale_banks(
    store: &dyn Store,
    level: usize,
    depth: usize,
) -> impl Iterator<Item = LevelBank> + use<'_> {
    let read = store.read_by_gather(level).into_iter().flatten();
    read.filter(move |&at| store.valid_layers(at) < depth)
}

/// Marks at least `depth` halo layers of all banks read by a gather on `level` as valid.
pub fn mark_refreshed(store: &mut dyn Store, level: usize, depth: usize) {
    for at in store.read_by_gather(level).into_iter().flatten() {
        if store.valid_layers(at) < depth {
            store.set_valid_layers(at, depth);
        }
    }
}

/// A list of pieces and their packed values, both in device memory.
#[derive(Clone, Copy)]
pub struct DevicePieces<'a> {
    /// The list on the host.
    pub entries: &'a [Piece],
    /// Device of the memory.
    pub device: &'a Device,
    /// Address of the list.
    pub list: u64,
    /// Address of the packed values.
    pub memory: u64,
    /// Distance between packed components of whole rows, in values; 0 if the values are packed piece by piece.
    pub stride: usize,
}

impl DevicePieces<'_> {
    /// Returns the first `bytes` bytes of the packed values.
    pub(super) fn bytes(&self, bytes: usize) -> DeviceSpan {
        DeviceSpan::of(self.memory, bytes)
    }
}
