//! Particles listed one by one in the deck.

use super::{InitialParticle, ParticleSource, SpeciesInfo};
use nestar_deck::{Deck, DeckError, deck};
use std::collections::BTreeMap;

/// A body.
#[deck]
pub struct Body {
    /// Position.
    #[key(unit = "length")]
    pub position: [f64; 3],
    /// Velocity.
    #[key(default = [0.0; 3], unit = "length/time")]
    pub velocity: [f64; 3],
    /// Mass, unless the species gives the mass of each particle.
    #[key(unit = "mass", min = 0.0)]
    pub mass: Option<f64>,
    /// Scalars by name; default 0.
    #[key(default = BTreeMap::new(), unit = "of the scalar")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scalars: BTreeMap<String, f64>,
}

/// Source of listed bodies.
#[derive(Default)]
pub(super) struct BodySource(Vec<InitialParticle>);

impl BodySource {
    /// Reads the bodies of the deck table `path`.
    ///
    /// # Errors
    /// A scalar is unknown.
    pub fn new(
        deck: &Deck,
        path: &str,
        species: &SpeciesInfo,
        bodies: &[Body],
    ) -> Result<Self, DeckError> {
        let known: Vec<&str> = species.scalars.iter().map(String::as_str).collect();
        let made = |(n, body): (usize, &Body)| {
            let mut names = body.scalars.keys();
            if let Some(name) = names.find(|name| !known.contains(&&***name)) {
                let path = format!("{path}.bodies[{n}].scalars.{name}");
                return Err(deck.unknown_key_at(&path, &known));
            }
            let scalar = |name: &&str| body.scalars.get(*name).copied().unwrap_or(0.0);
            Ok(InitialParticle {
                position: body.position,
                velocity: body.velocity,
                mass: body.mass.unwrap_or_default(),
                scalars: known.iter().map(scalar).collect(),
            })
        };
        let all = bodies.iter().enumerate().map(made);
        Ok(Self(all.collect::<Result<_, _>>()?))
    }
}

impl ParticleSource for BodySource {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn make(&self, id: u64) -> Result<Option<InitialParticle>, String> {
        Ok(Some(self.0[id as usize].clone()))
    }
}
