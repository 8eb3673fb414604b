//! Toro's seven shock tubes (Toro 2009, table 6.2 and section 10.8).

use crate::exact::{RiemannProblem, TORO};
use crate::sod::Sod;
use crate::state::Direction;
use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_systems::hydro::InitialState;

/// One of Toro's seven shock tubes, which test the robustness of a scheme. They need gamma = 1.4 and a tube of length 1.
#[deck]
pub struct Toro {
    /// Number of the test, with the end time: 1 Sod with a sonic rarefaction (0.2), 2 near vacuum (0.15), 3 strong shock
    /// (0.012), 4 collision of shocks (0.035), 5 strong shock with a contact at rest (0.012), 6 contact at
    /// rest (2), 7 contact in slow motion (2).
    #[key(default = 1, min = 1, max = 7)]
    pub test: u32,
    /// Axis of the tube.
    #[key(default = Direction::X)]
    pub direction: Direction,
}

impl Toro {
    /// Returns the Riemann problem, and the position of the discontinuity in the tube from 0 to 1.
    #[must_use]
    pub fn problem(&self) -> (RiemannProblem, f64) {
        let index = self.test.clamp(1, TORO.len() as u32) - 1;
        let test = TORO[index as usize];
        let problem = RiemannProblem {
            left: test.left,
            right: test.right,
            gamma: 1.4,
        };
        (problem, test.position)
    }
}

impl Parameters for Toro {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let Some(axis) = self.direction.axis() else {
            let message = "`direction` must be x, y or z; use the scenario sod for a diagonal tube";
            return Err(setting.deck.error_at("toro.direction", message));
        };
        let (problem, position) = self.problem();
        let [left, right] = setting.edges;
        let tube = Sod {
            direction: self.direction,
            position: left[axis] + position * (right[axis] - left[axis]),
            left: problem.left,
            right: problem.right,
        };
        tube.initial(setting)
    }
}
