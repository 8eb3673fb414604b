//! A point explosion (Sedov 1959).

use crate::{Parameters, Setting};
use nestar_deck::DeckError;
use nestar_device::math::sum3;
use nestar_systems::hydro::{InitialState, Primitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point explosion: energy in a small sphere of a uniform medium at rest.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sedov {
    /// Energy of the explosion.
    #[schemars(extend("unit" = "mass*length**2/time**2", "exclusiveMinimum" = 0.0))]
    pub energy: f64,
    /// Density of the medium.
    #[schemars(extend("unit" = "mass/length**3", "exclusiveMinimum" = 0.0))]
    pub density: f64,
    /// Pressure of the medium.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
    /// Radius of the sphere that receives the energy; 0: 3.5 cells of the finest level.
    #[schemars(range(min = 0.0), extend("unit" = "length"))]
    pub radius: f64,
    /// Centre of the explosion, as a fraction of the domain along x, y, z.
    pub centre: [f64; 3],
}

impl Default for Sedov {
    fn default() -> Self {
        Self {
            energy: 1.0,
            density: 1.0,
            pressure: 1e-5,
            radius: 0.0,
            centre: [0.5; 3],
        }
    }
}

impl Parameters for Sedov {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let [left, right] = setting.edges;
        let centre: [f64; 3] =
            std::array::from_fn(|a| (1.0 - self.centre[a]) * left[a] + self.centre[a] * right[a]);
        let finest = setting
            .root_width
            .map(|w| w / f64::from(1u32 << setting.max_level));
        let radius = match self.radius {
            r if r > 0.0 => r,
            _ => 3.5 * finest.iter().copied().fold(0.0, f64::max),
        };
        let inside = energy_density(&self, setting, centre, radius, finest);
        let pressure = (setting.model.gamma - 1.0) * inside;
        Ok(Box::new(move |x: [f64; 3]| {
            let d = [x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]];
            let within = sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]) < radius * radius;
            Primitive {
                density: self.density,
                velocity: [0.0; 3],
                pressure: if within {
                    self.pressure.max(pressure)
                } else {
                    self.pressure
                },
            }
        }))
    }
}

/// Energy over the volume of the finest cells whose centres lie in the sphere, so that the mesh holds the energy exactly.
fn energy_density(
    p: &Sedov,
    setting: &Setting,
    centre: [f64; 3],
    radius: f64,
    width: [f64; 3],
) -> f64 {
    let range: [(i64, i64); 3] = std::array::from_fn(|a| {
        let cell = |x: f64| ((x - setting.edges[0][a]) / width[a]).floor() as i64;
        (cell(centre[a] - radius), cell(centre[a] + radius))
    });
    let offset = |a: usize, i: i64| setting.edges[0][a] + (i as f64 + 0.5) * width[a] - centre[a];
    let mut cells = 0u64;
    for k in range[2].0..=range[2].1 {
        for j in range[1].0..=range[1].1 {
            for i in range[0].0..=range[0].1 {
                let d = [offset(0, i), offset(1, j), offset(2, k)];
                cells += u64::from(sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]) < radius * radius);
            }
        }
    }
    p.energy / (cells.max(1) as f64 * width[0] * width[1] * width[2])
}
