//! Linear waves of a uniform ideal gas.

use nestar_device::math::{sin, sum3};
use nestar_systems::hydro::Primitive;
use std::f64::consts::PI;

/// Characteristic of a linear wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A sound wave that travels in the direction of the flow, along the wave vector.
    Sound,
    /// An entropy wave: density at uniform pressure, advected by the flow.
    Entropy,
}

/// A sinusoidal wave of small amplitude on a uniform background of density 1 and sound speed 1 (pressure 1/gamma). The
/// background flows along the wave vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearWave {
    /// Characteristic of the wave.
    pub mode: Mode,
    /// Relative amplitude in density.
    pub amplitude: f64,
    /// Unit vector along the wave vector.
    pub direction: [f64; 3],
    /// Wavelength along `direction`.
    pub wavelength: f64,
    /// Speed of the background along `direction`, in units of the sound speed.
    pub mach: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl LinearWave {
    /// Returns the speed of the wave along `direction`.
    #[must_use]
    pub fn speed(&self) -> f64 {
        match self.mode {
            Mode::Sound => self.mach + 1.0,
            Mode::Entropy => self.mach,
        }
    }

    /// Returns the time in which the wave travels one wavelength; infinite if its speed is 0.
    #[must_use]
    pub fn period(&self) -> f64 {
        self.wavelength / self.speed().abs()
    }

    /// Returns the state at a point and time, to first order in the amplitude.
    #[must_use]
    pub fn at(&self, x: [f64; 3], t: f64) -> Primitive {
        let n = self.direction;
        let along = sum3(n[0] * x[0], n[1] * x[1], n[2] * x[2]);
        let cycles = wrapped(along - self.speed() * t, self.wavelength) / self.wavelength;
        let change = self.amplitude * sin(2.0 * PI * cycles);
        let (speed, pressure) = match self.mode {
            Mode::Sound => (self.mach + change, 1.0 / self.gamma + change),
            Mode::Entropy => (self.mach, 1.0 / self.gamma),
        };
        Primitive {
            density: 1.0 + change,
            velocity: n.map(|n| n * speed),
            pressure,
        }
    }
}

/// Returns `x` wrapped to [-period/2, period/2].
pub(super) fn wrapped(x: f64, period: f64) -> f64 {
    x - period * (x / period).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(mode: Mode) -> LinearWave {
        LinearWave {
            mode,
            amplitude: 1e-3,
            direction: [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0],
            wavelength: 1.0,
            mach: 0.5,
            gamma: 1.4,
        }
    }

    #[test]
    fn waves_return_after_a_period() {
        for mode in [Mode::Sound, Mode::Entropy] {
            let wave = wave(mode);
            let x = [0.3, 0.1, 0.7];
            let (before, after) = (wave.at(x, 0.0), wave.at(x, wave.period()));
            assert!((before.density - after.density).abs() < 1e-15);
            assert!((before.pressure - after.pressure).abs() < 1e-15);
        }
    }

    #[test]
    fn sound_is_isentropic_to_first_order_and_entropy_waves_have_one_pressure() {
        let sound = wave(Mode::Sound);
        let state = sound.at([0.4, 0.2, 0.0], 0.0);
        let isentropic = (1.0 / 1.4) * (1.0 + 1.4 * (state.density - 1.0));
        assert!((state.pressure - isentropic).abs() < 1e-15);
        assert_eq!(
            wave(Mode::Entropy).at([0.4, 0.2, 0.0], 0.3).pressure,
            1.0 / 1.4
        );
    }
}
