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

#[cfg(test)]
mod tests {
    use super::Patches;
    use crate::failure::FaultBox;
    use crate::new_patches::enter;
    use crate::{ParticleKinds, Stores};
    use bevy_ecs::prelude::*;
    use bevy_ecs::system::RunSystemOnce;
    use nestar_engine_mesh::hilbert::{bits_for, hilbert_key};
    use nestar_engine_mesh::{Domain, LevelClock, Levels, NewRows, RefineRequests, Topology};
    use nestar_engine_mesh::{Level, PatchIndex, PatchRow};
    use rayon::prelude::*;
    use std::time::Instant;

    #[derive(Component, Clone, Copy, Debug, PartialEq)]
    struct Mark(f64);

    /// Returns a world with a root grid of `root` patches.
    fn world(root: [i32; 3]) -> World {
        let domain = Domain {
            root,
            left_edge: [0.0; 3],
            right_edge: [1.0; 3],
            periodic: [true; 3],
        };
        let mut world = World::new();
        world.insert_resource(Topology::new(domain, 2));
        world.insert_resource(Levels::new(3, 0.0));
        world.init_resource::<LevelClock>();
        world.init_resource::<RefineRequests>();
        world.init_resource::<NewRows>();
        world.init_resource::<Stores>();
        world.init_resource::<ParticleKinds>();
        world.init_resource::<FaultBox>();
        let rows = world.resource_mut::<Topology>().create_root();
        enter(&mut world, 0, rows);
        world
    }

    /// Refines and coarsens the patches of `level` for which `refine` and `coarsen` are `true`.
    fn regrid(
        world: &mut World,
        level: usize,
        refine: fn([i32; 3]) -> bool,
        coarsen: fn([i32; 3]) -> bool,
    ) {
        let topology = world.resource::<Topology>();
        let these = |leaf: bool, choose: fn([i32; 3]) -> bool| -> Vec<u32> {
            let rows = topology.rows(level).iter().copied();
            rows.filter(|&row| topology.is_leaf(row) == leaf && choose(topology.index(row)))
                .collect()
        };
        let (refine, coarsen) = (these(true, refine), these(false, coarsen));
        let children = coarsen.iter().filter_map(|&row| topology.first_child(row));
        let gone: Vec<Entity> = children
            .flat_map(|first| first..first + 8)
            .map(|row| topology.entity(row))
            .collect();
        let mut topology = world.resource_mut::<Topology>();
        let created = topology.change(level, &refine, &coarsen);
        for entity in gone {
            world.despawn(entity);
        }
        enter(world, level + 1, created);
    }

    /// Returns the Hilbert keys of the patches of `level` in the order of the iterator, with their indices.
    fn visited(world: &mut World, level: usize) -> Vec<(u64, [i32; 3])> {
        let root = world.resource::<Topology>().domain.root;
        let look = move |mut patches: Patches<(&Level, &PatchIndex, &PatchRow)>| {
            patches.visit(level);
            let found = patches.iter().enumerate().map(|(n, (patch, item))| {
                let (of, index, row) = item;
                assert_eq!((usize::from(of.0), row.0), (level, patch.row()));
                assert_eq!(patch.position(), n);
                let key = hilbert_key(index.0.map(|i| i as u32), bits_for(root, level));
                (key, index.0)
            });
            found.collect::<Vec<_>>()
        };
        world.run_system_once(look).unwrap()
    }

    #[test]
    fn patches_are_visited_in_hilbert_order_on_every_level_and_after_a_regrid() {
        let mut world = world([4, 3, 2]);
        regrid(&mut world, 0, |index| index[0] < 2, |_| false);
        regrid(&mut world, 1, |index| index[0] % 4 == 1, |_| false);
        let counts = |world: &mut World| {
            [0, 1, 2].map(|level| {
                let found = visited(world, level);
                assert!(found.is_sorted(), "level {level}");
                found.len()
            })
        };
        assert_eq!(counts(&mut world), [24, 96, 192]);
        regrid(
            &mut world,
            1,
            |index| index[0] % 4 == 2,
            |index| index[0] % 4 == 1,
        );
        regrid(&mut world, 0, |index| index[0] == 3, |_| false);
        assert_eq!(counts(&mut world), [24, 144, 192]);
    }

