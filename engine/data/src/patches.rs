//! The own patches of a level as a system parameter: entities with their rows and components, in Hilbert order.

use bevy_ecs::prelude::*;
use bevy_ecs::query::{IterQueryData, QueryData, QueryFilter, ROQueryItem};
use bevy_ecs::system::SystemParam;
use nestar_engine_mesh::{LevelClock, RefineRequests, RefinementFlags, Topology};
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
