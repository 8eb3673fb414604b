//! Code units: the table `[units]`, unit words such as `kpc`, and physical constants.
//!
//! This is the only folder of the engine with names of physical quantities; they are only used as units.

mod code;
mod words;

pub use code::{CodeUnits, Size, UnitsConfig};
pub(crate) use words::is_word;
pub use words::words;

/// Name of the table in decks.
pub(crate) const UNITS: &str = "units";

/// Physical constants in cgs.
pub mod cgs {
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
    /// Solar mass, g (nominal GM of IAU 2015 over Newton's constant).
    pub const SOLAR_MASS: f64 = 1.988_409_87e33;
    /// Solar radius, cm (nominal, IAU 2015).
    pub const SOLAR_RADIUS: f64 = 6.957e10;
    /// Astronomical unit, cm (IAU 2012).
    pub const ASTRONOMICAL_UNIT: f64 = 1.495_978_707e13;
    /// Parsec, cm (IAU 2015).
    pub const PARSEC: f64 = 3.085_677_581_491_367_3e18;
    /// Julian year, s.
    pub const YEAR: f64 = 3.155_76e7;
}
