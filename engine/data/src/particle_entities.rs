//! Particles as entities, to which systems attach components.
//!
//! An entity identifies its particle, not the place where the particle is stored; migration changes no component.
//! Either all particles of a kind are entities ([`ParticleSet::are_entities`]) or those that were asked for. An entity
//! is despawned with its particle. When a particle moves to another rank, its entity is spawned there with those
//! components that implement [`PatchComponent`](nestar_engine_mesh::PatchComponent) and are registered by
//! `Engine::register_carried`.

use super::particle_set::{ParticleKinds, ParticleSet};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine_device::DeviceError;
use nestar_engine_device::parallel::lock;
use nestar_engine_mesh::Topology;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The particle of an entity. Query it with attached components, as in `Query<(&ParticleId, &Birth)>`.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[component(immutable)]
pub struct ParticleId {
    kind: u32,
    /// Identity in halves, upper first, which reduces the alignment to 4 bytes.
    id: [u32; 2],
}

impl ParticleId {
    /// Creates the identifier of particle `id` of kind number `kind`.
    #[must_use]
    #[inline]
    pub fn new(kind: usize, id: u64) -> Self {
        Self {
            kind: kind as u32,
            id: [(id >> 32) as u32, id as u32],
        }
    }

    /// Returns the number of its kind, in the order of registration.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Returns the identity of the particle, unique in its kind.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        u64::from(self.id[0]) << 32 | u64::from(self.id[1])
    }
}

/// Approximate memory of an entity, bytes.
pub const ENTITY_BYTES: u64 = 84;

/// Index of the particles that are entities.
#[derive(Resource, Default)]
pub struct ParticleEntityIndex(Mutex<EntityMap>);

#[derive(Default)]
struct EntityMap {
    kinds: Vec<EntityKind>,
    /// All entities by particle; built at the first look-up.
    known: Option<BTreeMap<ParticleId, Entity>>,
    /// Particles that arrived from another rank (+1) or left for one (-1), in temporal order.
    migrations: Vec<(ParticleId, i32)>,
    /// `true` if particles may have migrated; equal on all ranks.
    may_have_migrated: bool,
}

/// A kind of particles.
struct EntityKind {
    name: String,
    /// `true` if all of its particles are entities.
    all: bool,
    /// `true` if any of its particles is or was an entity.
    made: bool,
}

impl EntityMap {
    fn kind(&self, name: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.name == name)
    }

    /// Returns `true` if any particle is or was an entity.
    fn made(&self) -> bool {
        self.kinds.iter().any(|kind| kind.made)
    }

    /// Records that a particle is an entity.
    fn make(&mut self, item: ParticleId) {
        if let Some(kind) = self.kinds.get_mut(item.kind()) {
            kind.made = true;
        }
    }

    /// Returns the entities by particle; `all` lists those of the world.
    fn known(
        &mut self,
        all: impl FnOnce() -> Vec<(ParticleId, Entity)>,
    ) -> &mut BTreeMap<ParticleId, Entity> {
        let made = self.made();
        self.known.get_or_insert_with(|| match made {
            true => BTreeMap::from_iter(all()),
            false => BTreeMap::new(),
        })
    }
}

impl ParticleEntityIndex {
    /// Adds a kind.
    pub fn add(&self, items: &dyn ParticleSet) {
        lock(&self.0).kinds.push(EntityKind {
            name: items.name().to_string(),
            all: items.are_entities(),
            made: false,
        });
    }

    /// Records that particles may migrate now. Collective.
    pub fn note_migration(&self) {
        lock(&self.0).may_have_migrated = true;
    }

    /// Returns `true` if entities may migrate with particles of this kind. If `false` on the sending rank, none
    /// migrate.
    pub fn may_migrate(&self, items: &dyn ParticleSet) -> bool {
        let entities = lock(&self.0);
        let Some(kind) = entities.kind(items.name()) else {
            return false;
        };
        let migrations = |(item, _): &(ParticleId, i32)| item.kind() == kind;
        let EntityKind { all, made, .. } = entities.kinds[kind];
        all || made || entities.migrations.iter().any(migrations)
    }

    /// Records arrivals (`by` = 1) or departures (`by` = -1) of particles.
    pub fn note(&self, items: &dyn ParticleSet, records: &[u8], by: i32) {
        let mut entities = lock(&self.0);
        let Some(kind) = entities.kind(items.name()) else {
            return;
        };
        let ids = records.chunks_exact(items.record_bytes());
        let ids = ids.filter_map(|record| items.identity(record));
        entities
            .migrations
            .extend(ids.map(|id| (ParticleId::new(kind, id), by)));
    }

    /// Takes the particles that arrived or left since the last call; `None` if none can have.
    pub fn take_migrated(&self) -> Option<MigratedParticles> {
        let mut entities = lock(&self.0);
        let may_have_migrated = std::mem::take(&mut entities.may_have_migrated);
        may_have_migrated.then(|| MigratedParticles {
            items: std::mem::take(&mut entities.migrations),
            made: entities.made(),
            all: entities.kinds.iter().any(|kind| kind.all),
        })
    }

    /// Returns `true` if all particles of a kind are entities.
    fn all_are_entities(&self, kind: usize) -> bool {
        lock(&self.0).kinds.get(kind).is_some_and(|kind| kind.all)
    }
}

/// Particles that arrived from other ranks (+1) or left for them (-1).
pub struct MigratedParticles {
    items: Vec<(ParticleId, i32)>,
    made: bool,
    /// `true` if all particles of some kind are entities.
    pub all: bool,
}

