//! Interface to all data with one row per patch. Communication, snapshots, restarts, memory estimates and load
//! balancing use only this.
//!
//! [`Pool`](super::Pool) implements it, and plugins may add others. [`Stores`] is the registry of all of them.

pub use nestar_kernels::mesh::pieces::{Piece, RowShape};

use super::device::DevicePool;
use super::device::topology::DeviceTopology;
use super::failure::FaultBox;
use super::field_spec::{Component, FieldSpec, Prolong};
use super::pool::{Field, Pool, PoolResource};
use super::storage::with_storage;
use super::{Precision, operators, reduce};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use nestar_engine_device::{Device, DeviceError, DeviceSpan};
use nestar_engine_mesh::{Levels, NewRows, Topology};
use nestar_kernels::PATCH;
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
    /// Denotes the fine-side flux registers between the level and the next finer one.
    pub const REGISTERS: usize = usize::MAX;
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
    /// Replaces all rows by zeroed rows of `_octets`, to estimate the initial hierarchy part by part. Stores without
    /// this keep all rows.
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

    /// Packs consecutive pieces of rows, `[piece][component][value]`, or of registers, `[piece][2][component][4][4]`.
    /// `out` starts with the first.
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
    fn mended_on_device(&self) -> Result<RepairedCells, DeviceError> {
        Ok(RepairedCells::default())
    }

    /// Returns a component in some rows of a level, `[row][k][j][i]`, in the precision of the store.
    ///
    /// # Errors
    /// The device fails.
    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError>;
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

/// A function of a store and the rest of the world.
type StoreWork<'a> = &'a mut dyn FnMut(&World, &mut dyn Store);

/// A registered store, for access in the world.
#[derive(Clone, Copy)]
pub struct StoreRef {
    /// Name of the store.
    pub name: &'static str,
    /// Largest halo width that is read.
    pub depth: usize,
    of: fn(&World) -> &dyn Store,
    of_mut: fn(&mut World) -> &mut dyn Store,
    scope: fn(&mut World, StoreWork),
}

impl StoreRef {
    /// Returns the store in `world`.
    #[must_use]
    pub fn of(self, world: &World) -> &dyn Store {
        (self.of)(world)
    }

    /// Returns the store in `world` for writing.
    #[must_use]
    pub fn of_mut(self, world: &mut World) -> &mut dyn Store {
        (self.of_mut)(world)
    }

    /// Calls `work` with the store and the rest of the world.
    pub fn scope<T>(
        self,
        world: &mut World,
        work: impl FnOnce(&World, &mut dyn Store) -> T,
    ) -> Option<T> {
        let (mut work, mut result) = (Some(work), None);
        (self.scope)(world, &mut |world, store| {
            result = work.take().map(|work| work(world, store));
        });
        result
    }

    /// Adapts the store to a regrid of `level` with new rows `new`; errors are reported in [`FaultBox`].
    pub fn on_regrid(self, world: &mut World, level: usize, new: &[u32]) {
        self.scope(world, |world, store| {
            let followed = store.on_regrid(&MeshContext::of(world), level, new);
            world.resource::<FaultBox>().check(followed);
        });
    }

    /// Loads a component as [`Store::load`].
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load(
        self,
        world: &mut World,
        level: usize,
        component: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String> {
        let load = |world: &World, store: &mut dyn Store| {
            store.load(&MeshContext::of(world), level, component, rows, values)
        };
        self.scope(world, load).unwrap_or(Ok(()))
    }

    /// Fills the rows of [`NewRows`] unless there is a fault; errors are reported in [`FaultBox`].
    pub fn fill(self, world: &mut World) {
        if world.resource::<FaultBox>().has_fault() {
            return;
        }
        if let Prolong::Own(fill) = self.of(world).spec().prolong {
            return fill(world);
        }
        self.scope(world, |world, store| {
            let filled = store.fill(&MeshContext::of(world), world.resource::<NewRows>());
            world.resource::<FaultBox>().check(filled);
        });
    }
}

/// Halo width that is read, with the shape of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloLayers {
    /// Number of layers, in cells of the rows.
    pub depth: usize,
    /// Shape of a row.
    pub shape: RowShape,
}

