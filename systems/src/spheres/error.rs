//! Errors of spheres.

use std::fmt;
use std::ops::RangeInclusive;

/// Reason why a sphere cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub enum SphereError {
    /// A parameter is invalid.
    Parameter {
        /// Key in the deck, with the index for an entry of a list.
        key: String,
        /// Allowed range and actual value.
        why: String,
    },
    /// The density has no isotropic distribution function.
    Negative {
        /// Outer radius of the orbits of the critical energy.
        radius: f64,
    },
    /// The other components exceed the total density.
    NothingLeft {
        /// Innermost such radius.
        radius: f64,
    },
    /// Double precision cannot resolve the potential.
    Unresolved {
        /// Innermost such radius.
        radius: f64,
    },
    /// Densities or potentials overflow or underflow.
    OutOfRange,
}

impl SphereError {
    pub(super) fn parameter(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Parameter {
            key: key.into(),
            why: why.into(),
        }
    }
}

impl fmt::Display for SphereError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { key, why } => write!(f, "{key} {why}"),
            Self::Negative { radius } => write!(
                f,
                "the profile has no equilibrium with isotropic velocities: the distribution function is negative \
                 for orbits out to the radius {radius:.4e}; make the density steeper there (smooth a table, \
                 lengthen a decay) or the other mass less concentrated"
            ),
            Self::NothingLeft { radius } => write!(
                f,
                "the gas and the other components exceed the total density at the radius {radius:.4e}: reduce \
                 `share` or `radius` of the gas, cut the other components, or lengthen the decay of the total"
            ),
            Self::Unresolved { radius } => write!(
                f,
                "double precision cannot resolve the potential around the radius {radius:.4e}: make the other \
                 mass less dominant or the profile less extended"
            ),
            Self::OutOfRange => write!(
                f,
                "densities, pressures or potentials overflow or underflow in double precision: choose units in \
                 which masses, radii and `gravity.constant` are closer to 1"
            ),
        }
    }
}

impl std::error::Error for SphereError {}

/// Range of masses, lengths and Newton's constant; cubes and ratios then fit in double precision.
const RANGE: RangeInclusive<f64> = 1e-60..=1e60;

/// Checks that a parameter is positive and finite.
pub(super) fn positive(key: &str, value: f64) -> Result<f64, SphereError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(SphereError::parameter(
        key,
        format!("must be finite and above 0, not {value}"),
    ))
}

/// Checks that a mass, a length or Newton's constant is in range.
pub(super) fn in_range(key: &str, value: f64) -> Result<f64, SphereError> {
    if RANGE.contains(&positive(key, value)?) {
        return Ok(value);
    }
    let (least, most) = (RANGE.start(), RANGE.end());
    Err(SphereError::parameter(
        key,
        format!("must be from {least:e} to {most:e}, not {value:e}: choose other units"),
    ))
}
