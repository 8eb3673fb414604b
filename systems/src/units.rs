//! Code units in cgs, and constants of nature in code units.
//!
//! Whatever has units is scaled here, on the host, in double precision: kernels see numbers in code units, or in kelvin and
//! per cubic centimetre, which no precision loses.

use bevy_ecs::prelude::*;
use nestar_engine::step::Settings;
use nestar_engine::{Engine, Error};

/// Boltzmann's constant, erg/K (exact, SI 2019).
pub const BOLTZMANN: f64 = 1.380_649e-16;
/// An electronvolt, erg (exact, SI 2019).
pub const ELECTRONVOLT: f64 = 1.602_176_634e-12;
/// Mass of the hydrogen atom, g (CODATA 2018).
pub const HYDROGEN_MASS: f64 = 1.673_532_84e-24;
/// Mass of the proton, g (CODATA 2018).
pub const PROTON_MASS: f64 = 1.672_621_923_69e-24;
/// Newton's constant, cm^3/(g s^2) (CODATA 2018).
pub const GRAVITATIONAL_CONSTANT: f64 = 6.6743e-8;
/// Speed of light, cm/s (exact).
pub const LIGHT_SPEED: f64 = 2.997_924_58e10;
/// Mass of the sun, g (nominal GM of IAU 2015 over Newton's constant).
pub const SOLAR_MASS: f64 = 1.988_409_87e33;
/// Parsec, cm (IAU 2015).
pub const PARSEC: f64 = 3.085_677_581_491_367_3e18;
/// Julian year, s.
pub const YEAR: f64 = 3.155_76e7;

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

impl Units {
    /// The units of a run, for physics that means nothing without them; `who` names it in the message.
    ///
    /// # Errors
    /// The deck has no table `[units]`.
    pub fn of(sim: &Engine, who: &str) -> Result<Self, Error> {
        if !sim.deck.has("units") {
            return Err(Error::Setup(format!(
                "`{who}` needs to know what a code length, mass and time are: give the deck a table `[units]`"
            )));
        }
        let units = &sim.world.resource::<Settings>().units;
        Ok(Self {
            length: units.length_cgs,
            mass: units.mass_cgs,
            time: units.time_cgs,
        })
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

    /// Newton's constant in code units.
    #[must_use]
    pub fn gravitational_constant(&self) -> f64 {
        GRAVITATIONAL_CONSTANT * self.density() * self.time * self.time
    }
}
