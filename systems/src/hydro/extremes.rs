//! The least and largest of what a step forms of the initial gas: a precision must hold it.

use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_engine::Error;
use nestar_engine::step::{Magnitude, require_range as require};

/// What a step forms of a state, with the powers of length, mass and time: wave speeds take products of two densities and squares
/// of velocities, fluxes of energy the cube of a velocity.
const QUANTITIES: [(&str, [i32; 3]); 5] = [
    ("the square of the density", [-6, 2, 0]),
    ("the pressure", [-1, 1, -2]),
    ("the square of the sound speed", [2, 0, -2]),
    ("the flux of energy", [0, 1, -3]),
    ("the square of the velocity", [2, 0, -2]),
];

/// Least and largest of what a step forms of a state, in the states that patches were filled with.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct Extremes([[f64; 2]; QUANTITIES.len()]);

impl Default for Extremes {
    fn default() -> Self {
        Self([[f64::INFINITY, 0.0]; QUANTITIES.len()])
    }
}

impl Extremes {
    /// Of some states, density, velocity and pressure, of a gas with the ratio `gamma` of specific heats.
    #[must_use]
    pub fn of(states: impl Iterator<Item = [f64; 5]>, gamma: f64) -> Self {
        let of_state = |found: Self, state| found.joined(Self::of_state(state, gamma));
        states.fold(Self::default(), of_state)
    }

    fn of_state([rho, a, b, c, p]: [f64; 5], gamma: f64) -> Self {
        let (sound, speed) = (gamma * p / rho, sum3(a * a, b * b, c * c));
        let flux = (gamma / (gamma - 1.0) * p + 0.5 * rho * speed) * (sound.sqrt() + speed.sqrt());
        Self([rho * rho, p, sound, flux, speed].map(|value| [value, value]))
    }

    /// Of the states of both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let pairs = |n: usize| (self.0[n], other.0[n]);
        Self(std::array::from_fn(|n| {
            let (a, b) = pairs(n);
            [a[0].min(b[0]), a[1].max(b[1])]
        }))
    }

    /// As the engine takes them. Gas at rest is no small velocity: of that the largest counts alone.
    fn magnitudes(self) -> Vec<Magnitude> {
        let mut ranges = self.0;
        let [.., velocity] = &mut ranges;
        velocity[0] = f64::INFINITY;
        let named = QUANTITIES.into_iter().zip(ranges);
        let named = named.map(|((name, dimension), range)| Magnitude {
            name,
            dimension,
            range,
        });
        named.collect()
    }
}

/// Refuses an initial gas that the run's precision does not hold.
///
/// # Errors
/// Which quantity is out of range, and in which units it would not be; another rank has failed.
pub fn require_range(world: &World) -> Result<(), Error> {
    require(world, &world.resource::<Extremes>().magnitudes())
}
