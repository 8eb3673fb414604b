//! Total mass of a sphere.

use super::error::{SphereError, in_range};
use super::profile::Profile;
use super::radial_function::{CELLS, RadialFunction, RadialGrid};
use std::f64::consts::PI;

/// Intervals between the reach of a component and that of all mass.
const BEYOND: usize = 512;

/// A component and the other mass that attracts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassModel<'a> {
    /// The component.
    pub own: &'a Profile,
    /// Other mass.
    pub others: &'a [Profile],
    /// Newton's constant.
    pub gravity: f64,
}

impl<'a> MassModel<'a> {
    /// Combines a component with other mass.
    pub fn new(own: &'a Profile, others: &'a [Profile], gravity: f64) -> Result<Self, SphereError> {
        let gravity = in_range("gravity", gravity)?;
        Ok(Self {
            own,
            others,
            gravity,
        })
    }

    fn sum(&self, of: impl Fn(&Profile) -> f64) -> f64 {
        self.others.iter().map(&of).sum::<f64>() + of(self.own)
    }

    /// Returns `G M/r` of all mass within a radius: the derivative of the potential by `ln r`.
    pub fn pull(&self, r: f64) -> f64 {
        self.gravity * self.sum(|part| part.mass(r)) / r
    }

    /// Returns the derivative of `ln M` by `ln r`.
    pub fn mass_slope(&self, r: f64) -> f64 {
        let shell = 4.0 * PI * r * r * r * self.sum(|part| part.density(r));
        shell / self.sum(|part| part.mass(r))
    }

    /// Returns the grid of the component between the radii that contain nearly all of its mass.
    pub fn grid(&self) -> RadialGrid {
        RadialGrid::new(self.own.core(), self.own.reach(), CELLS)
    }

    /// Returns minus the potential: the integral of `G M/r^2` from a radius to infinity.
    pub fn potential(&self, grid: RadialGrid) -> RadialFunction {
        let far = self.others.iter().fold(0.0, |r: f64, p| r.max(p.reach()));
        let (reach, pull) = (self.own.reach(), |r: f64| self.pull(r));
        let mut outer = pull(reach);
        if far > reach {
            let beyond =
                RadialFunction::inwards(RadialGrid::new(reach, far, BEYOND), pull(far), pull);
            outer = beyond.value(0);
        }
        RadialFunction::inwards(grid, outer, pull)
    }
}
