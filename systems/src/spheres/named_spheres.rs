//! Spheres of a deck, and the orbit of two spheres.

use super::config::{
    Ambient, DiscConfig, EncounterConfig, GasConfig, GasDiscConfig, ProfileConfig, SphereConfig,
    SpheresConfig,
};
use super::discs::{Disc, DiscShape, GalaxyForce, GasDisc, Medium};
use super::entropy::Entropy;
use super::error::{SphereError, positive};
use super::profile::Profile;
use super::sphere::{HydrostaticGas, Sphere};
use bevy_ecs::prelude::Resource;
use nestar_deck::{Deck, DeckError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spheres of the table `[spheres]` by name; present if the deck has this table.
#[derive(Resource, Clone, Debug, PartialEq)]
pub struct NamedSpheres {
    gravity: f64,
    pub(super) spheres: BTreeMap<String, NamedSphere>,
}

/// A sphere with its centre.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamedSphere {
    centre: Centre,
    truncation: f64,
    particles: BTreeMap<String, Profile>,
    /// Density profile and outer radius of the gas.
    pub(super) gas: Option<(Profile, f64)>,
    /// Discs of particles, with Toomre's numbers.
    discs: BTreeMap<String, (DiscShape, f64)>,
    /// Disc of gas.
    gas_disc: Option<(DiscShape, GasDiscConfig)>,
    /// Density of each disc, averaged over spheres.
    averaged: Vec<Profile>,
}

/// A component of particles of a sphere.
#[derive(Clone, Debug, PartialEq)]
pub enum Component {
    /// Isotropic velocities around the centre.
    Sphere(Box<Sphere>),
    /// A rotating disc.
    Disc(Box<Disc>),
}

impl Component {
    /// Mass within the truncation, shared by the particles.
    #[must_use]
    pub fn mass(&self) -> f64 {
        match self {
            Self::Sphere(sphere) => sphere.mass(),
            Self::Disc(disc) => disc.mass(),
        }
    }

    /// Radius beyond which there are no particles.
    #[must_use]
    pub fn edge(&self) -> f64 {
        match self {
            Self::Sphere(sphere) => sphere.edge(),
            Self::Disc(disc) => disc.edge(),
        }
    }
}

/// Returns a function that locates errors of a sphere in the table at `path`.
fn at(deck: &Deck, path: &str) -> impl Fn(SphereError) -> DeckError {
    move |error| {
        let key = match &error {
            SphereError::Parameter { key, .. } if key == "gravity" => "gravity.constant".into(),
            SphereError::Parameter { key, .. } if key == "gamma" => "hydro.gamma".into(),
            SphereError::Parameter { key, .. } if key.starts_with("ambient.") => key.clone(),
            SphereError::Parameter { key, .. } => format!("{path}.{key}"),
            _ => path.to_string(),
        };
        let why = match &error {
            SphereError::Parameter { why, .. } => why.clone(),
            other => format!("is impossible: {other}"),
        };
        deck.error_at(&key, format!("`{key}` {why}"))
    }
}

impl NamedSpheres {
    /// Reads the tables of a deck, including `[ambient]` if the pressure of the medium matters. `gravity` is
    /// Newton's constant, `gamma` the ratio of specific heats.
    ///
    /// # Errors
    /// A table is invalid.
    pub fn of(deck: &mut Deck, gravity: f64, gamma: f64) -> Result<Self, DeckError> {
        let config: SpheresConfig = deck.table("spheres")?;
        let laws = config.0.values().flat_map(|own| &own.gas);
        let pressure = match laws.into_iter().any(|gas| gas.entropy.is_some()) {
            true => deck.table::<Ambient>("ambient")?.pressure,
            false => 0.0,
        };
        let laws = GasParameters {
            gravity,
            gamma,
            pressure,
        };
        let mut spheres = BTreeMap::new();
        for (name, own) in &config.0 {
            let named = NamedSphere::of(deck, &format!("spheres.{name}"), own, laws)?;
            spheres.insert(name.clone(), named);
        }
        let mut all = Self { gravity, spheres };
        if deck.has("encounter") {
            let encounter: EncounterConfig = deck.table("encounter")?;
            all.place_encounter(deck, &config, &encounter)?;
        }
        Ok(all)
    }

