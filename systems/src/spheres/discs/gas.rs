//! Rotating discs of gas.

use super::super::error::{SphereError, positive};
use super::force::GalaxyForce;
use super::grid::PlaneTable;
use super::shape::{DiscShape, END};

/// Half the width of a difference, relative to the radius.
const DIFFERENCE: f64 = 0.02;

/// Uniform medium around the gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Medium {
    /// Density, mass/length^3.
    pub density: f64,
    /// Pressure, mass/(length time^2).
    pub pressure: f64,
}

/// Exponential disc of gas that rotates in the gravity of all mass.
///
/// The rotation balances gravity and the radial gradient of the pressure. The disc ends where it is as thin
/// as the medium around it, and isothermal gas also where its pressure is that of the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct GasDisc {
    shape: DiscShape,
    medium: Medium,
    /// Pressure over density, if it is uniform.
    isothermal: Option<f64>,
    /// Density at the edge.
    least: f64,
    /// Pressure over density, and the square of the rotation speed.
    table: PlaneTable<2>,
}

/// Gas of a disc at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GasDiscState {
    /// Density, mass/length^3.
    pub density: f64,
    /// Pressure, mass/(length time^2), at least that of the medium.
    pub pressure: f64,
    /// Azimuthal velocity, length/time; counterclockwise seen from positive z.
    pub rotation: f64,
}

impl GasDisc {
    /// Creates a disc in a medium. `isothermal` is the pressure over the density. Without it, the pressure
    /// supports the disc against vertical gravity at each height. `force` includes the gravity of the disc.
    ///
    /// # Errors
    /// A parameter is not positive, or the pressure leaves no rotation at two scale radii.
    pub fn new(
        shape: DiscShape,
        isothermal: Option<f64>,
        force: &GalaxyForce,
        medium: Medium,
    ) -> Result<Self, SphereError> {
        let pressure = positive("ambient.pressure", medium.pressure)?;
        let least = positive("ambient.density", medium.density)?;
        if let Some(ratio) = isothermal {
            positive("sound_speed", ratio)?;
        }
        let support = force.support(&shape);
        let disc = Self {
            table: PlaneTable::new(support.axes(), |r, z| match isothermal {
                Some(ratio) => [ratio, rotation_square(&shape, force, |_| ratio, [r, z])],
                None => {
                    let along = |r: f64| support.at(r, z)[0];
                    [along(r), rotation_square(&shape, force, along, [r, z])]
                }
            }),
            least: isothermal.map_or(least, |ratio| least.max(pressure / ratio)),
            shape,
            medium,
            isothermal,
        };
        // also refuses numbers that overflow
        if disc.table.at(2.0 * shape.radius, 0.0)[1] > 0.0 {
            return Ok(disc);
        }
        let key = isothermal.map_or("height", |_| "sound_speed");
        let why =
            "is too large: the pressure of the gas leaves no rotation at two radii of the disc";
        Err(SphereError::parameter(key, why))
    }

    /// Returns the gas at a cylindrical radius and a height; `None` outside the disc.
    #[must_use]
    pub fn state(&self, r: f64, z: f64) -> Option<GasDiscState> {
        let z = z.abs();
        if r > END * self.shape.radius || z > END * self.shape.height {
            return None;
        }
        let density = self.shape.density(r, z);
        if density <= self.least {
            return None;
        }
        let [support, square] = self.table.at(r, z);
        let medium = match self.isothermal {
            Some(_) => 0.0,
            None => self.medium.pressure,
        };
        Some(GasDiscState {
            density,
            pressure: medium + density * support,
            rotation: square.max(0.0).sqrt(),
        })
    }
}

/// Returns the square of the rotation speed at a radius and a height. `ratio` is the pressure over the density
/// along the radius.
fn rotation_square(
    shape: &DiscShape,
    force: &GalaxyForce,
    ratio: impl Fn(f64) -> f64,
    [r, z]: [f64; 2],
) -> f64 {
    let r = r.max(1e-6 * shape.radius);
    let slope = ratio(r * (1.0 + DIFFERENCE)) - ratio(r * (1.0 - DIFFERENCE));
    let pressure = slope / (2.0 * DIFFERENCE) - ratio(r) * r / shape.radius;
    force.circular_square(r, z) + pressure
}
