//! Gas in hydrostatic equilibrium.

use super::error::{SphereError, in_range, positive};
use super::mass_model::MassModel;
use super::profile::Profile;
use super::radial_function::{CELLS, RadialFunction, RadialGrid};
use nestar_device::math::ln;

/// Sphere of gas at rest in hydrostatic equilibrium, in the potential of itself and other mass. It ends at a
/// radius with a given pressure; beyond it density and pressure are constant.
#[derive(Clone, Debug, PartialEq)]
pub struct HydrostaticGas {
    profile: Profile,
    /// Inner and outer radius.
    core: f64,
    radius: f64,
    pressure: RadialFunction,
}

impl HydrostaticGas {
    /// Creates gas with a density profile that ends at `radius` with the pressure `pressure`. It is attracted
    /// by itself and by `others`; `gravity` is Newton's constant.
    ///
    /// # Errors
    /// A parameter is not positive and finite, there is almost no gas within the radius, or numbers overflow.
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
            let why = format!("must be above {core:.3e}, the core radius of the gas, not {radius}");
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

    /// Outer radius, length.
    #[must_use]
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Returns the density at a radius, mass/length^3; constant within the radius of the innermost 1e-12 of
    /// the mass.
    #[must_use]
    pub fn density(&self, r: f64) -> f64 {
        self.profile.density(r.clamp(self.core, self.radius))
    }

    /// Returns the pressure at a radius: the outer pressure plus the integral of `density G M/r^2`.
    #[must_use]
    pub fn pressure(&self, r: f64) -> f64 {
        self.pressure.at(ln(r))
    }
}