    /// Places two spheres on their orbit.
    fn place_encounter(
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
                let why = format!("`{path}` follows from [encounter]: leave it out");
                return Err(deck.error_at(&path, why));
            }
        }
        let [first, second] = &encounter.spheres;
        if first == second {
            let why = "`encounter.spheres` must name two spheres that differ";
            return Err(deck.error_at("encounter.spheres", why));
        }
        let mass_ratio = masses[1] / masses[0];
        if !mass_ratio.is_finite() || mass_ratio <= 0.0 {
            let [one, other] = masses;
            let why = format!(
                "`encounter.spheres` must name spheres with positive masses whose ratio is finite, not {one} and \
                 {other}: check their `truncation` and `gas.radius`"
            );
            return Err(deck.error_at("encounter.spheres", why));
        }
        let orbit = Orbit {
            separation: encounter.separation,
            speed: encounter.speed,
            impact_parameter: encounter.impact_parameter,
            mass_ratio,
        };
        let centres = orbit.centres().map_err(at(deck, "encounter"))?;
        for (name, centre) in encounter.spheres.iter().zip(centres) {
            if let Some(named) = self.spheres.get_mut(name) {
                named.centre = centre;
            }
        }
        Ok(())
    }

    fn named(&self, deck: &Deck, path: &str, name: &str) -> Result<&NamedSphere, DeckError> {
        let known = || self.spheres.keys().map(String::as_str).collect::<Vec<_>>();
        let found = self.spheres.get(name);
        found.ok_or_else(|| deck.unknown_word_at(path, name, &known()))
    }

    /// Returns a component of particles of a sphere, and the sphere's centre. `path` is the table that asks
    /// for it, with the keys `sphere` and `component`.
    ///
    /// # Errors
    /// The sphere or the component is unknown, or it has no equilibrium.
    pub fn particles(
        &self,
        deck: &Deck,
        path: &str,
        [name, component]: [&str; 2],
    ) -> Result<(Component, Centre), DeckError> {
        let named = self.named(deck, &format!("{path}.sphere"), name)?;
        let table = format!("spheres.{name}");
        let wrong = |kind: &str| {
            let own = format!("{table}.{kind}.{component}");
            let table = table.clone();
            move |error| match &error {
                SphereError::Parameter { key, .. } if key == "truncation" => {
                    at(deck, &table)(error)
                }
                _ => at(deck, &own)(error),
            }
        };
        if let Some((shape, toomre)) = named.discs.get(component) {
            let disc = named.force(self.gravity);
            let disc = disc.and_then(|force| Disc::new(*shape, *toomre, &force, named.truncation));
            let disc = Box::new(disc.map_err(wrong("discs"))?);
            return Ok((Component::Disc(disc), named.centre));
        }
        let Some(profile) = named.particles.get(component) else {
            let known = named.particles.keys().chain(named.discs.keys());
            let known: Vec<&str> = known.map(String::as_str).collect();
            return Err(deck.unknown_word_at(&format!("{path}.component"), component, &known));
        };
        let others = named.parts().filter(|part| !std::ptr::eq(*part, profile));
        let others: Vec<Profile> = others.cloned().collect();
        let sphere = Sphere::new(profile, &others, self.gravity, named.truncation);
        let sphere = Box::new(sphere.map_err(wrong("particles"))?);
        Ok((Component::Sphere(sphere), named.centre))
    }

    /// Returns the gas of all spheres with gas, by name, in a medium of this pressure.
    ///
    /// # Errors
    /// The gas ends inside its core, or the pressure is not positive.
    pub fn gas(
        &self,
        deck: &Deck,
        pressure: f64,
    ) -> Result<Vec<(String, HydrostaticGas, Centre)>, DeckError> {
        let mut all = Vec::new();
        for (name, named) in &self.spheres {
            let Some((profile, radius)) = &named.gas else {
                continue;
            };
            let others = named.particles.values().chain(&named.averaged);
            let others: Vec<Profile> = others.cloned().collect();
            let gas = HydrostaticGas::new(profile, &others, self.gravity, *radius, pressure);
            let gas = gas.map_err(at(deck, &format!("spheres.{name}.gas")))?;
            all.push((name.clone(), gas, named.centre));
        }
        Ok(all)
    }

    /// Returns the discs of gas of all spheres, by name, in a medium. `pressure` returns the pressure at a density
    /// and a temperature in kelvin; `None` without units.
    ///
    /// # Errors
    /// A disc gives its pressure twice or needs units, or its pressure leaves no rotation.
    pub fn gas_discs(
        &self,
        deck: &Deck,
        medium: Medium,
        pressure: impl Fn(f64, f64) -> Result<Option<f64>, DeckError>,
    ) -> Result<Vec<(String, GasDisc, Centre)>, DeckError> {
        let mut all = Vec::new();
        for (name, named) in &self.spheres {
            let Some((shape, config)) = &named.gas_disc else {
                continue;
            };
            let path = format!("spheres.{name}.gas_disc");
            let kelvins = format!("{path}.temperature_k");
            let refuse = |why: &str| Err(deck.error_at(&kelvins, format!("`{kelvins}` {why}")));
            let isothermal = match (config.temperature_k, config.sound_speed) {
                (None, speed) => speed.map(|speed| speed * speed),
                (Some(_), Some(_)) => {
                    return refuse("contradicts `sound_speed`: remove one of them");
                }
                (Some(kelvin), None) => {
                    let density = shape.density(0.0, 0.0);
                    let Some(pressure) = pressure(density, kelvin)? else {
                        return refuse("needs a table [units]; without units, give `sound_speed`");
                    };
                    Some(pressure / density)
                }
            };
            let disc = named.force(self.gravity);
            let disc = disc.and_then(|force| GasDisc::new(*shape, isothermal, &force, medium));
            let disc = disc.map_err(|error| match &error {
                SphereError::Parameter { key, why }
                    if key == "sound_speed" && config.temperature_k.is_some() =>
                {
                    deck.error_at(&kelvins, format!("`{kelvins}` {why}"))
                }
                _ => at(deck, &path)(error),
            });
            all.push((name.clone(), disc?, named.centre));
        }
        Ok(all)
    }
}

