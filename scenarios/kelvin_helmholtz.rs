//! The Kelvin-Helmholtz instability of two shear layers.

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

/// Returns a number that is uniform in [-1, 1) and depends on the arguments only, so it has the same bits on every machine,
/// thread and rank. The hash is the mixing function of SplitMix64 (Steele, Lea & Flood 2014, OOPSLA, fig. 15).
#[must_use]
pub fn noise(seed: u64, cell: [i64; 3], component: u64) -> f64 {
    let mut state = mix(seed ^ 0x9E37_79B9_7F4A_7C15);
    for part in cell.map(|c| c as u64).into_iter().chain([component]) {
        state = mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ part);
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_white() {
        let n = 24;
        let values: Vec<f64> = (0..n * n * n)
            .map(|i| noise(7, [i % n, i / n % n, i / (n * n)], 0))
            .collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / count;
        assert!(mean.abs() < 4.0 / (3.0 * count).sqrt(), "{mean}");
        assert!((variance - 1.0 / 3.0).abs() < 0.01, "{variance}");
        for lag in [1, n as usize, (n * n) as usize] {
            let pairs = values.iter().zip(&values[lag..]);
            let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / count;
            assert!(correlation.abs() < 0.012, "{lag}: {correlation}");
        }
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(8, [1, 2, 3], 0));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(7, [1, 2, 3], 1));
        assert_ne!(noise(7, [1, 2, 3], 0), noise(7, [2, 1, 3], 0));
    }
}
