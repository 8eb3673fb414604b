//! Moves entities of particles between ranks, with their components.
//!
//! An entity is despawned where its particle has left and spawned where it has arrived.

use super::{Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_engine_data::particle_entities::{self, ParticleEntityIndex, ParticleId};
use nestar_engine_data::{InitialEstimate, ParticleKinds};
use nestar_engine_mesh::patch::{PatchComponentOperations, PatchComponents, decode, encode};

/// Updates the entities of particles that have moved or vanished since the last call.
///
/// Collective if particles may have changed ranks.
///
/// # Errors
/// A component rejects its bytes; another rank or the transport has failed.
pub fn update_entities(world: &mut World) -> Result<(), RanksError> {
    let mut vanished = Vec::new();
    for (number, kind) in world.resource::<ParticleKinds>().all().iter().enumerate() {
        kind.scope(world, |_, items| {
            let ids = items.take_removed().into_iter();
            vanished.extend(ids.map(|id| ParticleId::new(number, id)));
        });
    }
    particle_entities::despawn(world, &vanished);
    let Some(mut moved) = world.resource::<ParticleEntityIndex>().take_migrated() else {
        return Ok(());
    };
    if world.contains_resource::<InitialEstimate>() {
        return Ok(());
    }
    let departed = moved.departed();
    let attached = gather_components(world, &departed)?;
    particle_entities::despawn(world, &departed);
    if attached.is_empty() && !moved.all {
        return Ok(());
    }
    let arrived = moved.arrived();
    particle_entities::spawn_arrived(world, &arrived);
    attach(world, attached, |_, item| {
        arrived.binary_search(&item).is_ok()
    })
    .map_err(|why| RanksError::Transport(format!("between ranks, {why}")))
}

/// Values of one component: the particle and the bytes.
pub type AttachedComponents = Vec<(ParticleId, Vec<u8>)>;

/// Gathers the components of particles that have left any rank, by component.
fn gather_components(
    world: &World,
    departed: &[ParticleId],
) -> Result<Vec<AttachedComponents>, RanksError> {
    let kinds = world.resource::<PatchComponents>().kinds();
    let entities = |item: &ParticleId| Some((*item, particle_entities::find_entity(world, *item)?));
    let entities: Vec<(ParticleId, Entity)> = departed.iter().filter_map(entities).collect();
    let values = |kind: &PatchComponentOperations| -> AttachedComponents {
        let value =
            |&(item, entity): &(ParticleId, Entity)| Some((item, (kind.save)(world, entity)?));
        entities.iter().filter_map(value).collect()
    };
    let own: Vec<AttachedComponents> = kinds.iter().map(values).collect();
    let ranks = world.resource::<Ranks>();
    if !ranks.any(own.iter().any(|values| !values.is_empty()))? {
        return Ok(Vec::new());
    }
    let mut all = vec![AttachedComponents::new(); kinds.len()];
    for message in ranks.communicator().all_gather(&to_bytes(&own))? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        let theirs = from_bytes(&message).ok_or_else(broken)?;
        all.iter_mut()
            .zip(theirs)
            .for_each(|(all, theirs)| all.extend(theirs));
    }
    Ok(all)
}

/// Attaches values to the entities of the particles for which `here` returns `true`.
///
/// # Errors
/// The name of the component that rejects its bytes, and the reason.
pub fn attach(
    world: &mut World,
    values: Vec<AttachedComponents>,
    here: impl Fn(&World, ParticleId) -> bool,
) -> Result<(), String> {
    let kinds = world.resource::<PatchComponents>().kinds().to_vec();
    for (kind, values) in kinds.iter().zip(values) {
        for (item, bytes) in values {
            if here(world, item) {
                let entity = particle_entities::find_or_spawn(world, item);
                (kind.load)(world, entity, &bytes)
                    .map_err(|why| format!("the component `{}`: {why}", kind.name))?;
            }
        }
    }
    Ok(())
}

/// Encodes components one after the other, each preceded by its length.
///
/// A particle takes two entries: its kind, and its identity with the value.
pub fn to_bytes(values: &[AttachedComponents]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for values in values {
        let halves = values.iter().flat_map(|(item, value)| {
            [(item.kind() as u64, Vec::new()), (item.id(), value.clone())]
        });
        let encoded = encode(&halves.collect::<Vec<_>>());
        bytes.extend((encoded.len() as u64).to_le_bytes());
        bytes.extend(encoded);
    }
    bytes
}

/// Decodes bytes written by [`to_bytes`].
pub fn from_bytes(mut bytes: &[u8]) -> Option<Vec<AttachedComponents>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        let halves = decode(bytes.split_off(..usize::try_from(length).ok()?)?)?;
        let pairs = halves.as_chunks::<2>().0.iter();
        let value = |[kind, (id, value)]: &[(u64, Vec<u8>); 2]| {
            (ParticleId::new(kind.0 as usize, *id), value.clone())
        };
        all.push(pairs.map(value).collect());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::{ParticleId, from_bytes, to_bytes};

    #[test]
    fn attached_components_survive_encoding() {
        let values = vec![
            vec![
                (ParticleId::new(3, u64::MAX), vec![1, 2]),
                (ParticleId::new(0, 0), vec![]),
            ],
            vec![],
            vec![(ParticleId::new(1, 7), vec![5; 300])],
        ];
        let bytes = to_bytes(&values);
        assert_eq!(from_bytes(&bytes), Some(values));
        assert_eq!(from_bytes(&bytes[..bytes.len() - 1]), None);
    }
}
