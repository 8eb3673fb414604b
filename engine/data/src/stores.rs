//! The registry of stores, and the pools of fields as stores.

use super::columns::ColumnSums;
use super::criteria::DerivedInputs;
use super::device::DevicePool;
use super::failure::FaultBox;
use super::field_spec::{Component, FieldSpec, Prolong};
use super::level::LevelView;
use super::pool::{BankTime, Field, Pool, PoolResource};
use super::storage::with_storage;
use super::store::{DevicePieces, LevelBank, MeshContext, Piece, RowShape, Store};
use super::{Precision, operators, reduce};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::NewRows;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::parameters::RepairedCells;
use nestar_snapshot::Values;
use std::ops::Range;

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

    fn repaired_on_device(&self) -> Result<RepairedCells, DeviceError> {
        let repaired = self.on_device().map(DevicePool::repaired);
        repaired.unwrap_or(Ok(RepairedCells::default()))
    }

    fn save(&self, level: usize, component: usize, rows: &[u32]) -> Result<Values, DeviceError> {
        Ok(match self.precision() {
            Precision::Single => Values::F32(self.values(level, component..component + 1, rows)?),
            Precision::Double => Values::F64(self.values(level, component..component + 1, rows)?),
        })
    }

    fn prepare_column_sums(&self, quantities: &DerivedInputs) {
        self.prepare_columns(quantities);
    }

    fn column_sums(
        &self,
        around: &MeshContext,
        level: usize,
        wanted: &ColumnSums,
        sums: &mut Vec<f64>,
    ) -> Result<bool, DeviceError> {
        let level = LevelView::between_steps(around, level);
        reduce::column_sums(self, &level, wanted, sums)?;
        Ok(true)
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
        let BankTime { bank, time } = self.gathered(level);
        let (old, new, _) = self.coarse_clock(level, time);
        let coarse = |bank| below.map(|level| LevelBank { level, bank });
        let older = coarse(old).filter(|_| old != new);
        [Some(LevelBank { level, bank }), coarse(new), older]
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
