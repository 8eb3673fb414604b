//! Components of particle entities in snapshots: one blob per component and kind of particles, sorted by
//! identity.

use crate::comm::particle_entities::{self, AttachedComponents};
use crate::comm::{Ranks, RanksError};
use crate::data::particle_entities::ParticleId;
use crate::data::{ParticleKinds, ParticleSetRef};
use crate::mesh::Topology;
use crate::mesh::patch_component::{PatchComponentOperations, PatchComponents, decode, encode};
use crate::step::{Engine, Error};
use bevy_ecs::prelude::{Entity, World};
use nestar_snapshot::{Blob, Snapshot};

/// Group of the components of patches and particles in snapshots.
pub(super) const COMPONENTS: &str = "components/";

/// Returns the path of a component of a kind of particles.
fn path(items: &str, component: &str) -> String {
    format!("{COMPONENTS}{component}_of_{items}")
}

/// Returns the blobs that this program may store: path, version, and whether a snapshot must have it.
pub(super) fn kept(world: &World) -> Vec<(String, u32, bool)> {
    let components = world.resource::<PatchComponents>().kinds();
    let kinds = world.resource::<ParticleKinds>().all();
    let parts = |kind: &ParticleSetRef| {
        let part = |c: &PatchComponentOperations| (path(&kind.name, c.name), c.version, false);
        components.iter().map(part).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(parts).collect()
}

/// Returns the blobs of the present state; complete on the first rank. Collective.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub(super) fn parts(world: &World) -> Result<Vec<Blob>, Error> {
    let components = world.resource::<PatchComponents>().kinds();
    let kinds = world.resource::<ParticleKinds>().all();
    if components.is_empty() || kinds.is_empty() {
        return Ok(Vec::new());
    }
    let own: Vec<AttachedComponents> = components.iter().map(|c| values(world, c)).collect();
    let ranks = world.resource::<Ranks>();
    let mut all = own.clone();
    for message in ranks.gather_on_first(|| particle_entities::to_bytes(&own))? {
        let broken = || RanksError::Transport("a message with components is truncated".into());
        let theirs = particle_entities::from_bytes(&message.bytes).ok_or_else(broken)?;
        all.iter_mut()
            .zip(theirs)
            .for_each(|(all, theirs)| all.extend(theirs));
    }
    let mut parts = Vec::new();
    for (component, mut values) in components.iter().zip(all) {
        values.sort_unstable();
        for of_kind in values.chunk_by(|(one, _), (other, _)| one.kind() == other.kind()) {
            let (kind, by_id) = (&kinds[of_kind[0].0.kind()], of_kind.iter());
            let by_id: Vec<(u64, Vec<u8>)> = by_id.map(|(i, v)| (i.id(), v.clone())).collect();
            let path = path(&kind.name, component.name);
            parts.push(Blob::new(
                path,
                component.version,
                component.in_digest,
                encode(&by_id),
            ));
        }
    }
    Ok(parts)
}

/// Returns the values of a component on this rank.
fn values(world: &World, component: &PatchComponentOperations) -> AttachedComponents {
    let value = |entity: Entity| {
        let item = *world.get::<ParticleId>(entity)?;
        Some((item, (component.save)(world, entity)?))
    };
    (component.with)(world)
        .into_iter()
        .filter_map(value)
        .collect()
}

/// Attaches the components in the snapshot to own particles, which exist already.
///
/// # Errors
/// A blob is damaged, a component rejects it, or a device fails.
pub(super) fn restore(sim: &mut Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let place = snapshot.path().display().to_string();
    let wrong = |why: String| Error::Snapshot(format!("{place}: {why}"));
    let components = sim.world.resource::<PatchComponents>().kinds().to_vec();
    let kinds = sim.world.resource::<ParticleKinds>().all();
    let mut all = Vec::new();
    for component in &components {
        let mut values = AttachedComponents::new();
        for (number, kind) in kinds.iter().enumerate() {
            let path = path(&kind.name, component.name);
            let mut parts = snapshot.blobs();
            if !parts.any(|part| part.path == path && part.version == component.version) {
                continue;
            }
            let bytes = snapshot.read_blob(&path);
            let bytes = bytes.map_err(|e| Error::Snapshot(e.to_string()))?;
            let stored = decode(&bytes).ok_or_else(|| wrong(format!("{path} is truncated")))?;
            for (id, value) in stored {
                let topology = sim.world.resource::<Topology>();
                if kind.of(&sim.world).row_of(topology, id)?.is_some() {
                    values.push((ParticleId::new(number, id), value));
                }
            }
        }
        all.push(values);
    }
    particle_entities::attach(&mut sim.world, all, |_, _| true).map_err(wrong)
}
