//! Particles that plugins create and remove in the middle of a run, such as stars.

pub(crate) use crate::particles::MassQuantum;
pub use crate::particles::{
    BirthCounters, MovedBy, NewParticle, ParticleBirths, ParticleSelection, ParticlesOnDemand,
    SelectedParticle, SpeciesMap,
};
