//! The tables `[spheres]` and `[encounter]`, and density profiles in decks.

use super::error::SphereError;
use super::profile::Profile;
use nestar_deck::deck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spheres in equilibrium (clusters, galaxies, haloes) by name, also with discs. Species of particles use them with
/// `initial = { kind = "sphere" }`, and `scenario = "spheres"` creates their gas. Each sphere is in equilibrium by the
/// self-gravity of its own components, as if isolated; the deck must have a table `[gravity]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SpheresConfig(pub BTreeMap<String, SphereConfig>);

/// A sphere with components of particles and gas, and with discs around its centre.
#[deck]
pub struct SphereConfig {
    /// Position of the centre. Default: the origin, or as given by `[encounter]`.
    #[key(unit = "length")]
    pub centre: Option<[f64; 3]>,
    /// Velocity of the centre. Default: at rest, or as given by `[encounter]`.
    #[key(unit = "length/time")]
    pub velocity: Option<[f64; 3]>,
    /// Total density of particles and gas, with discs averaged over spheres. Default: the sum of the components. With `total`, one component of
    /// particles must be `{ kind = "rest" }`.
    pub total: Option<ProfileConfig>,
    /// Components of particles by name, for example `dark` or `stars`.
    #[key(default = BTreeMap::new())]
    pub particles: BTreeMap<String, ProfileConfig>,
    /// Radius beyond which no particles are created; the velocities of the others assume the full sphere.
    /// Default: no truncation.
    #[key(unit = "length", above = 0.0)]
    pub truncation: Option<f64>,
    /// Gas. Default: none.
    pub gas: Option<GasConfig>,
    /// Exponential discs of particles by name, which are components too. The spheres feel their spherically
    /// averaged mass.
    #[key(default = BTreeMap::new())]
    pub discs: BTreeMap<String, DiscConfig>,
    /// Exponential disc of gas. Default: none.
    pub gas_disc: Option<GasDiscConfig>,
}

/// Exponential disc of particles in the plane z = 0 of its sphere: density proportional to `exp(-R/radius)
/// sech^2(z/height)`. It rotates counterclockwise seen from positive z.
#[deck]
#[derive(Copy)]
pub struct DiscConfig {
    /// Total mass. No particles are beyond 16 radii or 12 heights.
    #[key(unit = "mass", above = 0.0)]
    pub mass: f64,
    /// Scale radius.
    #[key(unit = "length", above = 0.0)]
    pub radius: f64,
    /// Scale height, from 0.01 to 1 of `radius`.
    #[key(unit = "length", above = 0.0)]
    pub height: f64,
    /// Toomre's number of the disc at 2.5 radii, near its minimum: the radial velocity dispersion times the
    /// epicyclic frequency over 3.36 G times the surface density.
    #[key(default = 1.5, above = 0.0)]
    pub toomre: f64,
}

/// Exponential disc of gas with the density of a disc of particles. It rotates such that the pressure and gravity
/// are in balance along the radius. By default, the pressure also supports the gas against vertical gravity at
/// each height; with `temperature_k` or `sound_speed` the gas is isothermal and finds its height in the run.
#[deck]
#[derive(Copy)]
pub struct GasDiscConfig {
    /// Total mass, to infinity. The disc ends where it is as thin as the medium of the table `[ambient]`, and
    /// isothermal gas where its pressure is that of the medium.
    #[key(unit = "mass", above = 0.0)]
    pub mass: f64,
    /// Scale radius.
    #[key(unit = "length", above = 0.0)]
    pub radius: f64,
    /// Scale height, from 0.01 to 1 of `radius`.
    #[key(unit = "length", above = 0.0)]
    pub height: f64,
    /// Uniform temperature, for the constant mean molecular weight of the table `[hydro]`; needs a table `[units]`.
    #[key(unit = "K", above = 0.0)]
    pub temperature_k: Option<f64>,
    /// Uniform isothermal sound speed, instead of the temperature: the root of pressure over density.
    #[key(unit = "length/time", above = 0.0)]
    pub sound_speed: Option<f64>,
}

/// Gas in hydrostatic equilibrium, given by its density or, in a sphere with `total`, by its entropy.
#[deck]
pub struct GasConfig {
    /// Density profile. Default: follows from `entropy`.
    pub profile: Option<ProfileConfig>,
    /// Entropy law. Default: follows from `profile`.
    pub entropy: Option<EntropyConfig>,
    /// Outer radius of the gas, where its pressure is `ambient.pressure`; not below `entropy.radius`.
    /// Particles also feel the gas profile beyond it.
    #[key(unit = "length", above = 0.0)]
    pub radius: f64,
}

