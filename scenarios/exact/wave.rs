//! Linear waves of a uniform ideal gas.

use nestar_device::math::{sin, sum3};
use nestar_systems::hydro::Primitive;
use std::f64::consts::PI;

/// Which characteristic a wave belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sound that travels with the flow, along the wave vector.
    Sound,
    /// Entropy: density alone, carried by the flow.
    Entropy,
}

/// A small sinusoidal wave on a uniform background of density 1 and sound speed 1 (pressure 1/gamma), which flows along
/// the wave vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearWave {
    /// Characteristic.
    pub mode: Mode,
    /// Relative amplitude in density.
    pub amplitude: f64,
    /// Unit vector along the wave vector.
    pub direction: [f64; 3],
    /// Wavelength along `direction`.
    pub wavelength: f64,
    /// Speed of the background along `direction`, in sound speeds.
    pub mach: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl LinearWave {
    /// Speed of the wave along its direction.
    #[must_use]
    pub fn speed(&self) -> f64 {
        match self.mode {
            Mode::Sound => self.mach + 1.0,
            Mode::Entropy => self.mach,
        }
    }

    /// Time in which the wave travels its length; infinite for a wave that rests.
    #[must_use]
    pub fn period(&self) -> f64 {
        self.wavelength / self.speed().abs()
    }

    /// The state at a point and time, to first order in the amplitude.
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

/// `x` less the multiple of `period` that brings it to [-period/2, period/2].
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
