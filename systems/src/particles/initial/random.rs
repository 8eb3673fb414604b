//! Random particles.

use super::formulas::{AttributeFormulas, Compile, mass_of, one, zeros};
use super::{InitialParticle, ParticleSource, SpeciesInfo};
use nestar_deck::{Deck, DeckError, Formula, deck};
use nestar_device::math::sum3;
use nestar_device::random::{Stream, normals, of_id, uniforms};
use std::collections::BTreeMap;

/// Variables: the identity, six uniform and three normal deviates; all but the position formulas also have
/// the position.
const VARIABLES: [&str; 14] = [
    "id", "u0", "u1", "u2", "u3", "u4", "u5", "g0", "g1", "g2", "x", "y", "z", "r",
];
/// Variables of the position formulas.
const OF_PLACES: usize = 10;
/// Blocks of random words that give uniform numbers, two each; the following blocks give normal ones.
const UNIFORM_BLOCKS: usize = 3;

/// Random particles given by formulas. Each particle has its own random numbers, which depend only on the
/// seed and the identity. `u0` to `u5` are uniform between 0 and 1; `g0` to `g2` are normal deviates with
/// mean 0 and variance 1. Formulas may also use the identity `id` and, except in `position`, the position
/// `x`, `y`, `z` and its distance `r` from the origin.
#[deck]
pub struct RandomInitial {
    /// Number of particles.
    #[key(min = 0)]
    pub count: u64,
    /// Seed of the random numbers.
    #[key(default = 0)]
    pub seed: u32,
    /// Position along x, y, z, formulas.
    #[key(unit = "length")]
    pub position: [String; 3],
    /// Velocity along x, y, z, formulas.
    #[key(default = zeros(), unit = "length/time")]
    pub velocity: [String; 3],
    /// Mass, a formula; not allowed if the species gives the mass.
    #[key(unit = "mass")]
    pub mass: Option<String>,
    /// Condition, a formula: a particle is created if it is not 0. `count` and identities count all
    /// particles.
    #[key(default = one())]
    pub keep: String,
    /// Scalars by name, formulas; default 0.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

/// Source of random particles.
pub(super) struct RandomSource {
    count: u64,
    stream: Stream,
    position: [Formula; 3],
    others: AttributeFormulas,
}

impl RandomInitial {
    /// Compiles the formulas of the deck table `path` for a species.
    ///
    /// # Errors
    /// A formula is invalid or the mass is missing.
    pub(super) fn draws(
        &self,
        deck: &Deck,
        path: &str,
        species: &SpeciesInfo,
        stream: Stream,
    ) -> Result<RandomSource, DeckError> {
        let compile = |count| Compile {
            deck,
            path,
            variables: &VARIABLES[..count],
        };
        let all = compile(VARIABLES.len());
        Ok(RandomSource {
            count: self.count,
            stream,
            position: compile(OF_PLACES).three("position", &self.position)?,
            others: AttributeFormulas {
                path: path.into(),
                velocity: all.three("velocity", &self.velocity)?,
                mass: all.one("mass", mass_of(deck, path, &self.mass, species)?)?,
                keep: all.one("keep", &self.keep)?,
                scalars: all.scalars(species.scalars, &self.scalars)?,
            },
        })
    }
}

/// Returns the first random numbers of a particle, two from each block of random words.
pub(super) fn numbers<const N: usize>(
    stream: &Stream,
    id: u64,
    of_block: impl Fn(usize, [u32; 4]) -> [f64; 2],
) -> [f64; N] {
    let mut numbers = [0.0; N];
    for (n, pair) in numbers.chunks_mut(2).enumerate() {
        let two = of_block(n, of_id(stream, id, n as u32));
        pair.copy_from_slice(&two[..pair.len()]);
    }
    numbers
}

impl ParticleSource for RandomSource {
    fn count(&self) -> u64 {
        self.count
    }

    fn make(&self, id: u64) -> Result<Option<InitialParticle>, String> {
        let drawn: [f64; OF_PLACES - 1] =
            numbers(&self.stream, id, |n, block| match n < UNIFORM_BLOCKS {
                true => uniforms(block),
                false => normals(block),
            });
        let mut values = [0.0; VARIABLES.len()];
        values[0] = id as f64;
        values[1..OF_PLACES].copy_from_slice(&drawn);
        let [x, y, z] = [0, 1, 2].map(|axis| self.position[axis].eval(&values[..OF_PLACES]));
        values[OF_PLACES..].copy_from_slice(&[x, y, z, sum3(x * x, y * y, z * z).sqrt()]);
        self.others.made(&values, || [x, y, z])
    }
}