impl HaloLayers {
    /// Returns the number of layers in cells of a patch.
    #[must_use]
    pub fn cells(self) -> usize {
        self.depth * self.shape.width()
    }
}

/// All registered stores.
#[derive(Resource, Default)]
pub struct Stores(Vec<StoreRef>);

impl Stores {
    /// Adds the pool of field `F`.
    pub fn add_field<F: Field>(&mut self) {
        self.0.push(StoreRef {
            name: F::NAME,
            // restriction and prolongation read one layer
            depth: 1,
            of: |world| Pool::<F>::of(world),
            of_mut: |world| Pool::<F>::of_mut(world),
            scope: |world, work| {
                world.resource_scope(|world, mut held: Mut<PoolResource<F>>| {
                    work(world, &mut held.0)
                });
            },
        });
    }

    /// Adds a store that is a resource of its own and whose halo is read in `depth` layers.
    pub fn add<S: Store + Resource<Mutability = Mutable>>(
        &mut self,
        name: &'static str,
        depth: usize,
    ) {
        self.0.push(StoreRef {
            name,
            depth,
            of: |world| world.resource::<S>(),
            of_mut: |world| world.resource_mut::<S>().into_inner(),
            scope: |world, work| {
                world.resource_scope(|world, mut store: Mut<S>| work(world, &mut *store));
            },
        });
    }

    /// Returns `true` if there is a store `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|store| store.name == name)
    }

    /// Declares that up to `depth` halo layers of the store `name` are read.
    pub fn reads(&mut self, name: &str, depth: usize) {
        for store in self.0.iter_mut().filter(|store| store.name == name) {
            store.depth = store.depth.max(depth);
        }
    }

    /// Returns the distinct halo widths that are read, ascending.
    #[must_use]
    pub fn layers(&self, world: &World) -> Vec<HaloLayers> {
        let layers = |store: &StoreRef| HaloLayers {
            depth: store.depth,
            shape: store.of(world).shape(),
        };
        let mut layers: Vec<HaloLayers> = self.0.iter().map(layers).collect();
        layers.sort_unstable_by_key(|layers| (layers.cells(), layers.shape));
        layers.dedup();
        layers
    }

    /// Returns the list of all stores, in the order of registration.
    #[must_use]
    pub fn list(&self) -> &[StoreRef] {
        &self.0
    }

    /// Returns all stores in the order of registration.
    #[must_use]
    pub fn all(&self) -> Vec<StoreRef> {
        self.0.clone()
    }

    /// Returns the stores of `world` whose declaration satisfies `wanted`, in the order of registration.
    #[must_use]
    pub fn of(world: &World, wanted: impl Fn(&FieldSpec) -> bool) -> Vec<StoreRef> {
        let stores = world.resource::<Self>().0.iter();
        let stores = stores.filter(|store| wanted(store.of(world).spec()));
        stores.copied().collect()
    }

    /// Returns the components with totals, in the order of registration.
    #[must_use]
    pub fn totalled(world: &World) -> Vec<&Component> {
        let stores = Self::of(world, |spec| spec.in_totals).into_iter();
        let components = stores.flat_map(|store| &store.of(world).spec().components);
        components.collect()
    }
}

