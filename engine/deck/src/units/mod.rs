//! Code units: the table `[units]`, unit words such as `kpc`, and physical constants.
//!
//! This is the only folder of the engine with names of physical quantities; they are only used as units.

mod code;
pub(crate) mod dimension;
mod shown;

use crate::error::nearest;
use cgs::*;
pub(crate) use code::MeasuringUnit;
pub use code::{CodeUnits, Expansion, Size, UnitsConfig};
use dimension::{ENERGY, LENGTH, MASS, SPEED, TIME, VOLUME};
pub use shown::{EXPANSION, ShownUnit, UnitSystem, formula_units};

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

/// A unit word.
struct Word {
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

/// All unit words.
const WORDS: [Word; 29] = [
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
const NEWTON: [i32; 3] = [3, -1, -2];

/// Returns the unit word `name`.
fn find(name: &str) -> Option<&'static Word> {
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

/// Returns `true` if a text begins with a unit word, or with a name that resembles one.
pub(crate) fn begins_with_unit(text: &str) -> bool {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let name = &text[..end];
    split(name).is_ok() || nearest(name, words()).is_some()
}

/// Splits `1e4 K` into the longest number at its beginning and the unit.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.trim_start_matches(['-', '+', '.']);
    unsigned
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(())?;
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let number = |at: usize| Some((text[..at].parse().ok()?, text[at..].trim_start()));
    let ends: Vec<usize> = ends.collect();
    let (value, unit) = ends.into_iter().rev().find_map(number)?;
    unit.starts_with(char::is_alphabetic)
        .then_some((value, unit))
}

/// A quantity in cgs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantity {
    pub cgs: f64,
    /// Powers of length, mass and time; `None` for a number in cgs without units.
    pub dimension: Option<[i32; 3]>,
}

/// Largest power of a unit.
const MAX_POWER: i32 = 9;

/// Parses products (blank or `*`) and quotients of numbers and units; a unit may be followed by an integer power.
///
/// # Errors
/// Returns the reason if the text is invalid.
fn quantity(text: &str) -> Result<Quantity, String> {
    quantity_with(text, &[])
}

/// Parses a text as [`quantity`], with further words that stand for pure numbers.
fn quantity_with(text: &str, numbers: &[(String, f64)]) -> Result<Quantity, String> {
    let mut found = Quantity {
        cgs: 1.0,
        dimension: None,
    };
    let spaced = text.replace(['*', '·'], " ").replace('/', " / ");
    let mut divides = false;
    let mut factors = 0;
    for part in spaced.split_whitespace() {
        if part == "/" {
            if divides || factors == 0 {
                return Err("`/` must be between two units".into());
            }
            divides = true;
            continue;
        }
        found.multiply(part, divides, numbers)?;
        divides = false;
        factors += 1;
    }
    match factors == 0 || divides {
        true => Err("a unit is missing".into()),
        false => Ok(found),
    }
}

impl Quantity {
    /// Multiplies or divides by a number or a unit.
    fn multiply(
        &mut self,
        part: &str,
        divides: bool,
        numbers: &[(String, f64)],
    ) -> Result<(), String> {
        if let Ok(number) = part.parse::<f64>() {
            self.cgs = match divides {
                true => self.cgs / number,
                false => self.cgs * number,
            };
            return Ok(());
        }
        let (word, power) = split_with(part, numbers)?;
        let power = if divides { -power } else { power };
        let dimension = self.dimension.get_or_insert([0; 3]);
        for (sum, own) in dimension.iter_mut().zip(word.1) {
            *sum += own * power;
        }
        for _ in 0..power.abs() {
            self.cgs = match power > 0 {
                true => self.cgs * word.0,
                false => self.cgs / word.0,
            };
        }
        Ok(())
    }
}

/// Value and dimension of a unit.
type UnitFactor = (f64, [i32; 3]);

/// Splits `cm3`, `cm^3` or `s^-1` into the unit and its power.
fn split(part: &str) -> Result<(UnitFactor, i32), String> {
    split_with(part, &[])
}

/// Splits a unit as [`split`], with further words that stand for pure numbers.
fn split_with(part: &str, numbers: &[(String, f64)]) -> Result<(UnitFactor, i32), String> {
    let sized = |name: &str| {
        let own = numbers.iter().find(|(own, _)| own == name);
        let own = own.map(|(_, number)| (*number, [0; 3]));
        own.or_else(|| find(name).map(|word| (word.cgs, word.dimension)))
    };
    if let Some(word) = sized(part) {
        return Ok((word, 1));
    }
    let name = part.trim_end_matches(|c: char| c.is_ascii_digit() || "^-+".contains(c));
    let power = part[name.len()..].trim_start_matches('^');
    let word = sized(name).ok_or_else(|| unknown(name))?;
    match power.parse::<i32>() {
        Ok(power) if (1..=MAX_POWER).contains(&power.abs()) => Ok((word, power)),
        _ => Err(format!(
            "`{part}`: the power of `{name}` must be an integer up to {MAX_POWER}"
        )),
    }
}

/// Returns the message about an unknown unit.
fn unknown(name: &str) -> String {
    let known = || WORDS.iter().map(|word| word.name);
    match nearest(name, known()) {
        Some(near) => format!("unknown unit `{name}`; did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = known().collect();
            format!("unknown unit `{name}`; known are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::units::quantity;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text: &str| quantity(text).map(|q| (q.cgs, q.dimension));
        assert_eq!(read("km/s"), Ok((1e5, Some([1, 0, -1]))));
        assert_eq!(read("km s^-1"), read("km/s"));
        assert_eq!(read("10 m"), Ok((1e3, Some([1, 0, 0]))));
        assert_eq!(read("10*m"), read("10 m"));
        assert_eq!(read("2 g/cm^3"), Ok((2.0, Some([-3, 1, 0]))));
        assert_eq!(read("2 g/cm3"), read("2 g cm-3"));
        assert_eq!(read("2e3"), Ok((2e3, None)));
        let density = read("Msun/pc3").expect("a density");
        assert!((density.0 / 6.768e-23 - 1.0).abs() < 1e-3, "{density:?}");
    }

    #[test]
    fn invalid_sizes_are_errors() {
        let wrong = |text: &str| quantity(text).expect_err(text);
        assert_eq!(wrong("kps"), "unknown unit `kps`; did you mean `kpc`?");
        for text in ["", "/s", "km/", "km//s", "cm^", "cm^0", "cm^99", "x y"] {
            wrong(text);
        }
    }
}
