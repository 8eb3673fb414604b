//! Orbits of pairs.

use super::error::{SphereError, positive};
use serde::{Deserialize, Serialize};

/// Where two spheres begin, and how fast: they approach each other along x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Distance of the two centres, length, above 0.
    pub separation: f64,
    /// Relative speed of the two centres, length/time, not below 0.
    pub speed: f64,
    /// Distance at which the centres would pass without gravity, length, from 0 to the separation; along y.
    #[serde(default)]
    pub impact_parameter: f64,
    /// Mass of the second sphere over that of the first, above 0.
    pub mass_ratio: f64,
}

/// The centre of a sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Where it is, length.
    pub position: [f64; 3],
    /// How fast it moves, length/time.
    pub velocity: [f64; 3],
}

impl Orbit {
    /// The first and the second centre, in the frame in which the centre of mass rests at the origin. The first has negative x and y and
    /// moves along x, the second against it.
    ///
    /// # Errors
    /// A parameter outside of its range.
    pub fn centres(&self) -> Result<[Centre; 2], SphereError> {
        let separation = positive("separation", self.separation)?;
        let ratio = positive("mass_ratio", self.mass_ratio)?;
        let (speed, impact) = (self.speed, self.impact_parameter);
        if !speed.is_finite() || speed < 0.0 {
            let why = format!("must be a finite number, not below 0, not {speed}");
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
