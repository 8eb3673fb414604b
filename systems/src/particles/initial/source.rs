//! Sources of initial particles.

/// An initial particle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitialParticle {
    /// Position, code length.
    pub position: [f64; 3],
    /// Velocity, code units.
    pub velocity: [f64; 3],
    /// Mass; ignored if all particles have the same mass.
    pub mass: f64,
    /// Scalars, in the order of the species; missing ones are 0.
    pub scalars: Vec<f64>,
}

/// Creates particles from their numbers.
pub trait ParticleSource: Send + Sync {
    /// Number of particles, including those that are not kept.
    fn count(&self) -> u64;
    /// Returns the identity of a particle, unique in the species: its number, unless a file gives another.
    fn identity(&self, number: u64) -> u64 {
        number
    }
    /// Creates a particle. Returns `None` if it is not kept.
    ///
    /// # Errors
    /// The condition is not a number.
    fn make(&self, number: u64) -> Result<Option<InitialParticle>, String>;
    /// Describes the origin of a particle in messages, for example the row of a file.
    fn origin(&self, _number: u64) -> String {
        String::new()
    }
    /// Explains why a particle may be outside the domain; empty if unknown.
    fn outside_hint(&self, _number: u64) -> String {
        String::new()
    }
    /// Mass of each particle, if the source determines it.
    fn mass(&self) -> Option<f64> {
        None
    }
}
