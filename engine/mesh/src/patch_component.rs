//! Components that belong to a patch on any rank.
//!
//! They migrate with it, are saved in snapshots, and may be inherited by children.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

/// A component that migrates with its patch and is saved in snapshots. Register it with `Engine::register_carried`;
/// unregistered components do not migrate.
///
/// A patch keeps its components while it is refined or coarsened; they are removed with the patch. A new patch has only
/// those that [`PatchComponent::inherited`] of its parent returns.
pub trait PatchComponent: Component + Sized {
    /// Name in snapshots: letters, digits and `_`.
    const NAME: &'static str;
    /// Version of the bytes; increase it when their meaning changes.
    const VERSION: u32;
    /// `true` if the digest of snapshots includes it; `false` for data that does not affect results.
    const IN_DIGEST: bool = true;

    /// Returns the component as bytes, independent of the machine.
    fn save(&self) -> Vec<u8>;

    /// Restores the bytes of [`PatchComponent::save`] of the same version.
    ///
    /// # Errors
    /// The reason why the bytes are invalid.
    fn load(bytes: &[u8]) -> Result<Self, String>;

    /// Returns the component that each child inherits at refinement, if any.
    fn inherited(&self) -> Option<Self> {
        None
    }
}

/// Access to one kind of component.
#[derive(Clone, Copy)]
pub struct PatchComponentOperations {
    /// Name in snapshots.
    pub name: &'static str,
    /// Version of the bytes.
    pub version: u32,
    /// `true` if the digest of snapshots includes it.
    pub in_digest: bool,
    /// Returns the component of an entity as bytes, if it has one.
    pub save: fn(&World, Entity) -> Option<Vec<u8>>,
    /// Attaches the component to an entity; an error says why the bytes are invalid.
    pub load: fn(&mut World, Entity, &[u8]) -> Result<(), String>,
    /// Returns the bytes that the children of an entity inherit.
    pub inherited: fn(&World, Entity) -> Option<Vec<u8>>,
    /// Returns all entities with this component.
    pub with: fn(&World) -> Vec<Entity>,
}

/// Registered components in the order of registration, which is equal on all ranks.
#[derive(Resource, Clone, Default)]
pub struct PatchComponents {
    kinds: Vec<PatchComponentOperations>,
    /// Name of an engine component that was attached without registration.
    unregistered: Option<&'static str>,
}

impl PatchComponents {
    /// Registers a component; a second call has no effect.
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

    /// Returns `true` if the component is registered.
    pub fn has<C: PatchComponent>(&self) -> bool {
        self.kinds.iter().any(|kind| kind.name == C::NAME)
    }

    /// Returns the message about a component attached without registration, if there is one.
    pub fn fault(&self) -> Option<String> {
        self.unregistered.map(|name| {
            format!(
                "a patch has the component `{name}`, which would be lost when the patch moves: call `sim.register_carried` for it where \
                 the plugin is built"
            )
        })
    }

    /// Returns all registered components.
    pub fn kinds(&self) -> &[PatchComponentOperations] {
        &self.kinds
    }
}

/// Hook of engine components: detects attachment without registration.
pub(super) fn require_registered<C: PatchComponent>(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut carried) = world.get_resource_mut::<PatchComponents>()
        && !carried.has::<C>()
    {
        carried.unregistered = Some(C::NAME);
    }
}

/// Values of components: for each kind, the number of the patch, agreed by all ranks, and the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchComponentValues(pub Vec<Vec<(u64, Vec<u8>)>>);

impl PatchComponentValues {
    /// Returns the components of `patches`, or with `inherited` those of their children.
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

    /// Appends the values of `other`.
    pub fn append(&mut self, other: Self) {
        self.0.resize(self.0.len().max(other.0.len()), Vec::new());
        for (own, mut more) in self.0.iter_mut().zip(other.0) {
            own.append(&mut more);
        }
    }

    /// Attaches the values to entities; `find` returns `None` for patches of other ranks.
    ///
    /// # Errors
    /// The component whose bytes are invalid, with the reason.
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

    /// Returns the values as bytes: each kind after its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kinds = self.0.iter().map(|values| encode(values));
        kinds
            .flat_map(|bytes| [&(bytes.len() as u64).to_le_bytes(), &bytes[..]].concat())
            .collect()
    }

    /// Decodes the bytes of [`PatchComponentValues::to_bytes`].
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut kinds = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
            kinds.push(decode(bytes.split_off(..usize::try_from(length).ok()?)?)?);
        }
        Some(Self(kinds))
    }
}

/// Encodes the values of one kind: number of the patch (u64, little-endian), length (u32) and bytes.
pub fn encode(values: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (patch, value) in values {
        bytes.extend(patch.to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

/// Decodes the bytes of [`encode`].
pub fn decode(mut bytes: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
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
