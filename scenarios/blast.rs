//! A spherical blast wave: a hot sphere in a uniform medium.

use crate::{Parameters, Setting};
use nestar_deck::DeckError;
use nestar_device::math::sum3;
use nestar_systems::hydro::{InitialState, Primitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sphere of high pressure in the middle of a uniform medium at rest. Benchmarks use this problem.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blast {
    /// Density.
    #[schemars(extend("unit" = "mass/length**3", "exclusiveMinimum" = 0.0))]
    pub density: f64,
    /// Pressure outside the sphere.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
    /// Pressure in the sphere.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub inner_pressure: f64,
    /// Radius of the sphere.
    #[schemars(extend("unit" = "length", "exclusiveMinimum" = 0.0))]
    pub radius: f64,
}

impl Default for Blast {
    fn default() -> Self {
        Self {
            density: 1.0,
            pressure: 0.1,
            inner_pressure: 10.0,
            radius: 0.1,
        }
    }
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