impl<F: Field> Store for Pool<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn spec(&self) -> &FieldSpec {
        &self.spec
    }

    fn precision(&self) -> Precision {
        Self::precision(self)
    }

    fn total_row_bytes(&self) -> usize {
        let results = usize::from(self.keeps_results) * Store::row_bytes(self);
        self.spec.row_bytes(self.precision()) + results
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn register_bytes(&self) -> usize {
        Self::register_bytes(self)
    }

    fn on_regrid(
        &mut self,
        around: &MeshContext,
        level: usize,
        new: &[u32],
    ) -> Result<(), DeviceError> {
        operators::on_regrid(self, around, level, new)
    }

    fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        with_storage!(&mut self.storage, typed => typed.allocate_octets(octets), _ => Ok(()))
    }

    fn fill(&mut self, around: &MeshContext, new: &NewRows) -> Result<(), DeviceError> {
        operators::fill(self, around, new)
    }

    fn node_sums(
        &self,
        around: &MeshContext,
        level: usize,
        nodes: &[Range<usize>],
    ) -> Result<Vec<f64>, DeviceError> {
        reduce::node_sums(self, around, level, nodes)
    }

    fn mended_on_device(&self) -> Result<RepairedCells, DeviceError> {
        let repaired = self.on_device().map(DevicePool::repaired);
        repaired.unwrap_or(Ok(RepairedCells::default()))
    }

    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        Ok(match self.precision() {
            Precision::Single => Values::F32(self.values(level, component..component + 1, rows)?),
            Precision::Double => Values::F64(self.values(level, component..component + 1, rows)?),
        })
    }

    fn load(
        &mut self,
        around: &MeshContext,
        level: usize,
        component: usize,
        rows: &[u32],
        values: &Values,
    ) -> Result<(), String> {
        let stored = match (self.precision(), values) {
            (Precision::Single, Values::F32(values)) => {
                self.load_as(level, component, rows, values)
            }
            (Precision::Double, Values::F64(values)) => {
                self.load_as(level, component, rows, values)
            }
            (Precision::Single, Values::F64(values)) => {
                let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                self.load_as(level, component, rows, &values)
            }
            (Precision::Double, Values::F32(values)) => {
                let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
                self.load_as(level, component, rows, &values)
            }
            _ => return Err("the array contains integers".into()),
        };
        stored?;
        self.set_time(level, around.levels.time(level));
        self.touch(level, rows);
        Ok(())
    }

    fn save_on_device(
        &self,
        level: usize,
        components: Range<usize>,
        list: &DevicePieces,
    ) -> Result<(), DeviceError> {
        let at = Store::present_bank(self, level);
        self.device().start_packing(at, components, list)
    }

    fn present_bank(&self, level: usize) -> LevelBank {
        let bank = self.current(level);
        LevelBank { level, bank }
    }

    fn read_by_gather(&self, level: usize) -> [Option<LevelBank>; 3] {
        // rows with fewer cells are not interpolated
        let below = level.checked_sub(1).filter(|_| self.spec.side == PATCH);
        let (old, new, _) = self.coarse_clock(level, self.time(level));
        let coarse = |bank| below.map(|level| LevelBank { level, bank });
        let older = coarse(old).filter(|_| old != new);
        [Some(self.present_bank(level)), coarse(new), older]
    }

    fn valid_layers(&self, at: LevelBank) -> usize {
        self.clocks[at.level].valid_layers[at.bank]
    }

    fn set_valid_layers(&mut self, at: LevelBank, layers: usize) {
        self.clocks[at.level].valid_layers[at.bank] = layers;
    }

    fn invalidate_halos(&mut self, level: usize) {
        self.clocks[level].valid_layers.fill(0);
    }

    fn pack(&self, at: LevelBank, pieces: &[Piece], out: &mut [u8]) -> Result<(), DeviceError> {
        self.fetch(at, 0..self.components(), pieces, out)
    }

    fn unpack(
        &mut self,
        at: LevelBank,
        pieces: &[Piece],
        bytes: &[u8],
        owned: bool,
    ) -> Result<(), DeviceError> {
        self.put(at, 0..self.components(), pieces, bytes)?;
        if owned {
            let rows: Vec<u32> = pieces.iter().map(|piece| piece.row).collect();
            self.touch(at.level, &rows);
        }
        Ok(())
    }

    fn pack_on_device(&self, at: LevelBank, list: &DevicePieces) -> Result<(), DeviceError> {
        self.device().start_packing(at, 0..self.components(), list)
    }

    fn unpack_on_device(
        &mut self,
        at: LevelBank,
        list: &DevicePieces,
        owned: bool,
    ) -> Result<(), DeviceError> {
        if owned {
            self.mark_changed(at.level);
        }
        self.device()
            .start_unpacking(at, 0..self.components(), list)
    }
}
