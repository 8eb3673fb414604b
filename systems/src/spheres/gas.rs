//! Gas in hydrostatic equilibrium.

use super::curve::{CELLS, RadialFunction, RadialGrid};
use super::error::{SphereError, in_range, positive};
use super::matter::MassModel;
use super::profile::Profile;
use nestar_device::math::ln;

/// A sphere of gas at rest, whose pressure holds it in the potential of itself and other mass, up to a radius where the pressure is given;
/// from there on density and pressure stay what they are.
#[derive(Clone, Debug, PartialEq)]
pub struct HydrostaticGas {
    profile: Profile,
    /// Where it begins and ends.
    core: f64,
    radius: f64,
    pressure: RadialFunction,
}

impl HydrostaticGas {
    /// The gas of this profile, attracted by itself and by `others`, up to `radius`, where its pressure is `pressure`. `gravity` is Newton's
    /// constant.
    ///
    /// # Errors
    /// A gravity, radius or pressure that is not a finite number above 0; a radius within which there is next to no gas; numbers beyond double
    /// precision.
    pub fn new(
        profile: &Profile,
        others: &[Profile],
        gravity: f64,
        radius: f64,
        pressure: f64,
    ) -> Result<Self, SphereError> {
        let matter = MassModel::new(profile, others, gravity)?;
        let pressure = positive("pressure", pressure)?;
        let (radius, core) = (in_range("radius", radius)?, profile.core());
        if radius <= core {
            let why = format!("must be above {core:.3e}, where the gas begins, not {radius}");
            return Err(SphereError::parameter("radius", why));
        }
        let rate = |r: f64| profile.density(r) * matter.pull(r);
        let pressure =
            RadialFunction::inwards(RadialGrid::new(core, radius, CELLS), pressure, rate);
        if !pressure.value(0).is_finite() {
            return Err(SphereError::OutOfRange);
        }
        Ok(Self {
            profile: profile.clone(),
            core,
            radius,
            pressure,
        })
    }

    /// Where it ends, length.
    #[must_use]
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// The density at a radius, mass/length^3. Within the innermost 1e-12 of the mass it stays the same.
    #[must_use]
    pub fn density(&self, r: f64) -> f64 {
        self.profile.density(r.clamp(self.core, self.radius))
    }

    /// The pressure at a radius: the integral of `density G M/r^2` from there outwards, and the outer pressure.
    #[must_use]
    pub fn pressure(&self, r: f64) -> f64 {
        self.pressure.at(ln(r))
    }
}
