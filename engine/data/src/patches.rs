//! The own patches of a level as a system parameter, in Hilbert order; creates entities and rows for new patches.

use super::device::DeviceTopology;
use super::failure::FaultBox;
use super::particle_set::ParticleKinds;
use super::stores::Stores;
use bevy_ecs::prelude::*;
use bevy_ecs::query::{IterQueryData, QueryData, QueryFilter, ROQueryItem};
use bevy_ecs::system::SystemParam;
use nestar_engine_mesh::{
    Level, LevelClock, Levels, NewRows, Owner, Parent, PatchIndex, PatchRow, RefineRequests,
    RefinementFlags, Topology,
};
use rayon::prelude::*;

/// A patch of this rank as an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchEntity {
    entity: Entity,
    row: u32,
    position: usize,
}

impl PatchEntity {
    /// Returns the entity, for `Commands` and other queries.
    #[must_use]
    #[inline]
    pub fn entity(&self) -> Entity {
        self.entity
    }

    /// Returns the row of the patch in all fields and topology tables.
    #[must_use]
    #[inline]
    pub fn row(&self) -> u32 {
        self.row
    }

    /// Returns the position among the own patches of the level, as in `LevelRows::rows`.
    #[must_use]
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }
}

/// Iterates the own patches of a level in Hilbert order, with the components of a query, as a system parameter.
///
/// `Q` and `F` are those of a [`Query`]; patches that do not match are left out. The level is that of the system, or the
/// one given to [`Patches::visit`]. Results are the same on any number of ranks if the work on a patch depends only on
/// the patch.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use nestar_engine_data::Patches;
/// # use nestar_engine_mesh::{PatchIndex, RefinementFlags};
/// #[derive(Component)]
/// struct Nursery;
///
/// fn refine(mut patches: Patches<(&PatchIndex, &mut RefinementFlags), With<Nursery>>) {
///     for (patch, (index, mut flags)) in patches.iter_mut() {
///         // `patch.row()` is its row in all fields
///         if index.0[2] > 0 {
///             flags.refine();
///         }
///     }
/// }
/// # bevy_ecs::system::assert_is_system(refine);
/// ```
#[derive(SystemParam)]
pub struct Patches<'w, 's, Q: QueryData + 'static, F: QueryFilter + 'static = ()> {
    visited: Local<'s, Option<usize>>,
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    query: Query<'w, 's, Q, F>,
}

/// Returns the own patches of a level in Hilbert order, matching or not.
#[inline]
fn all(topology: &Topology, level: usize) -> impl Iterator<Item = PatchEntity> {
    let rows = topology.rows(level).iter().enumerate();
    rows.map(|(position, &row)| PatchEntity {
        entity: topology.entity(row),
        row,
        position,
    })
}

impl<'s, Q: QueryData + 'static, F: QueryFilter + 'static> Patches<'_, 's, Q, F> {
    /// Switches to another level. Systems that work on several levels call this for the level of the system too.
    pub fn visit(&mut self, level: usize) {
        *self.visited = Some(level);
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.visited.unwrap_or(self.clock.level)
    }

    /// Iterates the patches of the level in Hilbert order.
    pub fn iter(&self) -> impl Iterator<Item = (PatchEntity, ROQueryItem<'_, 's, Q>)> {
        let patches = all(&self.topology, self.level());
        patches.filter_map(|patch| Some((patch, self.query.get(patch.entity).ok()?)))
    }

    /// Iterates the patches of the level in Hilbert order, with components that may be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PatchEntity, Q::Item<'_, 's>)>
    where
        Q: IterQueryData,
    {
        let (patches, query) = (all(&self.topology, self.level()), &mut self.query);
        patches.filter_map(|patch| {
            // SAFETY: the rows of a level and their entities are distinct, so each is borrowed once, and `query` is
            // borrowed as long as the items
            let item = unsafe { query.get_unchecked(patch.entity) };
            Some((patch, item.ok()?))
        })
    }

    /// Returns the components of the patch in `row`, on any level; `None` if it does not match.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<ROQueryItem<'_, 's, Q>> {
        self.query.get(self.topology.entity(row)).ok()
    }

    /// Returns the components of the patch in `row`, as [`Patches::get`], which may be changed.
    #[must_use]
    pub fn get_mut(&mut self, row: u32) -> Option<Q::Item<'_, 's>> {
        self.query.get_mut(self.topology.entity(row)).ok()
    }

    /// Iterates the patches of the level by the threads of the run. A collection has Hilbert order; sums must not depend
    /// on the order.
    pub fn par_iter(
        &self,
    ) -> impl IndexedParallelIterator<Item = (PatchEntity, ROQueryItem<'_, 's, Q>)>
    where
        for<'a> ROQueryItem<'a, 's, Q>: Send,
    {
        self.iter().collect::<Vec<_>>().into_par_iter()
    }

    /// Iterates as [`Patches::par_iter`], with components that may be changed.
    pub fn par_iter_mut(
        &mut self,
    ) -> impl IndexedParallelIterator<Item = (PatchEntity, Q::Item<'_, 's>)>
    where
        Q: IterQueryData,
        for<'a> Q::Item<'a, 's>: Send,
    {
        self.iter_mut().collect::<Vec<_>>().into_par_iter()
    }
}

