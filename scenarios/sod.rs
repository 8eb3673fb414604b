//! Shock tubes: two uniform states separated by a discontinuity.

use crate::state::Direction;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_systems::hydro::{InitialState, Primitive};

/// A shock tube. The defaults are the problem of Sod (1978), J. Comput. Phys. 27, 1.
#[deck]
pub struct Sod {
    /// Direction normal to the discontinuity; `diagonal` is along (1, 1, 1).
    #[key(default = Direction::X)]
    pub direction: Direction,
    /// Position of the discontinuity along the direction; for `diagonal`, the value of (x + y + z)/sqrt(3).
    #[key(default = 0.0, unit = "length")]
    pub position: f64,
    /// Density, velocity along the direction, and pressure below the discontinuity.
    #[key(default = [1.0, 0.0, 1.0], unit = "of the element")]
    pub left: [f64; 3],
    /// Density, velocity along the direction, and pressure above the discontinuity.
    #[key(default = [0.125, 0.0, 0.1], unit = "of the element")]
    pub right: [f64; 3],
}

impl Parameters for Sod {
    fn initial(self, _: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let normal = self.direction.normal([1.0; 3]);
        Ok(Box::new(move |x: [f64; 3]| {
            let along =
                nestar_device::math::sum3(x[0] * normal[0], x[1] * normal[1], x[2] * normal[2]);
            let [density, speed, pressure] = if along < self.position {
                self.left
            } else {
                self.right
            };
            Primitive {
                density,
                velocity: normal.map(|n| n * speed),
                pressure,
            }
        }))
    }
}
