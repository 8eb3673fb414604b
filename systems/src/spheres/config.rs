//! Profiles as decks give them.

use super::error::SphereError;
use super::profile::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The density of a sphere as a function of radius.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProfileConfig {
    /// Plummer's sphere, with a core: density proportional to `(1 + r^2/radius^2)^(-5/2)`.
    Plummer {
        /// Mass of the whole sphere.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        mass: f64,
        /// Scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        radius: f64,
    },
    /// Hernquist's sphere, with a cusp: density proportional to `1/(r (r + radius)^3)`.
    Hernquist {
        /// Mass of the whole sphere without a cut.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        mass: f64,
        /// Scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        radius: f64,
        /// Radius beyond which the density decays exponentially; without one it falls as the fourth power for ever.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        cut: Option<f64>,
        /// Length of the decay beyond the cut; 0.3 of the cut's radius unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        decay: Option<f64>,
    },
    /// The halo of Navarro, Frenk & White, which decays exponentially beyond `r200`.
    Nfw {
        /// Mass within `r200`.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass"))]
        m200: f64,
        /// Radius at which the mean density is 200 times the critical one.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        r200: f64,
        /// `r200` over the scale radius.
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        concentration: f64,
        /// Length of the decay beyond `r200`; 0.3 `r200` unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        decay: Option<f64>,
    },
    /// Densities at radii, between which the logarithm of density is a smooth function of that of radius.
    Table {
        /// Radii, at least 4, above 0, each above the one before.
        #[schemars(extend("unit" = "length"))]
        radius: Vec<f64>,
        /// Density at each radius, above 0; it has to end steeper than the third power of radius.
        #[schemars(extend("unit" = "mass/length**3"))]
        density: Vec<f64>,
    },
    /// What the sphere's `total` has beside its gas and its other particles; for one component of particles.
    Rest {},
}

impl ProfileConfig {
    /// The profile.
    ///
    /// # Errors
    /// A parameter outside of its range, by its key; a rest, which is no profile by itself.
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
                        "needs a cut, beyond which the density decays: add `cut` or leave it out",
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
                "`rest` is for one component of `particles` of a sphere with `total`",
            )),
        }
    }
}
