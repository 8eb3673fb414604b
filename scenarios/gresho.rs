//! The Gresho vortex.

use crate::state::AveragedState;
use crate::{Parameters, Setting, exact};
use nestar_deck::{DeckError, deck};
use nestar_systems::hydro::{InitialState, Primitive};

/// A stationary vortex around the z axis, with density 1, radius 0.4 and maximum speed 1 (Gresho & Chan 1990).
#[deck]
pub struct Gresho {
    /// Maximum Mach number of the rotation; 0: that of central pressure 5, the standard case (0.36 for gamma = 1.4).
    #[key(default = 0.0, min = 0.0)]
    pub mach: f64,
    /// Velocity of the uniform flow that advects the vortex.
    #[key(default = [0.0; 3], unit = "length/time")]
    pub velocity: [f64; 3],
    /// Position of the centre along x and y; absent: the middle of the domain.
    #[key(unit = "length")]
    pub centre: Option<[f64; 2]>,
}

impl Parameters for Gresho {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let vortex = match self.mach {
            mach if mach > 0.0 => exact::GreshoVortex::with_mach(mach, setting.model.gamma),
            _ => exact::GreshoVortex {
                central_pressure: 5.0,
            },
        };
        if vortex.central_pressure <= 0.0 {
            let message = format!(
                "the pressure at the centre would be {:.3}; choose a smaller Mach number",
                vortex.central_pressure
            );
            return Err(setting.deck.error_at("gresho.mach", message));
        }
        let centre = setting.centre(self.centre);
        let velocity = self.velocity;
        Ok(Box::new(AveragedState::new(3, move |x: [f64; 3]| {
            let d = [x[0] - centre[0], x[1] - centre[1]];
            let r = (d[0] * d[0] + d[1] * d[1]).sqrt();
            let (speed, pressure) = vortex.at(r);
            let rate = if r > 0.0 { speed / r } else { 5.0 };
            Primitive {
                density: 1.0,
                velocity: [
                    velocity[0] - rate * d[1],
                    velocity[1] + rate * d[0],
                    velocity[2],
                ],
                pressure,
            }
        })))
    }
}
