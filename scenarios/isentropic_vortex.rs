//! The isentropic vortex (Shu 1998), advected through a periodic box.

use crate::exact::Vortex;
use crate::state::AveragedState;
use crate::{Parameters, Setting, centre};
use nestar_deck::{DeckError, deck};
use nestar_systems::hydro::InitialState;

/// A smooth vortex around the z axis in a gas of density and pressure 1. It keeps its shape, and returns to its start when
/// the flow has crossed the box.
#[deck]
pub struct IsentropicVortex {
    /// Strength beta; the density at the centre decreases with it.
    #[key(default = 5.0, min = 0.0)]
    pub strength: f64,
    /// Velocity of the uniform flow that advects the vortex.
    #[key(default = [1.0, 1.0, 0.0], unit = "length/time")]
    pub velocity: [f64; 3],
    /// Initial position of the centre along x and y; absent: the middle of the domain. The vortex is about 4 length units wide.
    #[key(unit = "length")]
    pub centre: Option<[f64; 2]>,
}

impl IsentropicVortex {
    /// Returns the vortex in a periodic box with these edges.
    #[must_use]
    pub fn vortex(&self, edges: [[f64; 3]; 2], gamma: f64) -> Vortex {
        let period = [edges[1][0] - edges[0][0], edges[1][1] - edges[0][1]];
        Vortex {
            strength: self.strength,
            centre: centre(self.centre, edges),
            velocity: self.velocity,
            period,
            gamma,
        }
    }
}

impl Parameters for IsentropicVortex {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let vortex = self.vortex(setting.edges, setting.model.gamma);
        let temperature = vortex.central_temperature();
        if temperature <= 0.0 {
            let message = format!(
                "a vortex of strength {} would have the temperature {temperature:.3} at its centre; choose a smaller strength",
                self.strength
            );
            return Err(setting.deck.error_at("isentropic-vortex.strength", message));
        }
        Ok(Box::new(AveragedState::new(3, move |x| vortex.at(x, 0.0))))
    }
}