    #[test]
    fn a_filter_selects_patches_and_changes_stay() {
        let mut world = world([4, 4, 4]);
        let mark = |patches: Patches<&PatchIndex>, mut commands: Commands| {
            for (patch, index) in patches.iter().filter(|(_, index)| index.0[1] == 2) {
                let mark = Mark(f64::from(index.0[0]));
                commands.entity(patch.entity()).insert(mark);
            }
        };
        world.run_system_once(mark).unwrap();
        let change = |mut patches: Patches<(&PatchRow, &mut Mark), With<Level>>| {
            for (patch, (row, mut mark)) in patches.iter_mut() {
                assert_eq!(row.0, patch.row());
                mark.0 += 10.0;
            }
            patches
                .par_iter_mut()
                .for_each(|(_, (_, mut mark))| mark.0 *= 2.0);
        };
        world.run_system_once(change).unwrap();
        let read = |mut patches: Patches<&mut Mark>, others: Patches<&PatchRow, Without<Mark>>| {
            let found: Vec<_> = patches.iter().map(|(patch, mark)| (patch, *mark)).collect();
            let at_once: Vec<_> = patches
                .par_iter()
                .map(|(patch, mark)| (patch, *mark))
                .collect();
            assert_eq!(found, at_once);
            for (patch, mark) in &found {
                assert_eq!(patches.get(patch.row()), Some(mark));
                patches.get_mut(patch.row()).unwrap().0 += 1.0;
                assert_eq!(patches.get(patch.row()), Some(&Mark(mark.0 + 1.0)));
            }
            assert!(
                others
                    .iter()
                    .all(|(patch, _)| patches.get(patch.row()).is_none())
            );
            let mut places: Vec<usize> = found.iter().map(|(patch, _)| patch.position()).collect();
            assert!(places.is_sorted());
            places.extend(others.iter().map(|(patch, _)| patch.position()));
            places.sort_unstable();
            assert_eq!(places, (0..64).collect::<Vec<_>>());
            let mut marks: Vec<f64> = found.iter().map(|(_, mark)| mark.0).collect();
            marks.sort_by(f64::total_cmp);
            marks
        };
        let expected: Vec<f64> = (0..16).map(|n| 20.0 + 2.0 * f64::from(n / 4)).collect();
        assert_eq!(world.run_system_once(read).unwrap(), expected);
    }

    /// Returns the least milliseconds of several runs of `work`.
    fn milliseconds<M>(
        world: &mut World,
        what: &str,
        work: impl IntoSystem<(), (), M> + 'static,
    ) -> f64 {
        let mut least = f64::INFINITY;
        let id = world.register_system(work);
        for _ in 0..9 {
            let begin = Instant::now();
            world.run_system(id).unwrap();
            least = least.min(1e3 * begin.elapsed().as_secs_f64());
        }
        println!("{what} takes {least:.3} ms");
        least
    }

    /// The target is 2 ms; the limit leaves room for a busy machine.
    #[test]
    fn one_hundred_thousand_patches_take_milliseconds() {
        let mut world = world([48, 48, 44]);
        let attach = |patches: Patches<&PatchIndex>, mut commands: Commands| {
            for (patch, index) in patches.iter() {
                let mark = Mark(f64::from(index.0[0]));
                commands.entity(patch.entity()).insert(mark);
            }
        };
        world.run_system_once(attach).unwrap();
        let sum = |patches: Patches<(&PatchIndex, &Mark)>| {
            let sum: f64 = patches.iter().map(|(_, (_, mark))| mark.0).sum();
            assert_eq!(sum, 23.5 * 48.0 * 48.0 * 44.0);
        };
        let add = |mut patches: Patches<&mut Mark>| {
            for (_, mut mark) in patches.iter_mut() {
                mark.0 += 0.0;
            }
        };
        let at_once = |mut patches: Patches<&mut Mark>| {
            patches
                .par_iter_mut()
                .for_each(|(_, mut mark)| mark.0 += 0.0);
        };
        let count = 48 * 48 * 44;
        let reads = milliseconds(&mut world, &format!("reading {count} patches"), sum);
        let changes = milliseconds(&mut world, "changing them", add);
        let parallel = milliseconds(&mut world, "changing them by rayon", at_once);
        assert!(reads.max(changes).max(parallel) < 20.0);
    }
}