/// Parameters of the gas of spheres.
#[derive(Clone, Copy)]
struct GasParameters {
    gravity: f64,
    gamma: f64,
    /// Pressure of the surrounding medium.
    pressure: f64,
}

impl GasParameters {
    /// Returns the density profile of the gas of the table `path` in a sphere with the total mass `total`.
    fn gas(
        self,
        deck: &Deck,
        path: &str,
        own: &GasConfig,
        total: Option<&Profile>,
    ) -> Result<Profile, DeckError> {
        let law = match (&own.profile, own.entropy) {
            (Some(profile), None) => {
                return profile
                    .profile()
                    .map_err(at(deck, &format!("{path}.profile")));
            }
            (None, Some(law)) => law,
            _ => {
                let why = format!("`{path}` needs exactly one of `profile` and `entropy`");
                return Err(deck.error_at(path, why));
            }
        };
        let Some(total) = total else {
            let key = format!("{path}.entropy");
            let why =
                format!("`{key}` needs the `total` of its sphere, which determines the potential");
            return Err(deck.error_at(&key, why));
        };
        let law = Entropy {
            radius: law.radius,
            slope: law.slope,
            core: law.core,
            share: law.share,
            gamma: self.gamma,
        };
        let gas = Profile::entropy(total, law, self.gravity, [own.radius, self.pressure]);
        gas.map_err(at(deck, path))
    }
}

impl NamedSphere {
    fn of(
        deck: &Deck,
        path: &str,
        own: &SphereConfig,
        laws: GasParameters,
    ) -> Result<Self, DeckError> {
        let has_gas = own.gas.is_some() || own.gas_disc.is_some();
        if own.particles.is_empty() && own.discs.is_empty() && !has_gas {
            let why =
                format!("`{path}` is empty: it needs `particles`, `gas`, `discs` or `gas_disc`");
            return Err(deck.error_at(path, why));
        }
        let total = own.total.as_ref().map(ProfileConfig::profile).transpose();
        let total = total.map_err(at(deck, &format!("{path}.total")))?;
        let of_gas = |gas: &GasConfig| {
            let profile = laws.gas(deck, &format!("{path}.gas"), gas, total.as_ref());
            profile.map(|profile| (profile, gas.radius))
        };
        let mut named = Self {
            centre: Centre {
                position: own.centre.unwrap_or_default(),
                velocity: own.velocity.unwrap_or_default(),
            },
            truncation: own.truncation.unwrap_or(f64::INFINITY),
            particles: BTreeMap::new(),
            gas: own.gas.as_ref().map(of_gas).transpose()?,
            discs: BTreeMap::new(),
            gas_disc: None,
            averaged: Vec::new(),
        };
        named.add_discs(deck, path, own)?;
        for (component, config) in &own.particles {
            if total.is_some() && *config == (ProfileConfig::Rest {}) {
                continue;
            }
            let path = format!("{path}.particles.{component}");
            let profile = config.profile().map_err(at(deck, &path))?;
            named.particles.insert(component.clone(), profile);
        }
        if let Some(total) = total {
            named.add_rest(deck, path, own, &total)?;
        }
        Ok(named)
    }

    /// Adds the discs of particles and gas.
    fn add_discs(&mut self, deck: &Deck, path: &str, own: &SphereConfig) -> Result<(), DeckError> {
        let mut add = |key: &str, shape: Result<DiscShape, SphereError>| {
            let shape = shape.and_then(|shape| Ok((shape, shape.averaged()?)));
            let (shape, averaged) = shape.map_err(at(deck, &format!("{path}.{key}")))?;
            self.averaged.push(averaged);
            Ok::<_, DeckError>(shape)
        };
        for (name, disc) in &own.discs {
            let key = format!("discs.{name}");
            if own.particles.contains_key(name) {
                let why = format!(
                    "`{path}.{key}` has the name of a component of `{path}.particles`: rename it"
                );
                return Err(deck.error_at(&format!("{path}.{key}"), why));
            }
            let DiscConfig {
                mass,
                radius,
                height,
                toomre,
            } = *disc;
            let shape = add(&key, DiscShape::new(mass, radius, height))?;
            self.discs.insert(name.clone(), (shape, toomre));
        }
        if let Some(disc) = own.gas_disc {
            let shape = DiscShape::new(disc.mass, disc.radius, disc.height);
            self.gas_disc = Some((add("gas_disc", shape)?, disc));
        }
        Ok(())
    }

