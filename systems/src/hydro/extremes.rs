//! Range of the initial states, and its check.

use super::primitive::Primitive;
use crate::fields::GAS_COMPONENTS;
use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_engine::Error;
use nestar_engine::step::{Magnitude, require_range as require};

/// Number of values that a loop handles at once with vector instructions.
pub(super) const LANES: usize = 8;

/// Quantities that a step computes, with their powers of length, mass and time. Wave speeds take products of two
/// densities and squares of velocities, energy fluxes the cube of a velocity.
const QUANTITIES: [(&str, [i32; 3]); 6] = [
    ("the square of the density", [-6, 2, 0]),
    ("the pressure", [-1, 1, -2]),
    ("the square of the sound speed", [2, 0, -2]),
    ("the flux of energy", [0, 1, -3]),
    ("the square of the velocity", [2, 0, -2]),
    ("the square of the magnetic field", [-1, 1, -2]),
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
    /// Returns the range over states of a gas with adiabatic index `gamma`.
    #[must_use]
    pub fn of(states: &[Primitive], gamma: f64) -> Self {
        let mut lanes = [[[f64::INFINITY; LANES], [0.0; LANES]]; QUANTITIES.len()];
        for states in states.chunks(LANES) {
            let mut columns = [[0.0; LANES]; GAS_COMPONENTS];
            for lane in 0..LANES {
                // the last state fills up the lanes
                let state = states[lane.min(states.len() - 1)].array();
                for (column, value) in columns.iter_mut().zip(state) {
                    column[lane] = value;
                }
            }
            let values = Self::of_lanes(&columns, gamma);
            for (quantity, [least, most]) in lanes.iter_mut().enumerate() {
                for lane in 0..LANES {
                    let value = values[quantity][lane];
                    least[lane] = if value < least[lane] {
                        value
                    } else {
                        least[lane]
                    };
                    most[lane] = if value > most[lane] {
                        value
                    } else {
                        most[lane]
                    };
                }
            }
        }
        Self(lanes.map(|[least, most]| {
            [
                least.into_iter().fold(f64::INFINITY, f64::min),
                most.into_iter().fold(0.0, f64::max),
            ]
        }))
    }

    /// Returns the quantities of states, lane by lane.
    fn of_lanes(
        [density, x, y, z, pressure]: &[[f64; LANES]; GAS_COMPONENTS],
        gamma: f64,
    ) -> [[f64; LANES]; QUANTITIES.len()] {
        let mut values = [[0.0; LANES]; QUANTITIES.len()];
        for lane in 0..LANES {
            let (rho, p) = (density[lane], pressure[lane]);
            let (a, b, c) = (x[lane], y[lane], z[lane]);
            let (sound, speed) = (gamma * p / rho, sum3(a * a, b * b, c * c));
            let enthalpy = gamma / (gamma - 1.0) * p;
            values[0][lane] = rho * rho;
            values[1][lane] = p;
            values[2][lane] = sound;
            values[3][lane] = (enthalpy + 0.5 * rho * speed) * (sound.sqrt() + speed.sqrt());
            values[4][lane] = speed;
            // added by `with_field`
            values[5][lane] = f64::NAN;
        }
        values
    }

    /// Returns the range without the flux of energy, which gas without energy does not have.
    pub(super) fn without_energy(mut self) -> Self {
        self.0[3] = self.0[1];
        self
    }

    /// Returns the range with a magnetic field, by axis.
    pub(super) fn with_field(mut self, field: &[Vec<f64>; 3]) -> Self {
        let [x, y, z] = field;
        let most = &mut self.0[5][1];
        for ((x, y), z) in x.iter().zip(y).zip(z) {
            *most = most.max(sum3(x * x, y * y, z * z));
        }
        self
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

    /// Converts to the magnitudes of the engine. The smallest velocity and magnetic field are ignored, because both may be 0.
    fn magnitudes(self) -> Vec<Magnitude> {
        let mut ranges = self.0;
        let [.., velocity, field] = &mut ranges;
        velocity[0] = f64::INFINITY;
        field[0] = f64::INFINITY;
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
