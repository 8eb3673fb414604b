//! How many items lie in patches: arrays of the levels of a snapshot.

use crate::data::{ParticleKinds, ParticleSetRef};
use bevy_ecs::prelude::World;
use nestar_snapshot::{ParticlesHeader, Values};

/// How many items lie in some patches, by kind, in the arrays of a snapshot.
pub(super) fn counts(world: &World, rows: &[u32]) -> Vec<(String, Values)> {
    let kinds = world.resource::<ParticleKinds>().all().into_iter();
    let of = |kind: ParticleSetRef| {
        let items = kind.of(world);
        let counts = rows.iter().map(|&row| items.count(row) as u32).collect();
        (name(&kind), Values::U32(counts))
    };
    kinds.map(of).collect()
}

/// Names of these arrays.
pub(super) fn names(world: &World) -> Vec<String> {
    let kinds = world.resource::<ParticleKinds>().all();
    kinds.iter().map(name).collect()
}

fn name(kind: &ParticleSetRef) -> String {
    ParticlesHeader::counts_of(&kind.path)
}
