//! Particles of spheres in equilibrium.

use super::random::numbers;
use super::{InitialParticle, ParticleSource};
use crate::spheres::{Centre, Component, NamedSpheres, UNIFORMS};
use nestar_deck::{Deck, DeckError, deck};
use nestar_device::random::{Stream, normals, uniforms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sphere or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SphereNames {
    /// Name of one sphere.
    One(String),
    /// Names of several spheres, whose particles have consecutive identities.
    Several(Vec<String>),
}

/// Particles of one component of spheres of the table `[spheres]`. All particles have the same mass: the
/// total mass of the component over `count`. The number of particles of each sphere is proportional to its
/// mass, rounded.
#[deck]
#[derive(Eq)]
pub struct SphereInitial {
    /// Name of the sphere, or a list of names.
    pub sphere: SphereNames,
    /// Name of the component of particles or disc, for example `dark`.
    pub component: String,
    /// Number of particles in all of these spheres together.
    #[key(min = 1)]
    pub count: u64,
    /// Seed of the random numbers.
    #[key(default = 0)]
    pub seed: u32,
}

/// Source of particles of spheres.
pub(super) struct SphereSource {
    parts: Vec<SpherePart>,
    mass: f64,
    stream: Stream,
}

struct SpherePart {
    /// Identity after its last particle.
    end: u64,
    name: String,
    component: Component,
    centre: Centre,
}

/// Returns position and velocity of a particle of a component relative to the centre.
fn draw(component: &Component, stream: &Stream, id: u64) -> ([f64; 3], [f64; 3]) {
    match component {
        Component::Sphere(sphere) => {
            let drawn: [f64; UNIFORMS] = numbers(stream, id, |_, block| uniforms(block));
            sphere.sample(drawn)
        }
        Component::Disc(disc) => {
            // the fourth number is spare
            let [a, b, c, _, u, v, w] = numbers(stream, id, |n, block| match n {
                0 | 1 => uniforms(block),
                _ => normals(block),
            });
            disc.sample([a, b, c], [u, v, w])
        }
    }
}

impl SphereInitial {
    /// Returns the spheres of the deck and the selected names.
    fn check<'a>(
        &'a self,
        deck: &Deck,
        path: &str,
        spheres: Option<&'a NamedSpheres>,
    ) -> Result<(&'a NamedSpheres, &'a [String]), DeckError> {
        let refuse = |key: &str, why: &str| {
            let path = format!("{path}.{key}");
            Err(deck.error_at(&path, format!("`{path}` {why}")))
        };
        let Some(spheres) = spheres else {
            return refuse(
                "sphere",
                "names a sphere, but the deck has no table [spheres]",
            );
        };
        let names = match &self.sphere {
            SphereNames::One(name) => std::slice::from_ref(name),
            SphereNames::Several(names) => names,
        };
        if names.is_empty() {
            return refuse("sphere", "must name at least one sphere");
        }
        let twice = (1..names.len()).find(|&n| names[..n].contains(&names[n]));
        if let Some(n) = twice {
            let why = format!("names {:?} twice", names[n]);
            return refuse(&format!("sphere[{n}]"), &why);
        }
        match self.count {
            0 => refuse("count", "must be at least 1"),
            _ => Ok((spheres, names)),
        }
    }

    /// Samples the component of the deck table `path`.
    ///
    /// # Errors
    /// A sphere or component is unknown or has no equilibrium.
    pub(super) fn parts(
        &self,
        deck: &Deck,
        path: &str,
        spheres: Option<&NamedSpheres>,
        stream: Stream,
    ) -> Result<SphereSource, DeckError> {
        let (spheres, names) = self.check(deck, path, spheres)?;
        let found = names
            .iter()
            .map(|name| spheres.particles(deck, path, [name, &self.component]));
        let found: Vec<(Component, Centre)> = found.collect::<Result<_, _>>()?;
        let whole: f64 = found.iter().map(|(component, _)| component.mass()).sum();
        let (mut within, mut parts) = (0.0, Vec::new());
        for (name, (component, centre)) in names.iter().zip(found) {
            within += component.mass();
            let end = (within / whole * self.count as f64 + 0.5) as u64;
            parts.push(SpherePart {
                end,
                name: name.clone(),
                component,
                centre,
            });
        }
        Ok(SphereSource {
            parts,
            mass: whole / self.count as f64,
            stream,
        })
    }
}

impl ParticleSource for SphereSource {
    fn count(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    fn make(&self, id: u64) -> Result<Option<InitialParticle>, String> {
        let Some(part) = self.parts.iter().find(|part| id < part.end) else {
            return Ok(None);
        };
        let (position, velocity) = draw(&part.component, &self.stream, id);
        let Centre {
            position: centre,
            velocity: motion,
        } = part.centre;
        Ok(Some(InitialParticle {
            position: [0, 1, 2].map(|axis| centre[axis] + position[axis]),
            velocity: [0, 1, 2].map(|axis| motion[axis] + velocity[axis]),
            ..InitialParticle::default()
        }))
    }

    fn outside_hint(&self, id: u64) -> String {
        let part = self.parts.iter().find(|part| id < part.end);
        part.map_or_else(String::new, |SpherePart { name, component, .. }| {
            format!(
                ": spheres.{name} has particles up to the radius {:.6}; reduce `spheres.{name}.truncation` or \
                 enlarge the domain",
                component.edge()
            )
        })
    }

    fn mass(&self) -> Option<f64> {
        Some(self.mass)
    }
}
