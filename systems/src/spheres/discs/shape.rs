//! The density of an exponential disc.

use super::super::error::{SphereError, in_range};
use super::super::profile::Profile;
use super::super::radial_function::integrals;
use super::grid::arsinh;
use nestar_device::math::{cos, exp, ln, sin, sinh};
use std::f64::consts::{FRAC_PI_2, PI};
use std::ops::RangeInclusive;

/// Radial end of a disc, in scale radii; 2e-6 of the mass are beyond it.
pub(super) const END: f64 = 16.0;
/// Vertical end of a disc, in heights.
pub(super) const TOP: f64 = 12.0;
/// Allowed heights, in scale radii.
const HEIGHTS: RangeInclusive<f64> = 0.01..=1.0;
/// Radii of the tabulated spherical average.
const SHELLS: usize = 200;

/// Exponential disc: density `mass/(4 pi radius^2 height) exp(-R/radius) sech^2(z/height)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiscShape {
    pub(super) mass: f64,
    pub(super) radius: f64,
    pub(super) height: f64,
}

impl DiscShape {
    /// Creates a disc from its mass, its scale radius and its scale height.
    ///
    /// # Errors
    /// A parameter is outside 1e-60 to 1e60, or the height is not from 0.01 to 1 radii.
    pub fn new(mass: f64, radius: f64, height: f64) -> Result<Self, SphereError> {
        let (mass, radius) = (in_range("mass", mass)?, in_range("radius", radius)?);
        let height = in_range("height", height)?;
        if !HEIGHTS.contains(&(height / radius)) {
            let [least, most] = [HEIGHTS.start(), HEIGHTS.end()].map(|share| share * radius);
            let why = format!(
                "must be from {least:.3e} to {most:.3e}, 0.01 to 1 of the disc's radius, not {height}"
            );
            return Err(SphereError::parameter("height", why));
        }
        Ok(Self {
            mass,
            radius,
            height,
        })
    }

    /// Total mass.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// Returns the mass per area at a radius, mass/length^2.
    #[must_use]
    pub fn surface_density(&self, r: f64) -> f64 {
        self.mass / (2.0 * PI * self.radius * self.radius) * exp(-r / self.radius)
    }

    /// Returns the density at a radius and a height, mass/length^3.
    #[must_use]
    pub fn density(&self, r: f64, z: f64) -> f64 {
        self.surface_density(r) * sech_square(z / self.height) / (2.0 * self.height)
    }

    /// Returns the mass within a cylindrical radius.
    #[must_use]
    pub fn mass_within(&self, r: f64) -> f64 {
        self.mass * share(r / self.radius)
    }

    /// Returns the radius that contains a fraction of the mass within `end`.
    pub(super) fn radius_of(&self, fraction: f64, end: f64) -> f64 {
        let (mut low, mut high) = (0.0, end / self.radius);
        let wanted = fraction * share(high);
        for _ in 0..54 {
            let middle = 0.5 * (low + high);
            if share(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.radius * high
    }

    /// Returns the height below which a fraction of the mass at a radius is.
    pub(super) fn height_of(&self, fraction: f64) -> f64 {
        // tanh(TOP) is 1 - 8e-11
        let t = (2.0 * fraction - 1.0).clamp(-1.0 + 8e-11, 1.0 - 8e-11);
        0.5 * self.height * ln((1.0 + t) / (1.0 - t))
    }

    /// Returns the spherically averaged density.
    ///
    /// # Errors
    /// Densities overflow or underflow.
    pub fn averaged(&self) -> Result<Profile, SphereError> {
        let (first, last) = (0.01 * self.height, END * self.radius);
        let step = ln(last / first) / SHELLS as f64;
        let radii: Vec<f64> = (0..=SHELLS).map(|n| first * exp(step * n as f64)).collect();
        let densities: Vec<f64> = radii.iter().map(|&r| self.mean_on_shell(r)).collect();
        Profile::table(&radii, &densities).map_err(|_| SphereError::OutOfRange)
    }

    /// Returns the mean density at a distance from the centre.
    fn mean_on_shell(&self, r: f64) -> f64 {
        // latitude thin sinh(s): the disc is thin seen from the centre
        let thin = self.height / r;
        let end = arsinh(FRAC_PI_2 / thin);
        let rate = |s: f64| {
            let latitude = thin * sinh(s);
            let slope = (thin * thin + latitude * latitude).sqrt();
            let (across, up) = (cos(latitude), sin(latitude));
            [across * slope * self.density(r * across, r * up)]
        };
        integrals([0.0, end], 16, rate)[0]
    }
}

/// Returns the fraction of the mass within `x` scale radii.
fn share(x: f64) -> f64 {
    1.0 - (1.0 + x) * exp(-x)
}

/// Returns the square of the hyperbolic secant.
pub(super) fn sech_square(x: f64) -> f64 {
    let decay = exp(-2.0 * x.abs());
    4.0 * decay / ((1.0 + decay) * (1.0 + decay))
}
