//! Components that go with their patch: to other ranks, into snapshots, and to the children where they say so.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

/// A component of patches that goes with its patch to other ranks and into snapshots. Register it with
/// `Engine::register_carried`; components that are not registered stay behind.
///
/// A patch keeps its components while it is refined and while its children go. They end with the patch, when its octet is
/// removed. New patches have none but those that their parent's [`PatchComponent::inherited`] gives.
pub trait PatchComponent: Component + Sized {
    /// Name in snapshots: letters, digits and `_`.
    const NAME: &'static str;
    /// Version of the bytes; count it up when they change their meaning.
    const VERSION: u32;
    /// Whether the digest of a snapshot covers it; false for what tells how a run computes, not what.
    const IN_DIGEST: bool = true;

    /// The component as bytes, on any machine the same.
    fn save(&self) -> Vec<u8>;

    /// What [`PatchComponent::save`] gave under the same version.
    ///
    /// # Errors
    /// Why these bytes are no such component.
    fn load(bytes: &[u8]) -> Result<Self, String>;

    /// What each child gets when the patch is refined; nothing unless this says so.
    fn inherited(&self) -> Option<Self> {
        None
    }
}

/// How the engine reaches one kind of component.
#[derive(Clone, Copy)]
pub(crate) struct PatchComponentOperations {
    pub name: &'static str,
    pub version: u32,
    pub in_digest: bool,
    pub save: fn(&World, Entity) -> Option<Vec<u8>>,
    pub load: fn(&mut World, Entity, &[u8]) -> Result<(), String>,
    pub inherited: fn(&World, Entity) -> Option<Vec<u8>>,
    /// The entities that have one.
    pub with: fn(&World) -> Vec<Entity>,
}

/// The registered components, in the order in which plugins registered them, which is that of all ranks.
#[derive(Resource, Clone, Default)]
pub(crate) struct PatchComponents {
    kinds: Vec<PatchComponentOperations>,
    /// A component of the engine's own that somebody attached and nobody registered.
    unregistered: Option<&'static str>,
}

impl PatchComponents {
    pub fn add<C: PatchComponent>(&mut self) {
        if self.has::<C>() {
            return;
        }
        self.kinds.push(PatchComponentOperations {
            name: C::NAME,
            version: C::VERSION,
            in_digest: C::IN_DIGEST,
            save: |world, entity| world.get::<C>(entity).map(C::save),
            load: |world, entity, bytes| {
                let component = C::load(bytes)?;
                world.entity_mut(entity).insert(component);
                Ok(())
            },
            inherited: |world, entity| Some(world.get::<C>(entity)?.inherited()?.save()),
            with: |world| {
                let found = world.try_query_filtered::<Entity, With<C>>();
                found.map_or_else(Vec::new, |mut query| query.iter(world).collect())
            },
        });
    }

    pub fn has<C: PatchComponent>(&self) -> bool {
        self.kinds.iter().any(|kind| kind.name == C::NAME)
    }

    /// What is wrong with the components that somebody attached, if anything.
    pub fn fault(&self) -> Option<String> {
        self.unregistered.map(|name| {
            format!(
                "a patch has the component `{name}`, which would be lost when the patch moves: call `sim.register_carried` for it where \
                 the plugin is built"
            )
        })
    }

    pub fn kinds(&self) -> &[PatchComponentOperations] {
        &self.kinds
    }
}

/// Hook of components that the engine obeys: without registration they would be lost when their patch moves.
pub(super) fn require_registered<C: PatchComponent>(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut carried) = world.get_resource_mut::<PatchComponents>()
        && !carried.has::<C>()
    {
        carried.unregistered = Some(C::NAME);
    }
}

/// Values of carried components: by kind, a number of the patch that the ranks have agreed on and the component's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchComponentValues(pub Vec<Vec<(u64, Vec<u8>)>>);

impl PatchComponentValues {
    /// What `patches` have; whole, or what their children get.
    pub fn of(world: &World, patches: &[(u64, Entity)], inherited: bool) -> Self {
        let kind = |kind: &PatchComponentOperations| {
            let read = if inherited { kind.inherited } else { kind.save };
            let value = |&(patch, entity): &(u64, Entity)| Some((patch, read(world, entity)?));
            patches.iter().filter_map(value).collect()
        };
        Self(
            world
                .resource::<PatchComponents>()
                .kinds()
                .iter()
                .map(kind)
                .collect(),
        )
    }

    /// Adds the values of `other`.
    pub fn append(&mut self, other: Self) {
        self.0.resize(self.0.len().max(other.0.len()), Vec::new());
        for (own, mut more) in self.0.iter_mut().zip(other.0) {
            own.append(&mut more);
        }
    }

    /// Attaches the values to the entities that `find` names; a patch that it does not find is none of this rank's.
    ///
    /// # Errors
    /// The component that refuses its bytes, and why.
    pub fn attach(
        &self,
        world: &mut World,
        find: impl Fn(&World, u64) -> Option<Entity>,
    ) -> Result<(), String> {
        let kinds = world.resource::<PatchComponents>().kinds().to_vec();
        for (kind, values) in kinds.iter().zip(&self.0) {
            for (patch, bytes) in values {
                if let Some(entity) = find(world, *patch) {
                    (kind.load)(world, entity, bytes)
                        .map_err(|why| format!("the component `{}`: {why}", kind.name))?;
                }
            }
        }
        Ok(())
    }

    /// As bytes: each kind, after its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kinds = self.0.iter().map(|values| encode(values));
        kinds
            .flat_map(|bytes| [&(bytes.len() as u64).to_le_bytes(), &bytes[..]].concat())
            .collect()
    }

    /// What [`PatchComponentValues::to_bytes`] gave.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut kinds = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
            kinds.push(decode(bytes.split_off(..usize::try_from(length).ok()?)?)?);
        }
        Some(Self(kinds))
    }
}

/// Values of one kind: each as the patch's number (u64, little-endian), its length (u32) and its bytes.
pub(crate) fn encode(values: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (patch, value) in values {
        bytes.extend(patch.to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

/// What [`encode`] gave.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let patch = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        let length = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        values.push((patch, bytes.split_off(..length as usize)?.to_vec()));
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::PatchComponentValues;

    #[test]
    fn values_travel_as_bytes() {
        let values = PatchComponentValues(vec![
            vec![(7, vec![1, 2]), (u64::MAX, vec![])],
            vec![],
            vec![(0, vec![0; 300])],
        ]);
        let bytes = values.to_bytes();
        assert_eq!(PatchComponentValues::from_bytes(&bytes), Some(values));
        assert_eq!(
            PatchComponentValues::from_bytes(&bytes[..bytes.len() - 1]),
            None
        );
        assert_eq!(PatchComponentValues::from_bytes(&bytes[..3]), None);
    }
}
