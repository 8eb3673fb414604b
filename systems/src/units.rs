//! Code units in cgs, and physical constants in code units.
//!
//! All unit conversions happen here, on the host in double precision. Kernels get values in code units, or in kelvin
//! and per cubic centimetre, which fit any precision.

use bevy_ecs::prelude::*;
pub use nestar_deck::units::cgs::*;
use nestar_deck::{CodeUnits, EXPANSION};
use nestar_engine::data::Parameters;
use nestar_engine::step::Settings;
use nestar_engine::{Engine, Error};

/// Position of the scale factor in the numbers that follow the time of a level
/// ([`Levels::numbers_at`](nestar_engine::mesh::Levels::numbers_at)); 1 without expansion.
pub const SCALE_FACTOR: usize = 0;

/// Dimension of accelerations.
pub const ACCELERATION: &str = "length/time**2";

/// Code units in cgs.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Code length in centimetres.
    pub length: f64,
    /// Code mass in grams.
    pub mass: f64,
    /// Code time in seconds.
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
    /// Returns the units of a run, for physics that needs them; the error message names `who`.
    ///
    /// # Errors
    /// The deck has no table `[units]`.
    pub fn of(sim: &Engine, who: &str) -> Result<Self, Error> {
        Self::find(sim).ok_or_else(|| {
            Error::Setup(format!(
                "`{who}` needs units: add a table [units] to the deck, such as \
                 length = \"kpc\", mass = \"Msun\", velocity = \"km/s\""
            ))
        })
    }

    /// Returns the units of a run; `None` if its deck has no table `[units]`.
    #[must_use]
    pub fn find(sim: &Engine) -> Option<Self> {
        let units = &sim.world.resource::<Settings>().units;
        units.if_dimensional().map(Self::from)
    }

    /// Returns `true` if the units of a run follow the expansion of the universe.
    #[must_use]
    pub fn are_changing(sim: &Engine) -> bool {
        sim.world.resource::<Settings>().units.are_changing()
    }

    /// Returns the unit of potentials, accelerations and gravitational energies, which are stored without the scale factor, from
    /// their dimension such as `length/time**2`.
    #[must_use]
    pub fn of_gravity(sim: &Engine, dimension: &str) -> String {
        match Self::are_changing(sim) {
            true => format!("{EXPANSION}*{dimension}"),
            false => dimension.into(),
        }
    }

    /// Returns these units, which are those at a scale factor of 1, at another scale factor.
    #[must_use]
    pub fn at(&self, scale_factor: f64) -> Self {
        Self {
            length: scale_factor * self.length,
            mass: self.mass,
            time: scale_factor * scale_factor * self.time,
        }
    }

    /// Returns parameters that `of` computes from the units of a run and from its scale factor, which is 1 without expansion. In an
    /// expanding universe they follow the simulation time.
    pub fn parameters<P>(
        self,
        sim: &Engine,
        of: impl Fn(Self, f64) -> P + Send + Sync + 'static,
    ) -> Parameters<P> {
        match Self::are_changing(sim) {
            false => of(self, 1.0).into(),
            true => Parameters::following(move |numbers| {
                let a = numbers[SCALE_FACTOR];
                of(self.at(a), a)
            }),
        }
    }

    /// Returns the code density in g/cm^3.
    #[must_use]
    pub fn density(&self) -> f64 {
        self.mass / (self.length * self.length * self.length)
    }

    /// Returns the code velocity in cm/s.
    #[must_use]
    pub fn velocity(&self) -> f64 {
        self.length / self.time
    }

    /// Returns the code energy in erg.
    #[must_use]
    pub fn energy(&self) -> f64 {
        self.mass * self.velocity() * self.velocity()
    }

    /// Returns the temperature in kelvin of a code unit of pressure over density, for a mean molecular weight of 1.
    #[must_use]
    pub fn temperature(&self) -> f64 {
        HYDROGEN_MASS / BOLTZMANN * self.velocity() * self.velocity()
    }

    /// Returns the code density in hydrogen masses per cubic centimetre.
    #[must_use]
    pub fn number_density(&self) -> f64 {
        self.density() / HYDROGEN_MASS
    }

    /// Returns the gravitational constant in code units, rounded to twelve digits so that it is exactly 1 in natural
    /// units.
    #[must_use]
    pub fn gravitational_constant(&self) -> f64 {
        CodeUnits::newton_constant_in([self.length, self.mass, self.time])
    }

    /// Describes the units in a few lines.
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

/// Formats a number to five digits.
fn short(value: f64) -> String {
    let value: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    match (1e-3..1e5).contains(&value) {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}