/// Power law of entropy: `pressure/density^gamma` is proportional to `core + (r/radius)^slope`, with a factor
/// that follows from the gas mass.
#[deck]
#[derive(Copy)]
pub struct EntropyConfig {
    /// Gas mass over total mass, both within `radius`.
    #[key(above = 0.0, below = 1.0)]
    pub share: f64,
    /// Radius of the power law and of `share`.
    #[key(unit = "length", above = 0.0)]
    pub radius: f64,
    /// Exponent.
    #[key(default = 1.1, min = 0.0)]
    pub slope: f64,
    /// Entropy at the centre relative to that of the power law at `radius`.
    #[key(default = 0.0, min = 0.0)]
    pub core: f64,
}

/// Encounter of two spheres, which approach each other along x in the centre-of-mass frame. The first sphere
/// starts at negative x and, with an impact parameter, at negative y.
#[deck]
pub struct EncounterConfig {
    /// Names of the spheres.
    pub spheres: [String; 2],
    /// Distance of the centres.
    #[key(unit = "length", above = 0.0)]
    pub separation: f64,
    /// Relative speed of the centres.
    #[key(unit = "length/time", min = 0.0)]
    pub speed: f64,
    /// Impact parameter, at most the separation.
    #[key(default = 0.0, unit = "length", min = 0.0)]
    pub impact_parameter: f64,
}

/// Uniform medium at rest around the gas of the spheres of the table `[spheres]`. Where spheres overlap,
/// their densities, momenta and pressure excesses over the medium are added. A passive scalar with the name
/// of a sphere is the mass fraction of its gas.
#[deck]
pub struct Ambient {
    /// Density of the medium.
    #[key(default = 1e-6, unit = "mass/length**3", above = 0.0)]
    pub density: f64,
    /// Pressure of the medium, and of the gas of spheres at its outer radius.
    #[key(default = 1e-6, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// Gauss-Legendre points per axis and cell for cell averages; 1 uses the cell centre.
    #[key(default = 2, min = 1, max = 4)]
    pub samples: usize,
}

/// Density of a sphere as a function of radius.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProfileConfig {
    /// Plummer sphere with a core: density proportional to `(1 + r^2/radius^2)^(-5/2)`.
    Plummer {
        /// Total mass.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        mass: f64,
        /// Scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        radius: f64,
    },
    /// Hernquist sphere with a cusp: density proportional to `1/(r (r + radius)^3)`.
    Hernquist {
        /// Total mass without a cut.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        mass: f64,
        /// Scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        radius: f64,
        /// Radius beyond which the density decays exponentially. Default: no cut, a tail proportional to
        /// r^-4.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        cut: Option<f64>,
        /// Decay length beyond the cut. Default: 0.3 of the cut radius.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        decay: Option<f64>,
    },
    /// Navarro-Frenk-White halo with an exponential decay beyond `r200`.
    Nfw {
        /// Mass within `r200`.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        m200: f64,
        /// Radius within which the mean density is 200 times the critical density.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        r200: f64,
        /// `r200` over the scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        concentration: f64,
        /// Decay length beyond `r200`. Default: 0.3 `r200`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        decay: Option<f64>,
    },
    /// Tabulated densities, interpolated by a cubic spline of ln density over ln radius.
    Table {
        /// Radii, at least 4, positive and increasing.
        #[schemars(extend("unit" = "length"))]
        radius: Vec<f64>,
        /// Density at each radius, positive. At the last radius the density must fall more steeply than r^-3.
        #[schemars(extend("unit" = "mass/length**3"))]
        density: Vec<f64>,
    },
    /// The sphere's `total` minus its gas and its other particles; for one component of particles.
    Rest {},
}

impl ProfileConfig {
    /// Creates the profile.
    ///
    /// # Errors
    /// A parameter is out of range, or the profile is `rest`, which needs a `total`.
    pub fn profile(&self) -> Result<Profile, SphereError> {
        match *self {
            Self::Plummer { mass, radius } => Profile::plummer(mass, radius),
            Self::Hernquist {
                mass,
                radius,
                cut,
                decay,
            } => {
                let profile = Profile::hernquist(mass, radius)?;
                match (cut, decay) {
                    (Some(cut), _) => profile.cut("cut", cut, decay),
                    (None, Some(_)) => Err(SphereError::parameter(
                        "decay",
                        "needs `cut`, the radius beyond which the density decays: add it, or remove `decay`",
                    )),
                    (None, None) => Ok(profile),
                }
            }
            Self::Nfw {
                m200,
                r200,
                concentration,
                decay,
            } => Profile::nfw(m200, r200, concentration, decay),
            Self::Table {
                ref radius,
                ref density,
            } => Profile::table(radius, density),
            Self::Rest {} => Err(SphereError::parameter(
                "kind",
                "`rest` is only for one component of `particles` of a sphere with `total`",
            )),
        }
    }
}
