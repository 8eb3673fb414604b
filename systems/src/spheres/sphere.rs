//! Components of a sphere in equilibrium: collisionless particles, and hydrostatic gas.

use super::distribution::{Distribution, SpeedDistribution};
use super::error::{SphereError, in_range, positive};
use super::profile::{MassModel, Profile};
use super::radial_function::{CELLS, RadialFunction, RadialGrid};
use nestar_device::math::{cos, exp, ln, pow, sin};
use std::f64::consts::PI;

/// Random numbers per particle.
pub const UNIFORMS: usize = 6;
/// Grid nodes per radius with a table of speeds.
const EVERY: usize = 8;

/// Component of particles in equilibrium with isotropic velocities, in the potential of itself and other
/// mass.
///
/// The distribution function is that of the whole profile. A truncation only removes the particles beyond it;
/// the others move as if these were present.
#[derive(Clone, Debug, PartialEq)]
pub struct Sphere {
    truncation: f64,
    /// Mass within the truncation.
    mass: f64,
    /// Inverse exponent of the mass within the first node as a power of radius.
    inner_power: f64,
    grid: RadialGrid,
    /// Mass within each node.
    masses: Vec<f64>,
    /// Minus the potential.
    potential: RadialFunction,
    /// Square of the one-dimensional velocity dispersion.
    dispersion: RadialFunction,
    distribution: Distribution,
    /// Speed distributions at every few nodes.
    speeds: Vec<SpeedDistribution>,
}

impl Sphere {
    /// Creates the component of a profile that is attracted by itself and by `others`. `gravity` is Newton's
    /// constant. No particle is beyond `truncation`, which may be infinite; power-law tails end at 1e5 scale
    /// radii.
    ///
    /// # Errors
    /// A parameter is not positive, the distribution function is negative, or numbers overflow.
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
                    "must be above {core:.3e}, the core radius of the profile, not {truncation}"
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

    /// Mass within the truncation, shared by the particles.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// Radius beyond which there are no particles.
    #[must_use]
    pub fn edge(&self) -> f64 {
        self.truncation
    }

    /// Returns the potential of all mass at a radius, velocity^2; 0 at infinity.
    #[must_use]
    pub fn potential(&self, r: f64) -> f64 {
        -self.potential.at(ln(r))
    }

    /// Returns the one-dimensional velocity dispersion at a radius, from the Jeans equation of the whole
    /// profile.
    #[must_use]
    pub fn dispersion(&self, r: f64) -> f64 {
        self.dispersion.at(ln(r)).sqrt()
    }

    /// Returns the distribution function, mass/(length velocity)^3, at minus the total energy per unit mass;
    /// positive energies are bound.
    #[must_use]
    pub fn distribution(&self, energy: f64) -> f64 {
        if energy <= 0.0 {
            return 0.0;
        }
        self.distribution.at(energy)
    }

    /// Samples the position and velocity of a particle relative to the centre from six uniform numbers in [0,
    /// 1). One is for the radius, two are for the direction of the position, one for the speed, and two for
    /// the direction of the velocity.
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

    /// Returns the radius that contains a fraction of the mass.
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

    /// Returns the speed below which a fraction of the particles at a radius are.
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

/// Returns the square of the one-dimensional dispersion (Binney & Tremaine 2008, equation 4.215 without
/// anisotropy): the integral of `rho G M/r^2` from a radius outwards over the density.
fn dispersion(matter: MassModel, grid: RadialGrid) -> RadialFunction {
    let rate = |r: f64| matter.own.density(r) * matter.pull(r);
    let end = grid.radius(grid.cells);
    // beyond the end the density is a power law and the mass nearly constant
    let outer = rate(end) / (1.0 + matter.own.local(end).steepness);
    let pressure = RadialFunction::inwards(grid, outer, rate);
    RadialFunction::through(grid, |n| {
        let r = grid.radius(n);
        let local = matter.own.local(r);
        let slope = local.steepness - rate(r) / pressure.value(n);
        [pressure.value(n) / local.density, slope]
    })
}

/// Returns a random direction from two uniform numbers; each coordinate is uniform (Archimedes).
fn direction(height: f64, angle: f64) -> [f64; 3] {
    let z = 2.0 * height - 1.0;
    let across = (1.0 - z * z).sqrt();
    let angle = 2.0 * PI * angle;
    [across * cos(angle), across * sin(angle), z]
}

/// Sphere of gas at rest in hydrostatic equilibrium, in the potential of itself and other mass. It ends at a
/// radius with a given pressure; beyond it density and pressure are constant.
#[derive(Clone, Debug, PartialEq)]
pub struct HydrostaticGas {
    profile: Profile,
    /// Inner and outer radius.
    core: f64,
    radius: f64,
    pressure: RadialFunction,
    /// The density, if the profile is slow to evaluate.
    density: Option<RadialFunction>,
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
        let grid = RadialGrid::new(core, radius, CELLS);
        let pressure = RadialFunction::inwards(grid, pressure, rate);
        if !pressure.value(0).is_finite() {
            return Err(SphereError::OutOfRange);
        }
        Ok(Self {
            density: profile.tabulated(grid),
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

    /// Returns densities (mass/length^3) and pressures at several radii. The density is constant within the radius of the innermost
    /// 1e-12 of the mass; that of gas with a law of entropy has a relative error below 3e-9. The pressure is the outer one
    /// plus the integral of `density G M/r^2`.
    #[must_use]
    pub fn states(&self, radii: &[f64]) -> [Vec<f64>; 2] {
        let grid = self.pressure.grid();
        // a loop of its own, which becomes vector instructions
        let mut places: Vec<f64> = radii.iter().map(|&r| ln(r)).collect();
        places.iter_mut().for_each(|x| *x = grid.place(*x));
        let density = |&r: &f64| self.profile.density(r.clamp(self.core, self.radius));
        let densities = match &self.density {
            Some(density) => density.at_places(&places),
            None => radii.iter().map(density).collect(),
        };
        [densities, self.pressure.at_places(&places)]
    }

    /// Returns the density of [`HydrostaticGas::states`].
    #[must_use]
    pub fn density(&self, r: f64) -> f64 {
        self.states(&[r])[0][0]
    }

    /// Returns the pressure of [`HydrostaticGas::states`].
    #[must_use]
    pub fn pressure(&self, r: f64) -> f64 {
        self.states(&[r])[1][0]
    }
}
