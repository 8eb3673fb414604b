//! An implosion in a corner (Liska & Wendroff 2003, SIAM J. Sci. Comput. 25, 995, sec. 4.7).

use crate::state::AveragedState;
use crate::{Parameters, Setting};
use nestar_deck::DeckError;
use nestar_systems::hydro::{InitialState, Primitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Thin gas in the triangle x + y < `corner` at the lower corner of a reflecting box, dense gas elsewhere, all at rest.
/// A jet along the diagonal forms where the scheme is exactly symmetric in x and y.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Implosion {
    /// Distance along x and y at which the triangle ends.
    #[schemars(extend("unit" = "length", "exclusiveMinimum" = 0.0))]
    pub corner: f64,
    /// Density and pressure in the triangle.
    pub inside: [f64; 2],
    /// Density and pressure elsewhere.
    pub outside: [f64; 2],
}

impl Default for Implosion {
    fn default() -> Self {
        Self {
            corner: 0.15,
            inside: [0.125, 0.14],
            outside: [1.0, 1.0],
        }
    }
}

impl Implosion {
    /// Part of a place that belongs to the outside: a half on the line itself, whatever the round-off.
    fn share(&self, along: f64) -> f64 {
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
        // two points per axis weigh the cells that the line halves
        Ok(Box::new(AveragedState::new(2, move |x: [f64; 3]| {
            let share = self.share((x[0] - left[0]) + (x[1] - left[1]));
            let between = |n: usize| self.inside[n] + share * (self.outside[n] - self.inside[n]);
            Primitive {
                density: between(0),
                velocity: [0.0; 3],
                pressure: between(1),
            }
        })))
    }
}
