//! Discs of collisionless particles.

use super::super::error::SphereError;
use super::force::GalaxyForce;
use super::grid::PlaneTable;
use super::shape::{DiscShape, END, TOP};
use nestar_device::math::{cos, exp, sin};
use std::f64::consts::PI;

/// Radius at which the deck gives Toomre's number, in scale radii.
const REFERENCE: f64 = 2.5;

/// Exponential disc of particles in approximate equilibrium in the gravity of all mass.
///
/// The velocities have the moments of the Jeans equations (Hernquist, ApJS 86, 389 (1993); Springel, Di Matteo &
/// Hernquist, MNRAS 361, 776 (2005)) and normal distributions. The square of the radial dispersion is
/// proportional to the surface density. The vertical dispersion supports the disc against vertical gravity at
/// each height. The azimuthal dispersion follows from the epicyclic approximation, and the rotation from the
/// asymmetric drift.
#[derive(Clone, Debug, PartialEq)]
pub struct Disc {
    shape: DiscShape,
    force: GalaxyForce,
    /// Square of the vertical dispersion.
    vertical: PlaneTable<1>,
    /// Square of the radial dispersion at the centre.
    central: f64,
    /// Largest cylindrical radius.
    end: f64,
}

/// Mean rotation and velocity dispersions, length/time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiscMotion {
    /// Mean azimuthal velocity; counterclockwise seen from positive z.
    pub rotation: f64,
    /// Dispersion along the cylindrical radius.
    pub radial: f64,
    /// Dispersion of the azimuthal velocity.
    pub azimuthal: f64,
    /// Dispersion along z.
    pub vertical: f64,
}

impl Disc {
    /// Creates a disc with Toomre's number `toomre` at 2.5 scale radii, near its minimum. `force` includes the
    /// gravity of the disc itself. No particle is beyond the cylindrical radius `truncation`, which may be
    /// infinite, nor beyond 16 scale radii or 12 heights.
    ///
    /// # Errors
    /// The truncation is not positive, or the dispersion of this Toomre number leaves no rotation.
    pub fn new(
        shape: DiscShape,
        toomre: f64,
        force: &GalaxyForce,
        truncation: f64,
    ) -> Result<Self, SphereError> {
        if truncation.is_nan() || truncation <= 0.0 {
            let why = format!("must be above 0, not {truncation}");
            return Err(SphereError::parameter("truncation", why));
        }
        let r = REFERENCE * shape.radius;
        let angular_square = force.circular_square(r, 0.0) / (r * r);
        let epicyclic = (4.0 * angular_square * force.epicyclic_ratio(r)).sqrt();
        let sigma = 3.36 * toomre * force.gravity() * shape.surface_density(r) / epicyclic;
        let disc = Self {
            vertical: force.support(&shape),
            central: sigma * sigma * exp(REFERENCE),
            end: truncation.min(END * shape.radius),
            force: force.clone(),
            shape,
        };
        // also refuses numbers that overflow
        if disc.motion(r, 0.0).rotation > 0.0 {
            return Ok(disc);
        }
        let why = format!(
            "must be smaller than {toomre}: the radial dispersion, {sigma:.4e} at 2.5 radii, leaves no rotation"
        );
        Err(SphereError::parameter("toomre", why))
    }

    /// Mass within the truncation, shared by the particles.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.shape.mass_within(self.end)
    }

    /// Radius beyond which there are no particles.
    #[must_use]
    pub fn edge(&self) -> f64 {
        let top = TOP * self.shape.height;
        (self.end * self.end + top * top).sqrt()
    }

    /// Returns the mean rotation and the dispersions at a cylindrical radius and a height.
    #[must_use]
    pub fn motion(&self, r: f64, z: f64) -> DiscMotion {
        let (r, z) = (r.max(1e-6 * self.shape.radius), z.abs());
        let x = r / self.shape.radius;
        let radial = self.central * exp(-x);
        // the density and the square of the dispersion fall as exp(-x) each
        let excess = radial * (1.0 - 2.0 * x);
        let square = (self.force.circular_square(r, z) + excess).max(0.0);
        // the epicyclic approximation fails near the centre: there the rotation is limited to the circular speed
        let azimuthal = (radial * self.force.epicyclic_ratio(r)).max(excess);
        let azimuthal = azimuthal.clamp(0.0, square);
        DiscMotion {
            rotation: (square - azimuthal).sqrt(),
            radial: radial.sqrt(),
            azimuthal: azimuthal.sqrt(),
            vertical: self.vertical.at(r, z)[0].sqrt(),
        }
    }

    /// Samples the position and velocity of a particle relative to the centre. The uniform numbers in [0, 1)
    /// are for radius, azimuth and height, the normal deviates for the velocity along radius, azimuth and z.
    #[must_use]
    pub fn sample(&self, uniforms: [f64; 3], normals: [f64; 3]) -> ([f64; 3], [f64; 3]) {
        let r = self.shape.radius_of(uniforms[0], self.end);
        let z = self.shape.height_of(uniforms[2]);
        let angle = 2.0 * PI * uniforms[1];
        let (cosine, sine) = (cos(angle), sin(angle));
        let motion = self.motion(r, z);
        let out = motion.radial * normals[0];
        let around = motion.rotation + motion.azimuthal * normals[1];
        (
            [r * cosine, r * sine, z],
            [
                out * cosine - around * sine,
                out * sine + around * cosine,
                motion.vertical * normals[2],
            ],
        )
    }
}
