//! Spheres of particles without collisions.

use super::curve::{RadialFunction, RadialGrid};
use super::distribution::Distribution;
use super::error::SphereError;
use super::matter::MassModel;
use super::profile::Profile;
use super::speeds::SpeedDistribution;
use nestar_device::math::{cos, exp, ln, pow, sin};
use std::f64::consts::PI;

/// Random numbers that a particle takes.
pub const UNIFORMS: usize = 6;
/// Nodes of the grid for each radius with a table of speeds.
const EVERY: usize = 8;

/// A component of particles in equilibrium, with isotropic velocities, in the potential of itself and other mass.
///
/// Its distribution function is that of the whole profile. A truncation only leaves out the particles beyond it, so that those near it are
/// in equilibrium with what was left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Sphere {
    truncation: f64,
    /// Mass within the truncation.
    mass: f64,
    /// Inverse of the power of radius that the mass within the first node grows with.
    inner_power: f64,
    grid: RadialGrid,
    /// Mass within each node.
    masses: Vec<f64>,
    /// Potential with its sign turned.
    potential: RadialFunction,
    /// Square of the velocity dispersion of one axis.
    dispersion: RadialFunction,
    distribution: Distribution,
    /// Speeds at some nodes.
    speeds: Vec<SpeedDistribution>,
}

impl Sphere {
    /// The component of this profile, attracted by itself and by `others`. `gravity` is Newton's constant; no particle is beyond the radius
    /// `truncation`, which may be infinite: a profile with a power-law tail then ends at 1e5 scale radii, where it has next to no mass.
    ///
    /// # Errors
    /// A gravity or truncation that is not above 0; a distribution function that is negative somewhere; numbers beyond double precision.
    pub fn new(
        profile: &Profile,
        others: &[Profile],
        gravity: f64,
        truncation: f64,
    ) -> Result<Self, SphereError> {
        let matter = MassModel::new(profile, others, gravity)?;
        let grid = matter.grid();
        let core = grid.radius(1);
        if truncation.is_nan() || truncation < core {
            return Err(SphereError::parameter(
                "truncation",
                format!(
                    "must be a radius above {core:.3e}, where the profile begins, not {truncation}"
                ),
            ));
        }
        let truncation = truncation.min(grid.radius(grid.cells));
        let potential = matter.potential(grid);
        let dispersion = dispersion(matter, grid);
        if ![&potential, &dispersion]
            .iter()
            .all(|of| of.value(0).is_normal())
        {
            return Err(SphereError::OutOfRange);
        }
        let distribution = Distribution::new(matter, grid, &potential)?;
        let speeds = |n: usize| {
            let sigma = dispersion.value(n).sqrt();
            SpeedDistribution::new(&distribution, n, potential.value(n), sigma)
        };
        Ok(Self {
            truncation,
            mass: profile.mass(truncation),
            inner_power: 1.0 / (3.0 - profile.local(grid.radius(0)).steepness),
            grid,
            masses: grid.nodes().map(|n| profile.mass(grid.radius(n))).collect(),
            speeds: grid.nodes().step_by(EVERY).map(speeds).collect(),
            potential,
            dispersion,
            distribution,
        })
    }

    /// The mass within the truncation, which the particles share.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// The radius beyond which there is no particle.
    #[must_use]
    pub fn edge(&self) -> f64 {
        self.truncation
    }

    /// The potential of all mass at a radius, 0 at infinity and negative elsewhere, velocity^2.
    #[must_use]
    pub fn potential(&self, r: f64) -> f64 {
        -self.potential.at(ln(r))
    }

    /// The velocity dispersion of one axis at a radius, from the equation of Jeans for the whole profile.
    #[must_use]
    pub fn dispersion(&self, r: f64) -> f64 {
        self.dispersion.at(ln(r)).sqrt()
    }

    /// The distribution function, mass/(length velocity)^3, at the energy of a unit of mass, potential and kinetic energy with the sign
    /// turned: above 0 for bound orbits.
    #[must_use]
    pub fn distribution(&self, energy: f64) -> f64 {
        if energy <= 0.0 {
            return 0.0;
        }
        self.distribution.at(energy)
    }

    /// The position and velocity of a particle, relative to the centre, for six independent uniform numbers from 0 (inclusive) to 1
    /// (exclusive): one for the radius, two for the direction of the position, one for the speed and two for the direction of the velocity.
    #[must_use]
    pub fn sample(&self, uniforms: [f64; UNIFORMS]) -> ([f64; 3], [f64; 3]) {
        let [share, place @ .., slower, height, angle] = uniforms;
        let [z, azimuth] = place;
        let r = self.radius(share);
        let speed = self.speed(r, slower);
        (
            direction(z, azimuth).map(|x| r * x),
            direction(height, angle).map(|x| speed * x),
        )
    }

    /// The radius that contains a share of the mass.
    fn radius(&self, share: f64) -> f64 {
        let mass = share * self.mass;
        let above = self.masses.partition_point(|&m| m <= mass);
        if above == 0 {
            return self.grid.radius(0) * pow(mass / self.masses[0], self.inner_power);
        }
        let n = (above - 1).min(self.grid.cells - 1);
        let (low, high) = (self.masses[n], self.masses[n + 1]);
        let t = if high > low {
            (mass - low) / (high - low)
        } else {
            0.0
        };
        exp(self.grid.ln_radius(n as f64 + t)).min(self.truncation)
    }

    /// The speed at a radius that a share of the particles there do not reach.
    fn speed(&self, r: f64, share: f64) -> f64 {
        let ln_r = ln(r);
        let place = self.grid.place(ln_r) / EVERY as f64;
        let n = (place as usize).min(self.speeds.len() - 2);
        let t = place - n as f64;
        let [inner, outer] = [n, n + 1].map(|n| self.speeds[n].quantile(share));
        let speed = self.dispersion.at(ln_r).sqrt() * (inner + t * (outer - inner));
        // interpolation must not unbind a particle
        speed.min((2.0 * self.potential.at(ln_r)).sqrt())
    }
}

/// The square of the dispersion of one axis, the integral of `rho G M/r^2` from a radius outwards over the density there (Binney & Tremaine
/// 2008, equation 4.215 without anisotropy).
fn dispersion(matter: MassModel, grid: RadialGrid) -> RadialFunction {
    let rate = |r: f64| matter.own.density(r) * matter.pull(r);
    let end = grid.radius(grid.cells);
    // the density goes on as a power of radius, and the mass hardly grows
    let outer = rate(end) / (1.0 + matter.own.local(end).steepness);
    let pressure = RadialFunction::inwards(grid, outer, rate);
    RadialFunction::through(grid, |n| {
        let r = grid.radius(n);
        let local = matter.own.local(r);
        let slope = local.steepness - rate(r) / pressure.value(n);
        [pressure.value(n) / local.density, slope]
    })
}

/// A direction for two uniform numbers: by Archimedes' theorem each coordinate is uniform.
fn direction(height: f64, angle: f64) -> [f64; 3] {
    let z = 2.0 * height - 1.0;
    let across = (1.0 - z * z).sqrt();
    let angle = 2.0 * PI * angle;
    [across * cos(angle), across * sin(angle), z]
}
