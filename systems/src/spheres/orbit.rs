//! Orbits of two spheres.

use super::error::{SphereError, positive};
use serde::{Deserialize, Serialize};

/// Initial separation and velocity of two spheres that approach each other along x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Distance of the centres, length, above 0.
    pub separation: f64,
    /// Relative speed of the centres, length/time, not negative.
    pub speed: f64,
    /// Impact parameter along y, length, from 0 to the separation.
    #[serde(default)]
    pub impact_parameter: f64,
    /// Mass of the second sphere over that of the first, above 0.
    pub mass_ratio: f64,
}

/// Centre of a sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Position, length.
    pub position: [f64; 3],
    /// Velocity, length/time.
    pub velocity: [f64; 3],
}

impl Orbit {
    /// Returns both centres in the centre-of-mass frame. The first sphere starts at negative x and y and
    /// moves towards positive x.
    ///
    /// # Errors
    /// A parameter is out of range.
    pub fn centres(&self) -> Result<[Centre; 2], SphereError> {
        let separation = positive("separation", self.separation)?;
        let ratio = positive("mass_ratio", self.mass_ratio)?;
        let (speed, impact) = (self.speed, self.impact_parameter);
        if !speed.is_finite() || speed < 0.0 {
            let why = format!("must be finite and not negative, not {speed}");
            return Err(SphereError::parameter("speed", why));
        }
        if !(0.0..=separation).contains(&impact) {
            let why = format!("must be from 0 to the separation, {separation}, not {impact}");
            return Err(SphereError::parameter("impact_parameter", why));
        }
        let along = ((separation - impact) * (separation + impact)).sqrt();
        let centre = |share: f64| Centre {
            position: [share * along, share * impact, 0.0],
            velocity: [-share * speed, 0.0, 0.0],
        };
        Ok([centre(-ratio / (1.0 + ratio)), centre(1.0 / (1.0 + ratio))])
    }
}
