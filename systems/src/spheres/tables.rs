//! The tables `[spheres]` and `[encounter]`.

use super::config::ProfileConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spheres in equilibrium by name: clusters, galaxies, haloes. Species of particles take theirs by `initial = { kind = "sphere" }`, and
/// `scenario = "spheres"` makes the gas of all of them. Each is in equilibrium with all of its own parts by self-gravity, which the deck
/// has to have, as if it were alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SpheresConfig(pub BTreeMap<String, SphereConfig>);

/// A sphere: particles of one kind or several, and gas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SphereConfig {
    /// Where its centre is; absent: at the origin, or where `[encounter]` puts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    pub centre: Option<[f64; 3]>,
    /// How fast it moves; absent: it rests, or moves as `[encounter]` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: Option<[f64; 3]>,
    /// The density of all its mass, particles and gas; absent: it is the sum of its parts. One component of particles is the rest then,
    /// `{ kind = "rest" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ProfileConfig>,
    /// Its components of particles by name, such as `dark` or `stars`.
    #[serde(default)]
    pub particles: BTreeMap<String, ProfileConfig>,
    /// Radius beyond which there are no particles, although the rest moves as if they were there; absent: none is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub truncation: Option<f64>,
    /// Its gas; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas: Option<GasConfig>,
}

/// Gas in hydrostatic equilibrium: of a density, or of an entropy in a sphere with `total`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GasConfig {
    /// Its density; absent: it follows from `entropy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileConfig>,
    /// Its entropy; absent: it follows from `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<EntropyConfig>,
    /// Radius at which it ends, with the pressure of its surroundings, `ambient.pressure`; with `entropy` not below `entropy.radius`. The
    /// particles feel what the profile has beyond it.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub radius: f64,
}

/// A power law of entropy: `pressure/density^gamma` is proportional to `core + (r/radius)^slope`, by a factor that follows from the mass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntropyConfig {
    /// Mass of the gas over all mass, both within `radius`.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub share: f64,
    /// Radius of the law, and of the share.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub radius: f64,
    /// The power.
    #[serde(default = "slope")]
    #[schemars(range(min = 0.0))]
    pub slope: f64,
    /// What the centre has, over what the power law has at `radius`.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub core: f64,
}

fn slope() -> f64 {
    1.1
}

/// Two of the spheres meet: they approach each other along x, their centre of mass resting at the origin. The first one begins at
/// negative x and, with an impact parameter, at negative y.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncounterConfig {
    /// Their names.
    pub spheres: [String; 2],
    /// Distance of the two centres.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub separation: f64,
    /// Relative speed of the two centres.
    #[schemars(range(min = 0.0), extend("unit" = "length/time"))]
    pub speed: f64,
    /// Distance at which the centres would pass each other without gravity, up to the separation.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "length"))]
    pub impact_parameter: f64,
}

/// Gas in hydrostatic equilibrium in each sphere of the table `[spheres]` that has some, and a uniform medium at rest around them. Where
/// spheres overlap their densities add up, and what their pressures are above that of the medium; the velocity is that of the sum of
/// their momenta. A passive scalar with the name of a sphere is the mass fraction of that sphere's gas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ambient {
    /// Density of the medium.
    #[schemars(extend("unit" = "mass/length**3", "exclusiveMinimum" = 0.0))]
    pub density: f64,
    /// Pressure of the medium, which is that of the gas of spheres where it ends.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
    /// Gauss-Legendre points per axis and cell (cell averages); 1: the cell centre.
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
