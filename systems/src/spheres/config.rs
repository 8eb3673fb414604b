//! Density profiles in decks.

use super::error::SphereError;
use super::profile::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
