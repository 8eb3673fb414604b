//! Items as entities: what a system attaches to single items, and asks the world for.
//!
//! An entity says which item it is, not where that lies: items go from patch to patch, to the device and back, and no component is touched.
//! Of a kind of items either each is an entity ([`ParticleSet::are_entities`]) or those that somebody has asked for; nothing else differs. An entity
//! ends with its item, and where the item goes to another rank it is made anew there, with the components that are
//! [`PatchComponent`](crate::mesh::PatchComponent) and registered by `Engine::register_carried`.

use super::items::rows;
use super::{ParticleKinds, ParticleSet};
use crate::device::DeviceError;
use crate::device::parallel::lock;
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The item that an entity is. Attach components beside it, and ask for both: `Query<(&ParticleId, &Birth)>`.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[component(immutable)]
pub struct ParticleId {
    kind: u32,
    /// In halves, upper first: there may be very many of these.
    id: [u32; 2],
}

impl ParticleId {
    /// The item with an identity of the kind with a number.
    #[must_use]
    pub fn new(kind: usize, id: u64) -> Self {
        Self {
            kind: kind as u32,
            id: [(id >> 32) as u32, id as u32],
        }
    }

    /// The number of its kind among all, in the order of registration.
    #[must_use]
    pub fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> u64 {
        u64::from(self.id[0]) << 32 | u64::from(self.id[1])
    }
}

/// Bytes that an entity takes, about.
pub const ENTITY_BYTES: u64 = 84;

/// Which items are entities.
#[derive(Resource, Default)]
pub struct ParticleEntityIndex(Mutex<EntityMap>);

#[derive(Default)]
struct EntityMap {
    kinds: Vec<EntityKind>,
    /// All of them, once somebody has looked for one.
    known: Option<BTreeMap<ParticleId, Entity>>,
    /// Items that have come from other ranks (1), or left for them (-1), in the order of time.
    passed: Vec<(ParticleId, i32)>,
    /// Whether items may have gone to other ranks, on all of them alike.
    delivered: bool,
}

/// A kind of items.
struct EntityKind {
    name: String,
    /// Whether each of its items is an entity.
    all: bool,
    /// Whether any is, or was.
    made: bool,
}

impl EntityMap {
    fn kind(&self, name: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.name == name)
    }

    /// Whether there are any.
    fn made(&self) -> bool {
        self.kinds.iter().any(|kind| kind.made)
    }

    /// Notes that an item is an entity.
    fn make(&mut self, item: ParticleId) {
        if let Some(kind) = self.kinds.get_mut(item.kind()) {
            kind.made = true;
        }
    }

    /// The entities by item; `all` of the world.
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
    /// Learns of a kind.
    pub(crate) fn add(&self, items: &dyn ParticleSet) {
        lock(&self.0).kinds.push(EntityKind {
            name: items.name().to_string(),
            all: items.are_entities(),
            made: false,
        });
    }

    /// Notes that items may go to other ranks now; all ranks do.
    pub(crate) fn note_migration(&self) {
        lock(&self.0).delivered = true;
    }

    /// Whether entities may follow items of a kind from rank to rank. Where none may on the rank that an item leaves, none does anywhere.
    pub(crate) fn may_migrate(&self, items: &dyn ParticleSet) -> bool {
        let entities = lock(&self.0);
        let Some(kind) = entities.kind(items.name()) else {
            return false;
        };
        let passed = |(item, _): &(ParticleId, i32)| item.kind() == kind;
        let EntityKind { all, made, .. } = entities.kinds[kind];
        all || made || entities.passed.iter().any(passed)
    }

    /// Notes that items have come from another rank (1), or leave for one (-1).
    pub(crate) fn note(&self, items: &dyn ParticleSet, records: &[u8], by: i32) {
        let mut entities = lock(&self.0);
        let Some(kind) = entities.kind(items.name()) else {
            return;
        };
        let ids = records.chunks_exact(items.record_bytes());
        let ids = ids.filter_map(|record| items.identity(record));
        entities
            .passed
            .extend(ids.map(|id| (ParticleId::new(kind, id), by)));
    }

    /// Which items have come to this rank or left since this was asked last; nothing if none can have.
    pub(crate) fn take_migrated(&self) -> Option<MigratedParticles> {
        let mut entities = lock(&self.0);
        let delivered = std::mem::take(&mut entities.delivered);
        delivered.then(|| MigratedParticles {
            items: std::mem::take(&mut entities.passed),
            made: entities.made(),
            all: entities.kinds.iter().any(|kind| kind.all),
        })
    }

    /// Whether each item of a kind is an entity.
    fn are_all(&self, kind: usize) -> bool {
        lock(&self.0).kinds.get(kind).is_some_and(|kind| kind.all)
    }
}