/// Moves the [`RefinementFlags`] of the current level to the tables of the next decision about it.
pub fn take_refinement_flags(world: &mut World) {
    let taken = world.run_system_cached(take_flags);
    taken.expect("a world with patches has the parameters of the system");
}

fn take_flags(mut patches: Patches<&mut RefinementFlags>, mut requests: ResMut<RefineRequests>) {
    for (patch, mut flags) in patches.iter_mut() {
        requests.set_flags(patch.row(), *flags);
        flags.set_if_neq(RefinementFlags::default());
    }
}

/// Spawns entities for the new rows of `level`, and for patches from other ranks if there are `arrivals`. Adapts all
/// data indexed by rows.
pub fn enter(world: &mut World, level: usize, new: Vec<u32>, arrivals: bool) {
    match arrivals {
        true => {
            let topology = world.resource::<Topology>();
            let unspawned = |row: &u32| topology.entity(*row) == Entity::PLACEHOLDER;
            let rows = topology.rows(level).iter().copied().filter(unspawned);
            spawn(world, &rows.collect::<Vec<_>>());
        }
        false => spawn(world, &new),
    }
    adapt_row_data(world, level, new);
}

/// Updates the parent entities of patches of `level` on this rank. A parent's entity is despawned when the parent
/// migrates.
pub fn renew_parents(world: &mut World, level: usize) {
    for row in world.resource::<Topology>().rows(level).to_vec() {
        let topology = world.resource::<Topology>();
        let (entity, parent) = (topology.entity(row), parent_entity(topology, row));
        let mut patch = world.entity_mut(entity);
        match parent {
            Some(parent) if patch.get::<Parent>().is_none_or(|known| known.0 != parent) => {
                patch.insert(Parent(parent));
            }
            None => {
                patch.remove::<Parent>();
            }
            Some(_) => {}
        }
    }
}

/// Returns the entity of the parent of `row`; a halo patch has none.
fn parent_entity(topology: &Topology, row: u32) -> Option<Entity> {
    let parent = topology
        .parent(row)
        .filter(|&parent| topology.is_owned(parent));
    parent.map(|parent| topology.entity(parent))
}

fn spawn(world: &mut World, rows: &[u32]) {
    for &row in rows {
        let topology = world.resource::<Topology>();
        let level = topology.level(row).expect("a new row is in use");
        let parent = parent_entity(topology, row);
        let place = (
            Level(level as u8),
            PatchIndex(topology.index(row)),
            PatchRow(row),
            Owner(topology.rank() as u32),
            RefinementFlags::default(),
        );
        let entity = match parent {
            Some(parent) => world.spawn((place, Parent(parent))).id(),
            None => world.spawn(place).id(),
        };
        world.resource_mut::<Topology>().set_entity(row, entity);
    }
}

/// Adapts all data indexed by rows to the new tables.
fn adapt_row_data(world: &mut World, level: usize, rows: Vec<u32>) {
    let capacity = world.resource::<Topology>().capacity();
    let mut requests = world.resource_mut::<RefineRequests>();
    requests.resize(capacity);
    for &row in &rows {
        requests.forget(row);
    }
    if level > 0 {
        world.resource_mut::<Levels>().align_with_parent(level);
    }
    if !update_tables(world, level, &rows) {
        return;
    }
    let operations = world.resource::<Stores>().all();
    for field in &operations {
        field.on_regrid(world, level, &rows);
    }
    for items in world.resource::<ParticleKinds>().all() {
        items.resize_rows(world);
    }
    let mut new = world.resource_mut::<NewRows>();
    new.level = level;
    new.rows = rows;
}

/// Updates the tables on the device, if there are any. Returns `true` if the run can continue.
fn update_tables(world: &mut World, level: usize, new: &[u32]) -> bool {
    if !world.contains_resource::<DeviceTopology>() {
        return true;
    }
    world.resource_scope(|world, mut tables: Mut<DeviceTopology>| {
        let updated = tables.update(world.resource::<Topology>(), level, new);
        world.resource::<FaultBox>().check(updated)
    })
}
