//! Unit words.

use super::cgs::*;

/// A unit word.
pub(super) struct Word {
    /// Name in `[units]` and in formulas.
    pub name: &'static str,
    /// Value in cgs.
    pub cgs: f64,
    /// Powers of length, mass and time.
    pub dimension: [i32; 3],
}

const fn word(name: &'static str, cgs: f64, dimension: [i32; 3]) -> Word {
    Word {
        name,
        cgs,
        dimension,
    }
}

const LENGTH: [i32; 3] = [1, 0, 0];
const VOLUME: [i32; 3] = [3, 0, 0];
const MASS: [i32; 3] = [0, 1, 0];
const TIME: [i32; 3] = [0, 0, 1];
const SPEED: [i32; 3] = [1, 0, -1];
const ENERGY: [i32; 3] = [2, 1, -2];

/// All unit words.
pub(super) const WORDS: [Word; 29] = [
    word("cm", 1.0, LENGTH),
    word("m", 1e2, LENGTH),
    word("km", 1e5, LENGTH),
    word("Rsun", SOLAR_RADIUS, LENGTH),
    word("au", ASTRONOMICAL_UNIT, LENGTH),
    word("pc", PARSEC, LENGTH),
    word("kpc", 1e3 * PARSEC, LENGTH),
    word("Mpc", 1e6 * PARSEC, LENGTH),
    word("cm3", 1.0, VOLUME),
    word("pc3", PARSEC * PARSEC * PARSEC, VOLUME),
    word("kpc3", 1e9 * (PARSEC * PARSEC * PARSEC), VOLUME),
    word("g", 1.0, MASS),
    word("kg", 1e3, MASS),
    word("mH", HYDROGEN_MASS, MASS),
    word("m_H", HYDROGEN_MASS, MASS),
    word("m_p", PROTON_MASS, MASS),
    word("Msun", SOLAR_MASS, MASS),
    word("s", 1.0, TIME),
    word("yr", YEAR, TIME),
    word("kyr", 1e3 * YEAR, TIME),
    word("Myr", 1e6 * YEAR, TIME),
    word("Gyr", 1e9 * YEAR, TIME),
    word("kms", 1e5, SPEED),
    word("c", LIGHT_SPEED, SPEED),
    word("erg", 1.0, ENERGY),
    word("eV", ELECTRONVOLT, ENERGY),
    word("keV", 1e3 * ELECTRONVOLT, ENERGY),
    word("k_B", BOLTZMANN, ENERGY),
    word("G", GRAVITATIONAL_CONSTANT, NEWTON),
];

/// Dimension of Newton's constant: powers of length, mass and time.
pub(super) const NEWTON: [i32; 3] = [3, -1, -2];

/// Returns the unit word `name`.
pub(super) fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// Returns the unit words that formulas may use in decks with units.
pub fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.name)
}

/// Returns `true` if this is a unit word.
pub(crate) fn is_word(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the name of a quantity with these powers of length, mass and time.
pub(super) fn kind(dimension: [i32; 3]) -> String {
    let name = match dimension {
        [0, 0, 0] => "a pure number",
        LENGTH => "a length",
        MASS => "a mass",
        TIME => "a time",
        SPEED => "a velocity",
        VOLUME => "a volume",
        ENERGY => "an energy",
        [-3, 1, 0] => "a density",
        [l, m, t] => return format!("cm^{l} g^{m} s^{t}"),
    };
    name.into()
}
