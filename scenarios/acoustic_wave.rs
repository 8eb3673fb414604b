//! A linear wave in a periodic box (Gardiner & Stone 2008, J. Comput. Phys. 227, 4123, sec. 5.1).

use crate::exact::{LinearWave, Mode};
use crate::state::AveragedState;
use crate::state::Direction;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_device::math::sum3;
use nestar_systems::hydro::InitialState;

/// Kind of a linear wave.
#[deck]
pub enum WaveKind {
    /// A sound wave that travels in the direction of the flow.
    Sound,
    /// A density wave at uniform pressure, advected by the flow.
    Entropy,
}

/// A linear wave on a background of density 1 and sound speed 1. The box is one wavelength long.
#[deck]
pub struct AcousticWave {
    /// Kind of the wave.
    #[key(default = WaveKind::Sound)]
    pub wave: WaveKind,
    /// Relative amplitude in density.
    #[key(default = 1e-6, above = 0.0, below = 0.5)]
    pub amplitude: f64,
    /// Speed of the background along the wave vector, in units of its sound speed. An entropy wave moves at this speed.
    #[key(default = 0.0)]
    pub mach: f64,
    /// Direction of the wave; `diagonal` has one wavelength along each axis of the box.
    #[key(default = Direction::Diagonal)]
    pub direction: Direction,
}

impl AcousticWave {
    /// Returns the wave in a box with these edges; it crosses the box in one [`LinearWave::period`].
    #[must_use]
    pub fn wave(&self, edges: [[f64; 3]; 2], gamma: f64) -> LinearWave {
        let size: [f64; 3] = std::array::from_fn(|a| edges[1][a] - edges[0][a]);
        let numbers = size.map(|l| 1.0 / l);
        let wavelength = match self.direction.axis() {
            Some(axis) => size[axis],
            None => {
                let [a, b, c] = numbers;
                1.0 / sum3(a * a, b * b, c * c).sqrt()
            }
        };
        LinearWave {
            mode: match self.wave {
                WaveKind::Sound => Mode::Sound,
                WaveKind::Entropy => Mode::Entropy,
            },
            amplitude: self.amplitude,
            direction: self.direction.normal(numbers),
            wavelength,
            mach: self.mach,
            gamma,
        }
    }
}

impl Parameters for AcousticWave {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let wave = self.wave(setting.edges, setting.model.gamma);
        let left = setting.edges[0];
        let state =
            move |x: [f64; 3]| wave.at([x[0] - left[0], x[1] - left[1], x[2] - left[2]], 0.0);
        Ok(Box::new(AveragedState::new(3, state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagonal_of_the_usual_box_has_unit_wavelength() {
        let wave = AcousticWave::default().wave([[0.0; 3], [3.0, 1.5, 1.5]], 5.0 / 3.0);
        assert!((wave.wavelength - 1.0).abs() < 1e-15);
        assert!((wave.direction[0] - 1.0 / 3.0).abs() < 1e-15);
        assert!((wave.period() - 1.0).abs() < 1e-15);
        let (a, b) = (wave.at([0.2, 0.3, 0.4], 0.0), wave.at([3.2, 1.8, 1.9], 0.0));
        assert!((a.density - b.density).abs() < 1e-15);
    }
}
