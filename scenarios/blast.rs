//! A spherical blast wave: a hot sphere in a uniform medium.

use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_device::math::sum3;
use nestar_systems::hydro::{InitialState, Primitive};

/// A sphere of high pressure in the middle of a uniform medium at rest. Benchmarks use this problem.
#[deck]
pub struct Blast {
    /// Density.
    #[key(default = 1.0, unit = "mass/length**3", above = 0.0)]
    pub density: f64,
    /// Pressure outside the sphere.
    #[key(default = 0.1, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// Pressure in the sphere.
    #[key(default = 10.0, unit = "mass/(length*time**2)", above = 0.0)]
    pub inner_pressure: f64,
    /// Radius of the sphere.
    #[key(default = 0.1, unit = "length", above = 0.0)]
    pub radius: f64,
}

impl Parameters for Blast {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let centre: [f64; 3] = setting.centre(None);
        Ok(Box::new(move |x: [f64; 3]| {
            let d: [f64; 3] = std::array::from_fn(|a| x[a] - centre[a]);
            let within = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]) < self.radius * self.radius;
            Primitive {
                density: self.density,
                velocity: [0.0; 3],
                pressure: if within {
                    self.inner_pressure
                } else {
                    self.pressure
                },
            }
        }))
    }
}
