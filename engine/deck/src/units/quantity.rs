//! Parses quantities with units: `10 kpc`, `km/s`, `mH/cm3`.

use super::words::{WORDS, find};
use crate::nearest::nearest;

/// A quantity in cgs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
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
pub(super) fn quantity(text: &str) -> Result<Quantity, String> {
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
        found.multiply(part, divides)?;
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
    fn multiply(&mut self, part: &str, divides: bool) -> Result<(), String> {
        if let Ok(number) = part.parse::<f64>() {
            self.cgs = match divides {
                true => self.cgs / number,
                false => self.cgs * number,
            };
            return Ok(());
        }
        let (word, power) = split(part)?;
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
    let sized = |name: &str| find(name).map(|word| (word.cgs, word.dimension));
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
    use super::quantity;

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
