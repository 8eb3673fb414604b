//! Numbers of particles per patch, as arrays of snapshot levels.

use crate::data::{ParticleKinds, ParticleSetRef};
use bevy_ecs::prelude::World;
use nestar_snapshot::{ParticlesHeader, Values};

/// Returns the numbers of particles in some patches, one array per kind.
pub(super) fn counts(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let kinds = world.resource::<ParticleKinds>().all().into_iter();
    let of = |kind: ParticleSetRef| {
        let items = kind.of(world);
        let counts = rows.iter().map(|&row| items.count(row) as u32).collect();
        (name(&kind), Values::U32(counts))
    };
    kinds.map(of).collect()
}

/// Returns the names of these arrays.
pub(super) fn names(world: &World) -> Vec<String> {
    let kinds = world.resource::<ParticleKinds>().all();
    kinds.iter().map(name).collect()
}

fn name(kind: &ParticleSetRef) -> String {
    ParticlesHeader::counts_of(&kind.path)
}