impl MigratedParticles {
    /// Returns the departed particles that may be entities here, sorted.
    pub fn departed(&mut self) -> Vec<ParticleId> {
        match self.made {
            true => self.by(-1),
            false => Vec::new(),
        }
    }

    /// Returns the arrived particles, sorted.
    pub fn arrived(&mut self) -> Vec<ParticleId> {
        self.by(1)
    }

    /// Returns the particles whose sum of arrivals and departures is `times`. There may be millions.
    fn by(&mut self, times: i32) -> Vec<ParticleId> {
        self.items.par_sort_unstable();
        let same = self.items.chunk_by(|(a, _), (b, _)| a == b);
        let sum = |same: &[(ParticleId, i32)]| same.iter().map(|(_, by)| by).sum::<i32>();
        same.filter(|same| sum(same) == times)
            .map(|same| same[0].0)
            .collect()
    }
}

/// Returns all particle entities of `world`.
fn all(world: &World) -> Vec<(ParticleId, Entity)> {
    let found = world.try_query::<(&ParticleId, Entity)>();
    let found = found.map(|mut query| query.iter(world).map(|(item, e)| (*item, e)).collect());
    found.unwrap_or_default()
}

/// Returns the entity of a particle, if there is one.
pub fn find_entity(world: &World, item: ParticleId) -> Option<Entity> {
    let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
    let known = entities.known(|| all(world));
    known.get(&item).copied()
}

/// Returns the entity of a particle on this rank, spawning it if necessary.
pub fn find_or_spawn(world: &mut World, item: ParticleId) -> Entity {
    if let Some(entity) = find_entity(world, item) {
        return entity;
    }
    let entity = world.spawn(item).id();
    let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
    entities.make(item);
    entities.known.get_or_insert_default().insert(item, entity);
    entity
}

/// Spawns entities for arrived particles of kinds whose particles are all entities.
pub fn spawn_arrived(world: &mut World, come: &[ParticleId]) {
    for &item in come {
        if world
            .resource::<ParticleEntityIndex>()
            .all_are_entities(item.kind())
        {
            find_or_spawn(world, item);
        }
    }
}

/// Despawns the entities of particles that are no longer on this rank.
pub fn despawn(world: &mut World, left: &[ParticleId]) {
    for &item in left {
        if let Some(entity) = find_entity(world, item) {
            world.despawn(entity);
            let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
            entities.known.as_mut().map(|known| known.remove(&item));
        }
    }
}

/// Despawns entities without a particle and spawns those of kinds whose particles are all entities. Runs at the start
/// of a run.
///
/// # Errors
/// The device fails.
pub fn initialise(world: &mut World) -> Result<(), DeviceError> {
    let mut stale = Vec::new();
    let kinds = world.resource::<ParticleKinds>().all();
    let topology = world.resource::<Topology>();
    for (item, _) in all(world) {
        let items = kinds[item.kind()].of(world);
        if items.row_of(topology, item.id())?.is_none() {
            stale.push(item);
        }
    }
    despawn(world, &stale);
    for (number, kind) in kinds.iter().enumerate() {
        let items = kind.of(world);
        if !items.are_entities() {
            continue;
        }
        let identities = items.identities(&items.occupied_rows(world.resource::<Topology>()))?;
        let new = |id| ParticleId::new(number, id);
        let mut new: Vec<ParticleId> = identities.into_iter().flatten().map(new).collect();
        new.retain(|&item| find_entity(world, item).is_none());
        let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
        new.first()
            .into_iter()
            .for_each(|item| entities.make(*item));
        // the next look-up rebuilds the index
        entities.known = None;
        drop(entities);
        world.spawn_batch(new);
    }
    Ok(())
}

/// System parameter that finds and spawns particle entities.
#[derive(SystemParam)]
pub struct ParticleEntities<'w, 's> {
    commands: Commands<'w, 's>,
    entities: Res<'w, ParticleEntityIndex>,
    all: Query<'w, 's, (&'static ParticleId, Entity)>,
}

impl ParticleEntities<'_, '_> {
    /// Returns the entity of the particle `id`, or `None` if it is not on this rank.
    /// A new entity becomes visible to queries after the system.
    ///
    /// # Errors
    /// The device fails.
    pub fn entity(
        &mut self,
        topology: &Topology,
        items: &dyn ParticleSet,
        id: u64,
    ) -> Result<Option<Entity>, DeviceError> {
        let mut entities = lock(&self.entities.0);
        let Some(kind) = entities.kind(items.name()) else {
            return Ok(None);
        };
        let (item, all) = (ParticleId::new(kind, id), &self.all);
        let known = entities.known(|| all.iter().map(|(item, e)| (*item, e)).collect());
        if let Some(&entity) = known.get(&item) {
            return Ok(Some(entity));
        }
        if items.row_of(topology, id)?.is_none() {
            return Ok(None);
        }
        let entity = self.commands.spawn(item).id();
        known.insert(item, entity);
        entities.make(item);
        Ok(Some(entity))
    }
}

#[cfg(test)]
mod tests {
    use super::ParticleId;

    #[test]
    fn an_item_keeps_its_identity_and_is_small() {
        for id in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let item = ParticleId::new(7, id);
            assert_eq!((item.kind(), item.id()), (7, id));
        }
        assert!(
            ParticleId::new(0, u64::MAX) < ParticleId::new(1, 0)
                && ParticleId::new(0, 5) < ParticleId::new(0, 1 << 33)
        );
        assert_eq!(size_of::<ParticleId>(), 12);
    }
}
