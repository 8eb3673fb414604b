//! What makes particles, by their numbers.

/// A particle at the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitialParticle {
    /// Where, code length.
    pub position: [f64; 3],
    /// How fast, code units.
    pub velocity: [f64; 3],
    /// Its mass; of no meaning where all have one.
    pub mass: f64,
    /// Its scalars, in the order of the species; 0 where there are fewer.
    pub scalars: Vec<f64>,
}

/// Makes particles by their numbers.
pub trait ParticleSource: Send + Sync {
    /// How many numbers there are: they count from 0.
    fn count(&self) -> u64;
    /// The identity of a particle, which no other of the species has: its number, unless a file says another.
    fn identity(&self, number: u64) -> u64 {
        number
    }
    /// The particle with a number, if there is one.
    ///
    /// # Errors
    /// A formula that has to say whether there is one does not.
    fn make(&self, number: u64) -> Result<Option<InitialParticle>, String>;
    /// What errors call a particle beside its identity, such as the row of a file.
    fn origin(&self, _number: u64) -> String {
        String::new()
    }
    /// Why a particle may be outside the domain, and what to do; empty where nothing is known.
    fn outside_hint(&self, _number: u64) -> String {
        String::new()
    }
    /// The mass of each particle, where it is the source that knows it.
    fn mass(&self) -> Option<f64> {
        None
    }
}
