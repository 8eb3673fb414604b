//! The spheres of a deck.

use super::error::SphereError;
use super::gas::Gas;
use super::orbit::{Centre, Orbit};
use super::profile::Profile;
use super::sphere::Sphere;
use super::tables::{EncounterConfig, SphereConfig, SpheresConfig};
use crate::fields::GravitationalConstant;
use bevy_ecs::prelude::Resource;
use nestar_deck::{Deck, DeckError};
use nestar_engine::{Engine, Error, Plugin};
use std::collections::BTreeMap;

/// The plugin: reads the tables `[spheres]` and `[encounter]` into the resource [`NamedSpheres`], if the deck has the first. Add it behind
/// self-gravity, and before whoever begins with them.
pub struct Spheres;

/// The spheres of the table `[spheres]`, by name. There if the deck has it.
#[derive(Resource, Clone, Debug, PartialEq)]
pub struct NamedSpheres {
    gravity: f64,
    spheres: BTreeMap<String, Named>,
}

/// A sphere with its place.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    centre: Centre,
    truncation: f64,
    particles: BTreeMap<String, Profile>,
    /// Profile of the gas, and where it ends.
    gas: Option<(Profile, f64)>,
}

impl Plugin for Spheres {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let deck = &mut sim.deck;
        if !deck.has("spheres") {
            return match deck.has("encounter") {
                true => {
                    let why = "[encounter] needs a table [spheres]";
                    Err(deck.error_at("encounter", why).into())
                }
                false => Ok(()),
            };
        }
        let Some(gravity) = sim.world.get_resource::<GravitationalConstant>() else {
            let why = "[spheres] needs a table [gravity]: their parts are held by self-gravity";
            return Err(deck.error_at("spheres", why).into());
        };
        let spheres = NamedSpheres::of(deck, gravity.0)?;
        sim.world.insert_resource(spheres);
        Ok(())
    }
}

/// What is wrong with the table at `path`, at the key that is named, or at the table.
fn at(deck: &Deck, path: &str) -> impl Fn(SphereError) -> DeckError {
    move |error| {
        let key = match &error {
            SphereError::Parameter { key, .. } if key == "gravity" => "gravity.constant".into(),
            SphereError::Parameter { key, .. } => format!("{path}.{key}"),
            SphereError::Negative { .. } | SphereError::Unresolved { .. } => path.to_string(),
        };
        let why = match &error {
            SphereError::Parameter { why, .. } => why.clone(),
            other => format!("cannot be: {other}"),
        };
        deck.error_at(&key, format!("`{key}` {why}"))
    }
}

impl NamedSpheres {
    /// Takes the tables of a deck; `gravity` is Newton's constant.
    ///
    /// # Errors
    /// What is wrong in them, at its place.
    pub fn of(deck: &mut Deck, gravity: f64) -> Result<Self, DeckError> {
        let config: SpheresConfig = deck.table("spheres")?;
        let mut spheres = BTreeMap::new();
        for (name, own) in &config.0 {
            spheres.insert(
                name.clone(),
                Named::of(deck, &format!("spheres.{name}"), own)?,
            );
        }
        let mut all = Self { gravity, spheres };
        if deck.has("encounter") {
            let encounter: EncounterConfig = deck.table("encounter")?;
            all.meet(deck, &config, &encounter)?;
        }
        Ok(all)
    }

    /// Puts two spheres on their orbit.
    fn meet(
        &mut self,
        deck: &Deck,
        config: &SpheresConfig,
        encounter: &EncounterConfig,
    ) -> Result<(), DeckError> {
        let mut masses = [0.0; 2];
        for (n, name) in encounter.spheres.iter().enumerate() {
            let named = self.named(deck, &format!("encounter.spheres[{n}]"), name)?;
            masses[n] = named.mass();
            let own = &config.0[name];
            let placed = [("centre", own.centre), ("velocity", own.velocity)];
            if let Some((key, _)) = placed.iter().find(|(_, given)| given.is_some()) {
                let path = format!("spheres.{name}.{key}");
                let why = format!("`{path}` is what [encounter] says of this sphere: leave it out");
                return Err(deck.error_at(&path, why));
            }
        }
        let [first, second] = &encounter.spheres;
        if first == second {
            let why = "`encounter.spheres` must name two spheres";
            return Err(deck.error_at("encounter.spheres", why));
        }
        let orbit = Orbit {
            separation: encounter.separation,
            speed: encounter.speed,
            impact_parameter: encounter.impact_parameter,
            mass_ratio: masses[1] / masses[0],
        };
        let centres = orbit.centres().map_err(at(deck, "encounter"))?;
        for (name, centre) in encounter.spheres.iter().zip(centres) {
            if let Some(named) = self.spheres.get_mut(name) {
                named.centre = centre;
            }
        }
        Ok(())
    }

