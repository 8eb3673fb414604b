//! Defines the table `[floors]`.

use nestar_deck::{Deck, DeckError, deck};

/// Lower limits of the gas, applied wherever a step has changed it; 0: off. What they add is listed in the diagnostics.
#[deck]
pub struct FloorsConfig {
    /// Lowest density. Gas below it gains mass at constant velocity and temperature, and keeps the mass fractions of
    /// its scalars.
    #[key(default = 0.0, unit = "mass/length**3", min = 0.0)]
    pub density: f64,
    /// Lowest pressure.
    #[key(default = 0.0, unit = "mass/(length*time**2)", min = 0.0)]
    pub pressure: f64,
    /// Lowest temperature, pressure over density in code units. Give this or `temperature_k`.
    #[key(default = 0.0, unit = "length**2/time**2", min = 0.0)]
    pub temperature: f64,
    /// Lowest temperature in kelvin; needs a table `[units]`. Cooling and chemistry then end at this temperature, too.
    #[key(default = 0.0, unit = "K", min = 0.0)]
    pub temperature_k: f64,
    /// Pressure floor that keeps the Jeans length above this number of cells of the finest level, p >= N^2 G rho^2
    /// dx^2/(gamma pi); needs a table `[gravity]`. A common value is 4. Cooling then ends at this pressure, too.
    #[key(default = 0.0, min = 0.0)]
    pub jeans_cells: f64,
}

impl FloorsConfig {
    /// Reads the table and checks that other tables provide what the floors need.
    ///
    /// # Errors
    /// A value is invalid; kelvin without units; a Jeans length without gravity; two floors of the temperature.
    pub fn read(deck: &mut Deck) -> Result<Self, DeckError> {
        let config: Self = deck.table("floors")?;
        if config.temperature_k > 0.0 && deck.units()?.is_dimensionless() {
            let path = "floors.temperature_k";
            return Err(crate::fields::quantities::needs_units(
                deck,
                path,
                "temperature_k",
            ));
        }
        if config.temperature_k > 0.0 && config.temperature > 0.0 {
            let why = "`floors.temperature` and `floors.temperature_k` are the same floor in two units: give one of them";
            return Err(deck.error_at("floors.temperature", why));
        }
        if config.jeans_cells > 0.0 && !deck.has("gravity") {
            let why =
                "`floors.jeans_cells` needs self-gravity: add a table [gravity], or remove the key";
            return Err(deck.error_at("floors.jeans_cells", why));
        }
        Ok(config)
    }

    /// Returns `true` if no floor is set.
    #[must_use]
    pub fn is_off(&self) -> bool {
        let all = [
            self.density,
            self.pressure,
            self.temperature,
            self.temperature_k,
            self.jeans_cells,
        ];
        all.iter().all(|floor| *floor == 0.0)
    }
}
