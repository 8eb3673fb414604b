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

/// Gas in hydrostatic equilibrium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GasConfig {
    /// Its density.
    pub profile: ProfileConfig,
    /// Radius at which it ends, with the pressure of its surroundings. The particles feel what the profile has beyond it.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
    pub radius: f64,
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