    fn named(&self, deck: &Deck, path: &str, name: &str) -> Result<&Named, DeckError> {
        let known = || self.spheres.keys().map(String::as_str).collect::<Vec<_>>();
        let found = self.spheres.get(name);
        found.ok_or_else(|| deck.unknown_word_at(path, name, &known()))
    }

    /// The component of particles `component` of the sphere `name`, and the sphere's centre; `path` is the table that asks for it, with
    /// the keys `sphere` and `component`.
    ///
    /// # Errors
    /// There is no such sphere or component, or it has no equilibrium.
    pub fn particles(
        &self,
        deck: &Deck,
        path: &str,
        [name, component]: [&str; 2],
    ) -> Result<(Sphere, Centre), DeckError> {
        let named = self.named(deck, &format!("{path}.sphere"), name)?;
        let Some(profile) = named.particles.get(component) else {
            let known: Vec<&str> = named.particles.keys().map(String::as_str).collect();
            return Err(deck.unknown_word_at(&format!("{path}.component"), component, &known));
        };
        let others = named.parts().filter(|part| !std::ptr::eq(*part, profile));
        let others: Vec<Profile> = others.cloned().collect();
        let table = format!("spheres.{name}");
        let own = format!("{table}.particles.{component}");
        let wrong = |error| match &error {
            SphereError::Parameter { key, .. } if key == "truncation" => at(deck, &table)(error),
            _ => at(deck, &own)(error),
        };
        let sphere = Sphere::new(profile, &others, self.gravity, named.truncation);
        Ok((sphere.map_err(wrong)?, named.centre))
    }

    /// The gas of all spheres that have some, by name, in surroundings with this pressure.
    ///
    /// # Errors
    /// A gas that ends where it has not begun; a pressure that is not above 0.
    pub fn gas(&self, deck: &Deck, pressure: f64) -> Result<Vec<(String, Gas, Centre)>, DeckError> {
        let mut all = Vec::new();
        for (name, named) in &self.spheres {
            let Some((profile, radius)) = &named.gas else {
                continue;
            };
            let others: Vec<Profile> = named.particles.values().cloned().collect();
            let gas = Gas::new(profile, &others, self.gravity, *radius, pressure);
            let gas = gas.map_err(at(deck, &format!("spheres.{name}.gas")))?;
            all.push((name.clone(), gas, named.centre));
        }
        Ok(all)
    }
}

impl Named {
    fn of(deck: &Deck, path: &str, own: &SphereConfig) -> Result<Self, DeckError> {
        if own.particles.is_empty() && own.gas.is_none() {
            let why = format!("`{path}` is empty: it needs `particles`, `gas` or both");
            return Err(deck.error_at(path, why));
        }
        let mut particles = BTreeMap::new();
        for (component, config) in &own.particles {
            let path = format!("{path}.particles.{component}");
            let profile = config.profile().map_err(at(deck, &path))?;
            particles.insert(component.clone(), profile);
        }
        let mut gas = None;
        if let Some(own) = &own.gas {
            let profile = own.profile.profile();
            let profile = profile.map_err(at(deck, &format!("{path}.gas.profile")))?;
            gas = Some((profile, own.radius));
        }
        Ok(Self {
            centre: Centre {
                position: own.centre.unwrap_or_default(),
                velocity: own.velocity.unwrap_or_default(),
            },
            truncation: own.truncation.unwrap_or(f64::INFINITY),
            particles,
            gas,
        })
    }

    fn parts(&self) -> impl Iterator<Item = &Profile> {
        let gas = self.gas.iter().map(|(profile, _)| profile);
        self.particles.values().chain(gas)
    }

    /// The mass of all that the run has of it.
    fn mass(&self) -> f64 {
        let within = |(profile, radius): (&Profile, f64)| profile.mass(radius.min(profile.reach()));
        let particles = self.particles.values().map(|p| (p, self.truncation));
        let gas = self.gas.iter().map(|(profile, radius)| (profile, *radius));
        particles.chain(gas).map(within).sum()
    }
}
