//! Particles: bitwise equal on any number of ranks, in any order, after any restart; mass is conserved exactly; orbits.

mod audit;
mod collapse;
pub(crate) mod criteria;
mod determinism;
mod devices;
mod entities;
mod external_orbits;
mod forces;
mod functions;
mod isolated_borders;
mod mirrors;
mod monte_carlo_tracers;
mod open_faces;
mod orbits;
mod pairs;
mod partition;
mod refusals;
mod snapshots;
mod spheres;
mod tracers;

use nestar::engine::mesh::Topology;
use nestar::systems::particles::{Particle, SpeciesMap};
use nestar_tests::Stepper;

/// The particles of a species that a rank has, by identity.
pub(crate) fn particles(stepper: &mut Stepper, species: &str) -> Vec<Particle> {
    let world = &stepper.0.engine().world;
    let all = world.resource::<SpeciesMap>();
    let species = all.named(species).expect("the species is there");
    let particles = species.particles(world.resource::<Topology>());
    particles.expect("particles are at hand")
}

/// The bits of all values of a particle.
pub(crate) fn bits(particle: &Particle) -> Vec<u64> {
    let Particle {
        id,
        level,
        position,
        velocity,
        acceleration,
        mass,
        scalars,
    } = particle;
    let numbers = [*position, *velocity, *acceleration].concat();
    let numbers = numbers.iter().chain([mass]).chain(scalars);
    let numbers = numbers.map(|number| number.to_bits());
    [*id, *level as u64].into_iter().chain(numbers).collect()
}
