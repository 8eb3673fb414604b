//! An implosion in a corner (Liska & Wendroff 2003, SIAM J. Sci. Comput. 25, 995, sec. 4.7).

use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_systems::hydro::{InitialState, Primitive};

/// Gas at rest in a reflecting box, with lower density and pressure in the triangle x + y < `corner`. A jet forms along
/// the diagonal if the scheme is exactly symmetric in x and y.
#[deck]
pub struct Implosion {
    /// Length of the triangle's sides along x and y.
    #[key(default = 0.15, unit = "length", above = 0.0)]
    pub corner: f64,
    /// Density and pressure in the triangle.
    #[key(default = [0.125, 0.14], unit = "of the element")]
    pub inside: [f64; 2],
    /// Density and pressure outside the triangle.
    #[key(default = [1.0, 1.0], unit = "of the element")]
    pub outside: [f64; 2],
}

impl Implosion {
    /// Returns the weight of the outside state at x + y = `along`: 1/2 on the line, independent of round-off.
    fn outside_weight(&self, along: f64) -> f64 {
        let distance = along - self.corner;
        if distance.abs() < 1e-9 * self.corner {
            0.5
        } else if distance > 0.0 {
            1.0
        } else {
            0.0
        }
    }
}

impl Parameters for Implosion {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let left = setting.edges[0];
        // two quadrature points per axis average the cells that the line cuts in half
        Ok(Box::new(AveragedState::new(2, move |x: [f64; 3]| {
            let weight = self.outside_weight((x[0] - left[0]) + (x[1] - left[1]));
            let interpolated =
                |n: usize| self.inside[n] + weight * (self.outside[n] - self.inside[n]);
            Primitive {
                density: interpolated(0),
                velocity: [0.0; 3],
                pressure: interpolated(1),
            }
        })))
    }
}
