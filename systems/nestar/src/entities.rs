//! Names for programs that use patches and particles as entities.

pub use bevy_ecs::prelude::{Commands, Component, Entity, Query, With, Without};
pub use nestar_engine::data::{ParticleEntities, ParticleId, Patches};
pub use nestar_engine::mesh::{
    Cost, Level, Observed, Owner, Parent, PatchComponent, PatchIndex, PatchRow, Pinned,
    RefinementFlags, Topology,
};
