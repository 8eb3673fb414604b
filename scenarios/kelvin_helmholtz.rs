//! Two shear layers that break up into vortices.

use crate::noise::noise;
use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::DeckError;
use nestar_device::math::{exp, sin, tanh};
use nestar_systems::hydro::{InitialState, Primitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A layer in the middle half of the domain along z that flows along y against the gas around it. Its mass carries the
/// scalar `dye`, if the deck declares one. Instability grows from white noise, or from one smooth mode, or both.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KelvinHelmholtz {
    /// Density outside the layer and in it.
    #[schemars(extend("unit" = "mass/length**3"))]
    pub density: [f64; 2],
    /// Velocity along y outside the layer and in it.
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: [f64; 2],
    /// Pressure everywhere.
    #[schemars(extend("unit" = "mass/(length*time**2)", "exclusiveMinimum" = 0.0))]
    pub pressure: f64,
    /// Thickness of the shear layers, of which the transitions are tanh(z/thickness); 0: jumps.
    #[schemars(range(min = 0.0), extend("unit" = "length"))]
    pub thickness: f64,
    /// Amplitude of white noise in all three velocities: uniform between minus and plus this, one number per root cell.
    #[schemars(range(min = 0.0), extend("unit" = "length/time"))]
    pub noise: f64,
    /// Seed of the noise.
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
    /// Amplitude of the smooth mode in the velocity along z, at the shear layers.
    #[schemars(range(min = 0.0), extend("unit" = "length/time"))]
    pub mode_amplitude: f64,
    /// Wavelengths of the smooth mode along y in the domain.
    #[schemars(range(min = 1, max = 1024))]
    pub mode_number: u32,
    /// Distance over which the smooth mode fades away from the shear layers.
    #[schemars(extend("unit" = "length", "exclusiveMinimum" = 0.0))]
    pub mode_width: f64,
}

impl Default for KelvinHelmholtz {
    fn default() -> Self {
        Self {
            density: [1.0, 2.0],
            velocity: [-0.5, 0.5],
            pressure: 2.5,
            thickness: 0.0,
            noise: 0.01,
            seed: 1,
            mode_amplitude: 0.0,
            mode_number: 2,
            mode_width: 0.035,
        }
    }
}

/// The parameters in their domain.
struct ShearLayers {
    p: KelvinHelmholtz,
    left: [f64; 3],
    root_width: [f64; 3],
    length_y: f64,
    /// The two shear layers.
    shear: [f64; 2],
}

impl ShearLayers {
    /// 0 outside the layer, 1 in it.
    fn share(&self, z: f64) -> f64 {
        let [below, above] = self.shear;
        if self.p.thickness > 0.0 {
            let step = |d: f64| tanh(d / self.p.thickness);
            return 0.5 * (step(z - below) - step(z - above));
        }
        if z > below && z < above { 1.0 } else { 0.0 }
    }

    fn at(&self, x: [f64; 3]) -> Primitive {
        let p = &self.p;
        let share = self.share(x[2]);
        let between = |pair: [f64; 2]| pair[0] + share * (pair[1] - pair[0]);
        let cell =
            std::array::from_fn(|a| ((x[a] - self.left[a]) / self.root_width[a]).floor() as i64);
        let mut velocity: [f64; 3] =
            std::array::from_fn(|a| p.noise * noise(p.seed, cell, a as u64));
        velocity[1] += between(p.velocity);
        velocity[2] += self.mode(x);
        Primitive {
            density: between(p.density),
            velocity,
            pressure: p.pressure,
        }
    }

    fn mode(&self, x: [f64; 3]) -> f64 {
        if self.p.mode_amplitude == 0.0 {
            return 0.0;
        }
        let phase = f64::from(self.p.mode_number) * (x[1] - self.left[1]) / self.length_y;
        let near = self.shear.map(|z| {
            let d = (x[2] - z) / self.p.mode_width;
            exp(-0.5 * d * d)
        });
        self.p.mode_amplitude * sin(2.0 * PI * phase) * (near[0] + near[1])
    }
}

impl Parameters for KelvinHelmholtz {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let [left, right] = setting.edges;
        let place = |share: f64| left[2] + share * (right[2] - left[2]);
        let layers = ShearLayers {
            left,
            root_width: setting.root_width,
            length_y: right[1] - left[1],
            shear: [place(0.25), place(0.75)],
            p: self,
        };
        let layers = std::sync::Arc::new(layers);
        let dyed = layers.clone();
        Ok(Box::new(AveragedState::new(1, move |x| layers.at(x)).dye(
            setting,
            "dye",
            move |x| dyed.share(x[2]),
        )))
    }
}
