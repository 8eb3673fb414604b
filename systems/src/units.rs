//! Code units in cgs, and constants of nature in code units.
//!
//! Whatever has units is scaled here, on the host, in double precision: kernels see numbers in code units, or in kelvin and
//! per cubic centimetre, which no precision loses.

use bevy_ecs::prelude::*;
use nestar_deck::CodeUnits;
pub use nestar_deck::units::cgs::*;
use nestar_engine::step::Settings;
use nestar_engine::{Engine, Error};

/// The units of the code.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Centimetres in a code length.
    pub length: f64,
    /// Grams in a code mass.
    pub mass: f64,
    /// Seconds in a code time.
    pub time: f64,
}

impl From<&CodeUnits> for Units {
    fn from(units: &CodeUnits) -> Self {
        Self {
            length: units.length_cgs,
            mass: units.mass_cgs,
            time: units.time_cgs,
        }
    }
}

impl Units {
    /// The units of a run, for physics that means nothing without them; `who` names it in the message.
    ///
    /// # Errors
    /// The deck has no table `[units]`.
    pub fn of(sim: &Engine, who: &str) -> Result<Self, Error> {
        Self::find(sim).ok_or_else(|| {
            Error::Setup(format!(
                "`{who}` needs to know what a code length, mass and time are: give the deck a table [units], such as \
                 length = \"kpc\", mass = \"Msun\", velocity = \"km/s\""
            ))
        })
    }

    /// The units of a run; none if its deck has no table `[units]`.
    #[must_use]
    pub fn find(sim: &Engine) -> Option<Self> {
        let units = &sim.world.resource::<Settings>().units;
        units.if_dimensional().map(Self::from)
    }

    /// Grams per cubic centimetre in a code density.
    #[must_use]
    pub fn density(&self) -> f64 {
        self.mass / (self.length * self.length * self.length)
    }

    /// Centimetres per second in a code velocity.
    #[must_use]
    pub fn velocity(&self) -> f64 {
        self.length / self.time
    }

    /// Erg in a code energy.
    #[must_use]
    pub fn energy(&self) -> f64 {
        self.mass * self.velocity() * self.velocity()
    }

    /// Kelvin in a code pressure over density of gas of which a particle has the mass of a hydrogen atom: times the mean molecular weight
    /// it is the temperature.
    #[must_use]
    pub fn temperature(&self) -> f64 {
        HYDROGEN_MASS / BOLTZMANN * self.velocity() * self.velocity()
    }

    /// Hydrogen masses per cubic centimetre in a code density.
    #[must_use]
    pub fn number_density(&self) -> f64 {
        self.density() / HYDROGEN_MASS
    }

    /// Newton's constant in code units, to twelve digits: it is 1 where the deck says so.
    #[must_use]
    pub fn gravitational_constant(&self) -> f64 {
        CodeUnits::newton_constant_in([self.length, self.mass, self.time])
    }

    /// What the units are, for people, in a few lines.
    #[must_use]
    pub fn described(&self) -> Vec<String> {
        let year = 1e6 * YEAR;
        vec![
            format!(
                "units: length {} cm = {} pc, mass {} g = {} Msun, time {} s = {} Myr",
                short(self.length),
                short(self.length / PARSEC),
                short(self.mass),
                short(self.mass / SOLAR_MASS),
                short(self.time),
                short(self.time / year)
            ),
            format!(
                "units: velocity {} km/s, density {} m_H/cm^3, pressure/density {} K at a mean molecular weight of 1, energy {} erg, \
                 Newton's constant {}",
                short(self.velocity() / 1e5),
                short(self.number_density()),
                short(self.temperature()),
                short(self.energy()),
                short(self.gravitational_constant())
            ),
        ]
    }
}

/// A number to five digits.
fn short(value: f64) -> String {
    let value: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    match (1e-3..1e5).contains(&value) {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}
