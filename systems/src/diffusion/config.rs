//! Defines the tables `[viscosity]` and `[conduction]`.

use super::faces::Conductivity;
use nestar_deck::{Deck, DeckError, deck};

/// Viscosity of the gas: stress `density * kinematic * (grad v + transposed - 2/3 div v)`. Its work heats the gas.
#[deck]
pub struct ViscosityConfig {
    /// Kinematic viscosity.
    #[key(unit = "length**2/time", above = 0.0)]
    pub kinematic: f64,
}

/// Heat conduction of the gas: flux `-conductivity * grad T` with the temperature `T = pressure / density` in code units. Give one of both
/// keys.
#[deck]
pub struct ConductionConfig {
    /// Thermal diffusivity `(gamma - 1) * conductivity / density`. The conductivity is proportional to the density.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length**2/time"))]
    pub diffusivity: Option<f64>,
    /// Conductivity, the same everywhere.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "mass/(length*time)"))]
    pub conductivity: Option<f64>,
    /// Power of the temperature by which the diffusivity or conductivity is multiplied; 2.5 for ionised gas (Spitzer 1962).
    #[key(default = 0.0, min = -10.0, max = 10.0)]
    pub temperature_power: f64,
}

impl ConductionConfig {
    /// Returns the conductivity of gas with the ratio of specific heats `gamma`.
    ///
    /// # Errors
    /// Both or none of the keys `diffusivity` and `conductivity` are given.
    pub fn conductivity(&self, deck: &Deck, gamma: f64) -> Result<Conductivity<f64>, DeckError> {
        let (constant, per_density) = match (self.diffusivity, self.conductivity) {
            (Some(diffusivity), None) => (0.0, diffusivity / (gamma - 1.0)),
            (None, Some(conductivity)) => (conductivity, 0.0),
            (Some(_), Some(_)) => {
                let why = "`conduction.diffusivity` sets the conductivity as well: remove one of the two keys";
                return Err(deck.error_at("conduction.conductivity", why));
            }
            (None, None) => {
                let why = "the table needs a key `diffusivity` or `conductivity`, a number above 0";
                return Err(deck.error_at("conduction", why));
            }
        };
        Ok(Conductivity {
            constant,
            per_density,
            power: self.temperature_power,
            gamma,
        })
    }
}
