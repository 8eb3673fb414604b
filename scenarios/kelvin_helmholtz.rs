//! The Kelvin-Helmholtz instability of two shear layers.

use crate::noise::noise;
use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_device::math::{exp, sin, tanh};
use nestar_systems::hydro::{InitialState, Primitive};
use std::f64::consts::PI;

/// A layer in the middle half of the domain along z that flows along y relative to the gas around it. The scalar `dye`, if
/// the deck declares it, is the mass fraction of the layer's gas. White noise, a smooth mode or both perturb the velocity.
#[deck]
pub struct KelvinHelmholtz {
    /// Density outside and inside the layer.
    #[key(default = [1.0, 2.0], unit = "mass/length**3")]
    pub density: [f64; 2],
    /// Velocity along y outside and inside the layer.
    #[key(default = [-0.5, 0.5], unit = "length/time")]
    pub velocity: [f64; 2],
    /// Uniform pressure.
    #[key(default = 2.5, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// Thickness of the shear layers, whose profile is tanh(z/thickness); 0: discontinuities.
    #[key(default = 0.0, unit = "length", min = 0.0)]
    pub thickness: f64,
    /// Amplitude of the white noise in each velocity component, uniform in [-noise, noise], with one value per root cell.
    #[key(default = 0.01, unit = "length/time", min = 0.0)]
    pub noise: f64,
    /// Seed of the noise.
    #[key(default = 1, max = 9_007_199_254_740_991_u64)]
    pub seed: u64,
    /// Amplitude of the smooth mode in the velocity along z, at the shear layers.
    #[key(default = 0.0, unit = "length/time", min = 0.0)]
    pub mode_amplitude: f64,
    /// Number of wavelengths of the smooth mode along y in the domain.
    #[key(default = 2, min = 1, max = 1024)]
    pub mode_number: u32,
    /// Gaussian width of the smooth mode around the shear layers along z.
    #[key(default = 0.035, unit = "length", above = 0.0)]
    pub mode_width: f64,
}

/// The initial state in the domain.
struct ShearLayers {
    p: KelvinHelmholtz,
    left: [f64; 3],
    root_width: [f64; 3],
    length_y: f64,
    /// Positions of the two shear layers along z.
    shear: [f64; 2],
}

impl ShearLayers {
    /// Returns the weight of the inner state at `z`: 0 outside the layer, 1 inside.
    fn inner_weight(&self, z: f64) -> f64 {
        let [below, above] = self.shear;
        if self.p.thickness > 0.0 {
            let step = |d: f64| tanh(d / self.p.thickness);
            return 0.5 * (step(z - below) - step(z - above));
        }
        if z > below && z < above { 1.0 } else { 0.0 }
    }

    fn at(&self, x: [f64; 3]) -> Primitive {
        let p = &self.p;
        let weight = self.inner_weight(x[2]);
        let interpolated = |pair: [f64; 2]| pair[0] + weight * (pair[1] - pair[0]);
        let cell =
            std::array::from_fn(|a| ((x[a] - self.left[a]) / self.root_width[a]).floor() as i64);
        let mut velocity: [f64; 3] =
            std::array::from_fn(|a| p.noise * noise(p.seed, cell, a as u64));
        velocity[1] += interpolated(p.velocity);
        velocity[2] += self.mode(x);
        Primitive {
            density: interpolated(p.density),
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
        let position = |fraction: f64| left[2] + fraction * (right[2] - left[2]);
        let layers = ShearLayers {
            left,
            root_width: setting.root_width,
            length_y: right[1] - left[1],
            shear: [position(0.25), position(0.75)],
            p: self,
        };
        let layers = std::sync::Arc::new(layers);
        let dye = layers.clone();
        Ok(Box::new(
            AveragedState::new(1, move |x| layers.at(x))
                .with_scalar(setting, "dye", move |x| dye.inner_weight(x[2])),
        ))
    }
}
