//! Range of the initial gas quantities, which the precision of the run must represent.

use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_engine::Error;
use nestar_engine::step::{Magnitude, require_range as require};

/// Quantities that a step computes, with their powers of length, mass and time. Wave speeds take products of two
/// densities and squares of velocities, energy fluxes the cube of a velocity.
const QUANTITIES: [(&str, [i32; 3]); 5] = [
    ("the square of the density", [-6, 2, 0]),
    ("the pressure", [-1, 1, -2]),
    ("the square of the sound speed", [2, 0, -2]),
    ("the flux of energy", [0, 1, -3]),
    ("the square of the velocity", [2, 0, -2]),
];

/// Smallest and largest value of each quantity in the initial states.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct Extremes([[f64; 2]; QUANTITIES.len()]);

impl Default for Extremes {
    fn default() -> Self {
        Self([[f64::INFINITY, 0.0]; QUANTITIES.len()])
    }
}

impl Extremes {
    /// Returns the range over states (density, velocity, pressure) of a gas with adiabatic index `gamma`.
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

    /// Returns the union of two ranges.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let pairs = |n: usize| (self.0[n], other.0[n]);
        Self(std::array::from_fn(|n| {
            let (a, b) = pairs(n);
            [a[0].min(b[0]), a[1].max(b[1])]
        }))
    }

    /// Converts to the magnitudes of the engine. The smallest velocity is ignored, because gas may be at rest.
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

/// Checks that the precision of the run can represent the initial gas.
///
/// # Errors
/// Names the quantity that is out of range and suitable units; another rank has failed.
pub fn require_range(world: &World) -> Result<(), Error> {
    require(world, &world.resource::<Extremes>().magnitudes())
}
