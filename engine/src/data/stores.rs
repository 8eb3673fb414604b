//! The registered stores.

use super::held::PoolResource;
use super::pool::{Field, Pool};
use super::store::{MeshContext, Store};
use super::{Component, FaultBox, FieldSpec, Prolong, RowShape};
use crate::mesh::NewRows;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use nestar_snapshot::Values;

/// Work on a store while the world is at hand.
type StoreWork<'a> = &'a mut dyn FnMut(&World, &mut dyn Store);

/// A registered store: how to find it in the world.
#[derive(Clone, Copy)]
pub struct StoreRef {
    /// Its name.
    pub name: &'static str,
    /// The most layers of the copies of other ranks' patches that anything reads.
    pub depth: usize,
    of: fn(&World) -> &dyn Store,
    of_mut: fn(&mut World) -> &mut dyn Store,
    scope: fn(&mut World, StoreWork),
}

impl StoreRef {
    /// The store in `world`.
    #[must_use]
    pub fn of(self, world: &World) -> &dyn Store {
        (self.of)(world)
    }

    /// The store in `world`, for changing.
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

    /// Follows a change of `level`'s patches, of which the given rows are new; what goes wrong stands in [`FaultBox`].
    pub fn on_regrid(self, world: &mut World, level: usize, new: &[u32]) {
        self.scope(world, |world, store| {
            let followed = store.on_regrid(&MeshContext::of(world), level, new);
            world.resource::<FaultBox>().check(followed);
        });
    }

    /// As [`Store::load`].
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

    /// Fills the rows of [`NewRows`], unless there is a fault; what goes wrong stands in [`FaultBox`].
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

/// What is read of copies: so many layers of cells, with the values on their sides where a field is staggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloLayers {
    /// How many, of the rows' own cells.
    pub depth: usize,
    /// How rows are cut.
    pub shape: RowShape,
}

impl HaloLayers {
    /// How many, of the cells of a patch.
    #[must_use]
    pub fn cells(self) -> usize {
        self.depth * self.shape.width()
    }
}

/// The registered stores.
#[derive(Resource, Default)]
pub struct Stores(Vec<StoreRef>);

impl Stores {
    /// Adds the pool of field `F`.
    pub(crate) fn add_field<F: Field>(&mut self) {
        self.0.push(StoreRef {
            name: F::NAME,
            // restriction and interpolation into new patches read that many
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

    /// Adds a store that is a resource of its own; `depth` layers of copies are read.
    pub(crate) fn add<S: Store + Resource<Mutability = Mutable>>(
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

    /// Whether there is a store `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|store| store.name == name)
    }

    /// Declares that up to `depth` layers of the copies of the store `name` are read.
    pub(crate) fn reads(&mut self, name: &str, depth: usize) {
        for store in self.0.iter_mut().filter(|store| store.name == name) {
            store.depth = store.depth.max(depth);
        }
    }

    /// The layers of copies that are read, ascending.
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

    /// All stores, in the order of registration.
    #[must_use]
    pub fn all(&self) -> Vec<StoreRef> {
        self.0.clone()
    }

    /// The stores of `world` whose declaration is `wanted`, in the order of registration.
    #[must_use]
    pub fn of(world: &World, wanted: impl Fn(&FieldSpec) -> bool) -> Vec<StoreRef> {
        let stores = world.resource::<Self>().0.iter();
        let stores = stores.filter(|store| wanted(store.of(world).spec()));
        stores.copied().collect()
    }

    /// The components that have totals, in the order of registration.
    #[must_use]
    pub fn totalled(world: &World) -> Vec<&Component> {
        let stores = Self::of(world, |spec| spec.in_totals).into_iter();
        let components = stores.flat_map(|store| &store.of(world).spec().components);
        components.collect()
    }
}