    /// Returns the force of all mass.
    fn force(&self, gravity: f64) -> Result<GalaxyForce, SphereError> {
        let gas = self.gas.iter().map(|(profile, _)| profile);
        let spheres: Vec<Profile> = self.particles.values().chain(gas).cloned().collect();
        let shapes: Vec<DiscShape> = self.shapes().collect();
        GalaxyForce::new(&spheres, &shapes, gravity)
    }

    fn shapes(&self) -> impl Iterator<Item = DiscShape> {
        let particles = self.discs.values().map(|(shape, _)| *shape);
        particles.chain(self.gas_disc.iter().map(|(shape, _)| *shape))
    }

    /// Adds the component that is the remainder of the total mass.
    fn add_rest(
        &mut self,
        deck: &Deck,
        path: &str,
        own: &SphereConfig,
        total: &Profile,
    ) -> Result<(), DeckError> {
        let is_rest = |config: &ProfileConfig| matches!(config, ProfileConfig::Rest {});
        let mut rests = own.particles.iter().filter(|(_, config)| is_rest(config));
        let (Some((name, _)), None) = (rests.next(), rests.next()) else {
            let key = format!("{path}.total");
            let why = format!(
                "`{key}` needs exactly one component of `{path}.particles` with `{{ kind = \"rest\" }}`"
            );
            return Err(deck.error_at(&key, why));
        };
        let parts: Vec<Profile> = self.parts().cloned().collect();
        let left = Profile::rest(total, &parts);
        let left = left.map_err(at(deck, &format!("{path}.particles.{name}")))?;
        self.particles.insert(name.clone(), left);
        Ok(())
    }

    fn parts(&self) -> impl Iterator<Item = &Profile> {
        let gas = self.gas.iter().map(|(profile, _)| profile);
        self.particles.values().chain(gas).chain(&self.averaged)
    }

    /// Returns the mass of particles and gas within their outer radii.
    fn mass(&self) -> f64 {
        let within = |(profile, radius): (&Profile, f64)| profile.mass(radius.min(profile.reach()));
        let particles = self.particles.values().map(|p| (p, self.truncation));
        let gas = self.gas.iter().map(|(profile, radius)| (profile, *radius));
        let spheres: f64 = particles.chain(gas).map(within).sum();
        let disc = |shape: DiscShape| shape.mass_within(self.truncation);
        spheres + self.shapes().map(disc).sum::<f64>()
    }
}

/// Initial separation and velocity of two spheres that approach each other along x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Distance of the centres, length, above 0.
    pub separation: f64,
    /// Relative speed of the centres, length/time, not negative.
    pub speed: f64,
    /// Impact parameter along y, length, from 0 to the separation.
    #[serde(default)]
    pub impact_parameter: f64,
    /// Mass of the second sphere over that of the first, above 0.
    pub mass_ratio: f64,
}

/// Centre of a sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Position, length.
    pub position: [f64; 3],
    /// Velocity, length/time.
    pub velocity: [f64; 3],
}

impl Orbit {
    /// Returns both centres in the centre-of-mass frame. The first sphere starts at negative x and y and
    /// moves towards positive x.
    ///
    /// # Errors
    /// A parameter is out of range.
    pub fn centres(&self) -> Result<[Centre; 2], SphereError> {
        let separation = positive("separation", self.separation)?;
        let ratio = positive("mass_ratio", self.mass_ratio)?;
        let (speed, impact) = (self.speed, self.impact_parameter);
        if !speed.is_finite() || speed < 0.0 {
            let why = format!("must be finite and not negative, not {speed}");
            return Err(SphereError::parameter("speed", why));
        }
        if !(0.0..=separation).contains(&impact) {
            let why = format!("must be from 0 to the separation, {separation}, not {impact}");
            return Err(SphereError::parameter("impact_parameter", why));
        }
        let along = ((separation - impact) * (separation + impact)).sqrt();
        let centre = |share: f64| Centre {
            position: [share * along, share * impact, 0.0],
            velocity: [-share * speed, 0.0, 0.0],
        };
        Ok([centre(-ratio / (1.0 + ratio)), centre(1.0 / (1.0 + ratio))])
    }
}
