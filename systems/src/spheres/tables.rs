//! The tables `[spheres]` and `[encounter]`.

use super::config::ProfileConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spheres in equilibrium (clusters, galaxies, haloes) by name. Species of particles use them with `initial =
/// { kind = "sphere" }`, and `scenario = "spheres"` creates their gas. Each sphere is in equilibrium by the
/// self-gravity of its own components, as if isolated; the deck must have a table `[gravity]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SpheresConfig(pub BTreeMap<String, SphereConfig>);

/// A sphere with one or more components of particles, and gas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SphereConfig {
    /// Position of the centre. Default: the origin, or as given by `[encounter]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    pub centre: Option<[f64; 3]>,
    /// Velocity of the centre. Default: at rest, or as given by `[encounter]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: Option<[f64; 3]>,
    /// Total density of particles and gas. Default: the sum of the components. With `total`, one component of
    /// particles must be `{ kind = "rest" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ProfileConfig>,
    /// Components of particles by name, for example `dark` or `stars`.
    #[serde(default)]
    pub particles: BTreeMap<String, ProfileConfig>,
    /// Radius beyond which particles are left out; the others move as if these were present. Default: no
    /// truncation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub truncation: Option<f64>,
    /// Gas. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas: Option<GasConfig>,
}

/// Gas in hydrostatic equilibrium, given by its density or, in a sphere with `total`, by its entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GasConfig {
    /// Density profile. Default: follows from `entropy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileConfig>,
    /// Entropy law. Default: follows from `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<EntropyConfig>,
    /// Outer radius of the gas, where its pressure is `ambient.pressure`; not below `entropy.radius`.
    /// Particles also feel the gas profile beyond it.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub radius: f64,
}

/// Power law of entropy: `pressure/density^gamma` is proportional to `core + (r/radius)^slope`, with a factor
/// that follows from the gas mass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntropyConfig {
    /// Gas mass over total mass, both within `radius`.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub share: f64,
    /// Radius of the power law and of `share`.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub radius: f64,
    /// Exponent.
    #[serde(default = "slope")]
    #[schemars(range(min = 0.0))]
    pub slope: f64,
    /// Entropy at the centre relative to that of the power law at `radius`.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub core: f64,
}

fn slope() -> f64 {
    1.1
}

/// Encounter of two spheres, which approach each other along x in the centre-of-mass frame. The first sphere
/// starts at negative x and, with an impact parameter, at negative y.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncounterConfig {
    /// Names of the spheres.
    pub spheres: [String; 2],
    /// Distance of the centres.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub separation: f64,
    /// Relative speed of the centres.
    #[schemars(range(min = 0.0), extend("unit" = "length/time"))]
    pub speed: f64,
    /// Impact parameter, at most the separation.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "length"))]
    pub impact_parameter: f64,
}

/// Uniform medium at rest around the gas of the spheres of the table `[spheres]`. Where spheres overlap,
/// their densities, momenta and pressure excesses over the medium are added. A passive scalar with the name
/// of a sphere is the mass fraction of its gas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ambient {
    /// Density of the medium.
    #[schemars(extend("unit" = "mass/length**3", "exclusiveMinimum" = 0.0))]
    pub density: f64,
    /// Pressure of the medium, and of the gas of spheres at its outer radius.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
    /// Gauss-Legendre points per axis and cell for cell averages; 1 uses the cell centre.
    #[schemars(range(min = 1, max = 4))]
    pub samples: usize,
}

impl Default for Ambient {
    fn default() -> Self {
        Self {
            density: 1e-6,
            pressure: 1e-6,
            samples: 2,
        }
    }
}
