//! Stores: what the engine carries for every patch, whatever it means. Ranks, snapshots, restarts, the forecast of memory and the
//! balance know stores alone; a [`Pool`](super::Pool) is one, and plugins may make others.

use super::device::DeviceTopology;
use super::pieces::{DevicePieces, Piece};
use super::{FieldSpec, Precision, RowShape};
use crate::device::DeviceError;
use crate::mesh::{Levels, NewRows, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::parameters::RepairedCells;
use nestar_snapshot::Values;
use std::ops::Range;

/// A bank of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelBank {
    /// The level.
    pub level: usize,
    /// The bank, or [`LevelBank::REGISTERS`].
    pub bank: usize,
}

impl LevelBank {
    /// What stands for the fine flux registers between the level and the finer one, of a store that is corrected by fluxes.
    pub const REGISTERS: usize = usize::MAX;
}

/// What a store may look at while it follows the hierarchy.
pub struct MeshContext<'a> {
    /// Which patch has which row.
    pub topology: &'a Topology,
    /// Clocks of the levels.
    pub levels: &'a Levels,
    /// The tables on the device, if the run has one.
    pub tables: Option<&'a DeviceTopology>,
}

impl<'a> MeshContext<'a> {
    /// Those in `world`.
    #[must_use]
    pub fn of(world: &'a World) -> Self {
        Self {
            topology: world.resource::<Topology>(),
            levels: world.resource::<Levels>(),
            tables: world.get_resource::<DeviceTopology>(),
        }
    }

    /// The tables on the device.
    ///
    /// # Panics
    /// If there are none.
    pub(super) fn on_device(&self) -> &'a DeviceTopology {
        self.tables.expect(TABLES)
    }
}

/// What must hold where a field lives on a device.
pub(super) const TABLES: &str = "a field on a device has its tables there";

/// A row of values for every patch that a rank holds, copies of other ranks' patches included.
pub trait Store: Send + Sync {
    /// Name in messages.
    fn name(&self) -> &'static str;
    /// What it declares.
    fn spec(&self) -> &FieldSpec;
    /// Precision of the values: that of the run.
    fn precision(&self) -> Precision;

    /// How rows are cut.
    fn shape(&self) -> RowShape {
        self.spec().shape()
    }
    /// Bytes of what a [`Piece`] counts as one value: of a cell, or of a value of each vector.
    fn value_bytes(&self) -> usize {
        let spec = self.spec();
        spec.components.len() / spec.centring.groups() * self.precision().bytes()
    }
    /// Bytes of a row in all banks, and in what else goes along with them; the same on all ranks.
    fn total_row_bytes(&self) -> usize {
        self.spec().row_bytes(self.precision())
    }
    /// Bytes of a row in one bank.
    fn row_bytes(&self) -> usize {
        self.shape().row() * self.value_bytes()
    }

    /// The bank that holds the present state of `level`.
    fn present_bank(&self, level: usize) -> LevelBank {
        LevelBank { level, bank: 0 }
    }
    /// What a gather of ghost cells on `level` reads: its present bank, and of the level below those that it interpolates.
    fn read_by_gather(&self, level: usize) -> [Option<LevelBank>; 3] {
        [Some(self.present_bank(level)), None, None]
    }
    /// Layers of the copies in a bank that are up to date; the same on all ranks.
    fn valid_layers(&self, at: LevelBank) -> usize;
    /// Declares so many layers up to date.
    fn set_valid_layers(&mut self, at: LevelBank, layers: usize);
    /// Declares all copies of `level` out of date: there are other ones, or other cells of them are read.
    fn invalidate_halos(&mut self, level: usize);

    /// Follows a change of the patches of `level`, of which the rows `new` are new: room for all rows of the topology, other
    /// copies.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn on_regrid(
        &mut self,
        around: &MeshContext,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError>;
    /// Holds the rows of `octets` alone from now on, as zeros: what a hierarchy begins with is asked about part by part. A store
    /// that cannot holds them all.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn allocate_octets(&mut self, _octets: &[u32]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Fills new rows as the declaration says; not called where the plugin does it itself ([`Prolong::Own`](super::Prolong::Own)).
    ///
    /// # Errors
    /// The device fails.
    fn fill(&mut self, around: &MeshContext, new: &NewRows) -> Result<(), DeviceError>;

    /// Packs pieces of rows, or of registers, that follow each other into `out`, which begins with the first:
    /// `[piece][component][value]`, of registers `[piece][2][component][4][4]`.
    ///
    /// # Errors
    /// The device fails.
    fn pack(&self, at: LevelBank, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError>;
    /// Sets pieces of rows, of each row at most one, from what [`Store::pack`] gave; `owned` rows count as a change of the level.
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
    /// Starts to pack pieces in memory of the device; a store on the host packs there and copies.
    ///
    /// # Errors
    /// The device fails.
    fn pack_on_device(&self, at: LevelBank, list: &DevicePieces) -> Result<(), DeviceError> {
        let mut bytes = vec![0; self.bytes_of(list)];
        self.pack(at, list.entries, &mut bytes)?;
        list.device.upload(list.bytes(bytes.len()), 0, &bytes)
    }
    /// As [`Store::unpack`] from memory of the device.
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
    /// Bytes of the pieces of a list.
    fn bytes_of(&self, list: &DevicePieces) -> usize {
        let values = list.entries.iter().map(|piece| piece.values(self.shape()));
        values.sum::<usize>() * self.value_bytes()
    }

    /// Bytes reserved.
    fn bytes(&self) -> usize;
    /// Bytes of flux registers.
    fn register_bytes(&self) -> usize {
        0
    }
    /// Sums of the leaf cells of stretches of a level's own patches, `[stretch][component]`, if it is in the totals.
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
    /// Cells that a device has mended since the run began here.
    ///
    /// # Errors
    /// The device fails.
    fn mended_on_device(&self) -> Result<RepairedCells, DeviceError> {
        Ok(RepairedCells::default())
    }

    /// Values of a component in some rows of a level, `[row][k][j][i]`, in the store's precision.
    ///
    /// # Errors
    /// The device fails.
    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError>;
    /// Sets the values of a component in some rows of a level, which stand for its present time; other precisions are converted.
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
    /// Starts to pack the present state of components of whole rows of a level in memory of the device, component by component.
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

/// The banks that a gather on `level` reads and of which fewer than `depth` layers of copies are up to date.
pub fn stale_banks(
    store: &dyn Store,
    level: usize,
    depth: usize,
) -> impl Iterator<Item = LevelBank> + use<'_> {
    let read = store.read_by_gather(level).into_iter().flatten();
    read.filter(move |&at| store.valid_layers(at) < depth)
}

/// Declares `depth` layers of all copies that a gather on `level` reads up to date, where not more of them are.
pub fn mark_refreshed(store: &mut dyn Store, level: usize, depth: usize) {
    for at in store.read_by_gather(level).into_iter().flatten() {
        if store.valid_layers(at) < depth {
            store.set_valid_layers(at, depth);
        }
    }
}