/// Items that have come from other ranks (1), or left for them (-1).
pub(crate) struct MigratedParticles {
    items: Vec<(ParticleId, i32)>,
    made: bool,
    /// Whether there is a kind of which each item is an entity.
    pub all: bool,
}

impl MigratedParticles {
    /// Those that have left and may be entities here, in their order.
    pub fn departed(&mut self) -> Vec<ParticleId> {
        match self.made {
            true => self.by(-1),
            false => Vec::new(),
        }
    }

    /// Those that have come, in their order.
    pub fn arrived(&mut self) -> Vec<ParticleId> {
        self.by(1)
    }

    /// Those that have come so many times more than they have left. There may be millions.
    fn by(&mut self, times: i32) -> Vec<ParticleId> {
        self.items.par_sort_unstable();
        let same = self.items.chunk_by(|(a, _), (b, _)| a == b);
        let sum = |same: &[(ParticleId, i32)]| same.iter().map(|(_, by)| by).sum::<i32>();
        same.filter(|same| sum(same) == times)
            .map(|same| same[0].0)
            .collect()
    }
}

/// All entities of items in `world`.
fn all(world: &World) -> Vec<(ParticleId, Entity)> {
    let found = world.try_query::<(&ParticleId, Entity)>();
    let found = found.map(|mut query| query.iter(world).map(|(item, e)| (*item, e)).collect());
    found.unwrap_or_default()
}

/// The entity of an item, if it is one.
pub(crate) fn find_entity(world: &World, item: ParticleId) -> Option<Entity> {
    let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
    let known = entities.known(|| all(world));
    known.get(&item).copied()
}

/// The entity of an item that this rank has; made if it is none.
pub(crate) fn find_or_spawn(world: &mut World, item: ParticleId) -> Entity {
    if let Some(entity) = find_entity(world, item) {
        return entity;
    }
    let entity = world.spawn(item).id();
    let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
    entities.make(item);
    entities.known.get_or_insert_default().insert(item, entity);
    entity
}

/// Makes entities of items that have come to this rank, where each of their kind is one.
pub(crate) fn spawn_arrived(world: &mut World, come: &[ParticleId]) {
    for &item in come {
        if world.resource::<ParticleEntityIndex>().are_all(item.kind()) {
            find_or_spawn(world, item);
        }
    }
}

/// Ends the entities of items that this rank has no longer.
pub(crate) fn despawn(world: &mut World, left: &[ParticleId]) {
    for &item in left {
        if let Some(entity) = find_entity(world, item) {
            world.despawn(entity);
            let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
            entities.known.as_mut().map(|known| known.remove(&item));
        }
    }
}

/// Ends the entities of items that are not there, and makes those of all kinds of which each item is one: when a run begins.
///
/// # Errors
/// The device fails.
pub(crate) fn initialise(world: &mut World) -> Result<(), DeviceError> {
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
        let mut ids = Vec::new();
        for row in rows(world.resource::<Topology>(), items) {
            ids.extend(items.identities(row)?);
        }
        let new = |id| ParticleId::new(number, id);
        let mut new: Vec<ParticleId> = ids.into_iter().map(new).collect();
        new.retain(|&item| find_entity(world, item).is_none());
        let mut entities = lock(&world.resource::<ParticleEntityIndex>().0);
        new.first()
            .into_iter()
            .for_each(|item| entities.make(*item));
        // whoever looks for one finds out again
        entities.known = None;
        drop(entities);
        world.spawn_batch(new);
    }
    Ok(())
}

/// Items as entities, as a system's parameter.
#[derive(SystemParam)]
pub struct ParticleEntities<'w, 's> {
    commands: Commands<'w, 's>,
    entities: Res<'w, ParticleEntityIndex>,
    all: Query<'w, 's, (&'static ParticleId, Entity)>,
}

impl ParticleEntities<'_, '_> {
    /// The entity of the item with an identity, for `Commands` and queries; none if this rank has no such item. One that is made now is
    /// found by queries behind the system.
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
