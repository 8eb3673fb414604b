//! Defines the tables `[viscosity]` and `[conduction]`.

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
}

/// Coefficients of viscosity and heat conduction, in code units. Those of a process that is off are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Kinematic viscosity.
    pub kinematic: f64,
    /// Conductivity that does not depend on the density.
    pub conductivity: f64,
    /// Conductivity over density.
    pub per_density: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Coefficients {
    /// Reads the tables, for gas with the ratio of specific heats `gamma`.
    ///
    /// # Errors
    /// A key is missing or out of range; both keys of `[conduction]` are given.
    pub fn read(deck: &mut Deck, gamma: f64) -> Result<Self, DeckError> {
        let mut found = Self {
            kinematic: 0.0,
            conductivity: 0.0,
            per_density: 0.0,
            gamma,
        };
        if deck.has("viscosity") {
            let given: ViscosityConfig = deck.table("viscosity")?;
            found.kinematic = given.kinematic;
        }
        if deck.has("conduction") {
            let given: ConductionConfig = deck.table("conduction")?;
            match (given.diffusivity, given.conductivity) {
                (Some(diffusivity), None) => found.per_density = diffusivity / (gamma - 1.0),
                (None, Some(conductivity)) => found.conductivity = conductivity,
                (Some(_), Some(_)) => {
                    let why =
                        "it follows from `conduction.diffusivity`: remove one of the two keys";
                    return Err(deck.error_at("conduction.conductivity", why));
                }
                (None, None) => {
                    let why =
                        "the table needs a key `diffusivity` or `conductivity`, a number above 0";
                    return Err(deck.error_at("conduction", why));
                }
            }
        }
        Ok(found)
    }
}
