//! Units in which people read quantities: kpc, Msun, Myr, km/s.

use super::CodeUnits;
use crate::formula::{Formula, NamedTerm, dimension_of};
use crate::units::dimension::{Dimension, ENERGY, LENGTH, MASS, Powers, SPEED, TIME, VOLUME};

/// Units of pictures, summaries and logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitSystem {
    /// Units of astronomy: kpc, Msun, Myr, km/s, g/cm^3; K for temperatures.
    #[default]
    Astronomical,
    /// Centimetre, gram and second.
    Cgs,
    /// Code units.
    Code,
}

impl std::str::FromStr for UnitSystem {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "astronomical" => Ok(Self::Astronomical),
            "cgs" => Ok(Self::Cgs),
            "code" => Ok(Self::Code),
            _ => Err(format!("units {text:?}: must be astronomical, cgs or code")),
        }
    }
}

/// A unit in which a quantity is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownUnit {
    /// Name, such as `kpc`, `g/cm3`, or `1` for a pure number; code units are written as in the array, `mass/length**3`.
    pub name: String,
    /// A number in the unit of its array times this factor is a number in this unit.
    pub factor: f64,
}

impl ShownUnit {
    fn of(name: &str, factor: f64) -> Self {
        Self {
            name: name.into(),
            factor,
        }
    }
}

/// Words of units for lengths, masses and times, from short to long.
const SCALES: [([i32; 3], &[&str]); 5] = [
    (LENGTH, &["cm", "km", "au", "pc", "kpc", "Mpc"]),
    (MASS, &["g", "Msun"]),
    (TIME, &["s", "yr", "kyr", "Myr", "Gyr"]),
    (VOLUME, &["cm3", "pc3", "kpc3"]),
    ([0, 0, -1], &["1/Gyr", "1/Myr", "1/kyr", "1/yr", "1/s"]),
];

/// Units of other quantities, which do not depend on their size.
const FIXED: [([i32; 3], &str); 9] = [
    (SPEED, "km/s"),
    ([2, 0, -2], "km2/s2"),
    ([-3, 1, 0], "g/cm3"),
    ([-3, 0, 0], "1/cm3"),
    ([-2, 1, 0], "Msun/pc2"),
    ([-2, 0, 0], "1/cm2"),
    ([-1, 1, -2], "erg/cm3"),
    (ENERGY, "erg"),
    ([2, 1, -3], "erg/s"),
];

/// Words that the units of arrays may contain: those of code units, and those of cgs.
const CODE: [(&str, [i32; 3]); 3] = [("length", LENGTH), ("mass", MASS), ("time", TIME)];
const CGS: [(&str, [i32; 3]); 4] = [("cm", LENGTH), ("g", MASS), ("s", TIME), ("erg", ENERGY)];
/// Word for the scale factor of changing units in the unit of an array, for numbers that are stored without this factor.
pub const EXPANSION: &str = "expansion";
/// Unit of temperatures, which has no dimension here.
const KELVIN: &str = "K";

impl CodeUnits {
    /// Returns the value in cgs of a unit of an array, such as `mass/length**3`. Words other than `length`, `mass`, `time` and
    /// [`EXPANSION`] count as 1, and so does a text that is no product.
    #[must_use]
    pub fn cgs_factor(&self, units: &str) -> f64 {
        let sizes = [self.length_cgs, self.mass_cgs, self.time_cgs];
        let code = CODE.into_iter().zip(sizes);
        let code = code.map(|((name, _), size)| (name, size));
        let scale_factor = self.expansion.map_or(1.0, |own| own.scale_factor);
        let code: Vec<(&str, f64)> = code.chain([(EXPANSION, scale_factor)]).collect();
        let others = words(units).filter(|word| code.iter().all(|(name, _)| name != word));
        let all = others.map(|word| (word, 1.0)).chain(code.iter().copied());
        let (names, values): (Vec<&str>, Vec<f64>) = all.unzip();
        let product = Formula::parse(&units.replace("**", "^"), &names);
        let factor = product.map_or(1.0, |product| product.eval(&values));
        if factor.is_finite() { factor } else { 1.0 }
    }

    /// Returns the power of the scale factor in [`Self::cgs_factor`]; `None` if the units are constant or the unit is not known.
    #[must_use]
    pub fn scale_factor_exponent(&self, units: &str) -> Option<f64> {
        let powers = self.expansion?.powers;
        let code = CODE.into_iter().zip(powers);
        let code = code.map(|((name, _), power)| (name, power));
        let constant = CGS.into_iter().map(|(name, _)| name).chain([KELVIN]);
        let all = code
            .chain([(EXPANSION, 1)])
            .chain(constant.map(|name| (name, 0)));
        // the first power stands for that of the scale factor
        let powers = powers_with(units, all.map(|(name, power)| (name, [power, 0, 0])))?;
        Some(powers.0[0])
    }

    /// Returns the unit of an array in cgs in the notation of Python, such as `g/cm**3`: numbers times
    /// [`Self::cgs_factor`] have this unit. It is `1` for a pure number, and in a run without units.
    #[must_use]
    pub fn cgs_units(&self, units: &str) -> String {
        match (self.is_dimensionless(), powers(units)) {
            (false, Some(powers)) => {
                let names = [("cm", powers.0[0]), ("g", powers.0[1]), ("s", powers.0[2])];
                let kelvins = words(units).any(|word| word == KELVIN);
                product(&names, kelvins)
            }
            _ => "1".into(),
        }
    }

    /// Returns the unit in which numbers of the unit `units`, such as `mass/length**3`, are shown; `typical` is such a number,
    /// which decides between pc and kpc; 0 counts as 1.
    #[must_use]
    pub fn shown(&self, units: &str, system: UnitSystem, typical: f64) -> ShownUnit {
        let as_it_is = ShownUnit::of(units, 1.0);
        let Some(powers) = powers(units) else {
            return as_it_is;
        };
        let is_kelvin = words(units).any(|word| word == KELVIN);
        let in_cgs = || {
            let name = self.cgs_units(units).replace("**", "").replace('*', " ");
            ShownUnit::of(&name, self.cgs_factor(units))
        };
        match system {
            _ if self.is_dimensionless() || powers == Powers::from([0; 3]) => as_it_is,
            UnitSystem::Code => as_it_is,
            UnitSystem::Astronomical if !is_kelvin => {
                let factor = self.cgs_factor(units);
                let typical = if typical == 0.0 { 1.0 } else { typical };
                astronomical(powers, factor, typical * factor).unwrap_or_else(in_cgs)
            }
            _ => in_cgs(),
        }
    }
}

/// Returns the words of a unit.
fn words(units: &str) -> impl Iterator<Item = &str> {
    let words = units.split(|c: char| !c.is_ascii_alphabetic());
    words.filter(|word| !word.is_empty())
}

/// Returns the powers of length, mass and time of the unit of an array; `None` if it has words that are no units.
fn powers(units: &str) -> Option<Powers> {
    let numbers = [(KELVIN, [0; 3]), (EXPANSION, [0; 3])];
    powers_with(units, CODE.into_iter().chain(CGS).chain(numbers))
}

/// Returns the powers of a unit, whose words have the powers in `named`; `None` if it has other words or is no product.
fn powers_with(
    units: &str,
    named: impl Iterator<Item = (&'static str, [i32; 3])>,
) -> Option<Powers> {
    let named = named.map(|(name, powers)| NamedTerm {
        name,
        value: 1.0,
        dimension: Dimension::Powers(powers.into()),
    });
    match dimension_of(&units.replace("**", "^"), &named.collect::<Vec<_>>()) {
        Ok(Dimension::Powers(powers)) => Some(powers),
        _ => None,
    }
}

/// Returns the unit in code units, such as `mass/length**3`, of a formula of quantities, given by their names and units. `None` if it is
/// no product of powers of length, mass and time: the formula adds different quantities, or has names that are not among them.
#[must_use]
pub fn formula_units(text: &str, quantities: &[(&str, &str)]) -> Option<String> {
    let is_used = |name: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.any(|word| word == name)
    };
    let used = quantities.iter().filter(|(name, _)| is_used(name));
    let mut named = Vec::new();
    for (name, units) in used {
        let in_code_units = words(units).all(|word| CODE.iter().any(|(own, _)| *own == word));
        named.push(NamedTerm {
            name,
            value: 1.0,
            dimension: Dimension::Powers(powers(units).filter(|_| in_code_units)?),
        });
    }
    match dimension_of(text, &named) {
        Ok(Dimension::Powers(Powers([length, mass, time]))) => {
            let names = [("length", length), ("mass", mass), ("time", time)];
            Some(product(&names, false))
        }
        _ => None,
    }
}

/// Returns the astronomical unit for a quantity with these dimensions. `cgs` is a typical value in cgs, and `factor` converts code units
/// to cgs.
fn astronomical(powers: Powers, factor: f64, cgs: f64) -> Option<ShownUnit> {
    let is = |dimension: &[i32; 3]| Powers::from(*dimension) == powers;
    if let Some((_, name)) = FIXED.iter().find(|(dimension, _)| is(dimension)) {
        return Some(in_word(name, factor));
    }
    let (_, names) = SCALES.iter().find(|(dimension, _)| is(dimension))?;
    let sized = names.iter().map(|name| in_word(name, factor));
    // the longest unit that is shorter than the value
    let fitting = |unit: &ShownUnit| cgs.abs() * unit.factor / factor >= 1.0;
    let mut sized: Vec<ShownUnit> = sized.collect();
    let found = sized.iter().rposition(fitting).unwrap_or(0);
    Some(sized.swap_remove(found))
}

/// Returns the unit with this name; `factor` converts to cgs.
fn in_word(name: &str, factor: f64) -> ShownUnit {
    let size = super::quantity(name).map_or(1.0, |unit| unit.cgs);
    ShownUnit::of(name, factor / size)
}

/// Writes a product of powers, such as `g/(cm*s**2)`.
fn product(names: &[(&str, f64)], kelvins: bool) -> String {
    let power = |(name, power): &(&str, f64)| match power.abs() {
        1.0 => (*name).to_string(),
        power => format!("{name}**{power}"),
    };
    let kelvin = kelvins.then(|| KELVIN.to_string());
    let above = names.iter().filter(|(_, power)| *power > 0.0).map(power);
    let above: Vec<String> = above.chain(kelvin).collect();
    let below = names.iter().filter(|(_, power)| *power < 0.0).map(power);
    let below: Vec<String> = below.collect();
    let above = match above.is_empty() {
        true => "1".into(),
        false => above.join("*"),
    };
    match below.len() {
        0 => above,
        1 => format!("{above}/{}", below[0]),
        _ => format!("{above}/({})", below.join("*")),
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeUnits, UnitSystem, formula_units};
    use crate::units::Expansion;

    fn galaxy() -> CodeUnits {
        CodeUnits {
            length_cgs: 3.085_677_581_491_367_3e21,
            mass_cgs: 1.988_409_87e43,
            time_cgs: 3.085_677_581_491_367e16,
            name: "kpc, 1e10 Msun, km/s".into(),
            ..CodeUnits::default()
        }
    }

    #[test]
    fn units_of_arrays_are_written_in_cgs() {
        for (units, cgs) in [
            ("mass/length**3", "g/cm**3"),
            ("mass/(length*time**2)", "g/(cm*s**2)"),
            ("(length/time)**2", "cm**2/s**2"),
            ("cm**-3", "1/cm**3"),
            ("K", "K"),
            ("K*length", "cm*K"),
            ("1", "1"),
            ("cell", "1"),
            ("erg", "cm**2*g/s**2"),
        ] {
            assert_eq!(galaxy().cgs_units(units), cgs, "{units}");
            assert_eq!(CodeUnits::default().cgs_units(units), "1", "{units}");
        }
    }

    #[test]
    fn quantities_are_shown_as_astronomers_write_them() {
        let shown = |units: &str, typical: f64| {
            let unit = galaxy().shown(units, UnitSystem::Astronomical, typical);
            (unit.name, (unit.factor * 1e6).round() / 1e6)
        };
        assert_eq!(shown("length", 0.5), ("pc".into(), 1000.0));
        assert_eq!(shown("length", 20.0), ("kpc".into(), 1.0));
        assert_eq!(shown("length", 5e3), ("Mpc".into(), 0.001));
        assert_eq!(shown("length", 0.0), ("kpc".into(), 1.0));
        assert_eq!(shown("time", 0.1), ("Myr".into(), 977.792_222));
        assert_eq!(shown("mass", 1.0), ("Msun".into(), 1e10));
        assert_eq!(shown("length/time", 1.0), ("km/s".into(), 1.0));
        assert_eq!(shown("mass/length**2", 1.0), ("Msun/pc2".into(), 1e4));
        assert_eq!(shown("cm**-3", 1.0), ("1/cm3".into(), 1.0));
        assert_eq!(shown("K", 1.0), ("K".into(), 1.0));
        assert_eq!(shown("1", 1.0), ("1".into(), 1.0));
        // per cubic centimetre along a length
        let column = galaxy().shown("cm**-3*length", UnitSystem::Astronomical, 1.0);
        assert_eq!(
            (column.name.as_str(), column.factor),
            ("1/cm2", galaxy().length_cgs)
        );
        let momentum = galaxy().shown("mass/(length**2*time)", UnitSystem::Astronomical, 1.0);
        assert_eq!(momentum.name, "g/(cm2 s)");
    }

    #[test]
    fn formulas_of_quantities_have_units() {
        let quantities = [
            ("density", "mass/length**3"),
            ("speed", "length/time"),
            ("temperature_k", "K"),
            ("mach", "1"),
        ];
        for (text, units) in [
            ("0.5*density*speed^2", Some("mass/(length*time**2)")),
            ("exp(mach)*speed", Some("length/time")),
            ("mach > 1", Some("1")),
            ("density + speed", None),
            ("2*temperature_k", None),
            ("density*unknown", None),
        ] {
            let found = formula_units(text, &quantities);
            assert_eq!(found.as_deref(), units, "{text}");
        }
    }

    #[test]
    fn changing_units_follow_the_scale_factor() {
        let expansion = Expansion {
            scale_factor: 1.0,
            powers: [1, 0, 2],
        };
        let today = CodeUnits {
            expansion: Some(expansion),
            ..galaxy()
        };
        let early = today.at_scale_factor(0.25);
        for (units, exponent) in [
            ("length", 1.0),
            ("time", 2.0),
            ("mass", 0.0),
            ("mass/length**3", -3.0),
            ("length/time", -1.0),
            ("mass/(length*time**2)", -5.0),
            ("length**2/time**2", -2.0),
            ("expansion*length**2/time**2", -1.0),
            ("expansion*length/time**2", -2.0),
            ("(mass/length)**0.5/time", -2.5),
            ("cm**-3*length", 1.0),
            ("K", 0.0),
            ("1", 0.0),
        ] {
            assert_eq!(
                early.scale_factor_exponent(units),
                Some(exponent),
                "{units}"
            );
            assert_eq!(galaxy().scale_factor_exponent(units), None);
            let growth = early.cgs_factor(units) / today.cgs_factor(units);
            let expected = nestar_device::math::pow(0.25, exponent);
            assert!((growth / expected - 1.0).abs() < 1e-14, "{units}: {growth}");
        }
        assert_eq!(early.scale_factor_exponent("furlong"), None);
        assert_eq!(early.cgs_units("expansion*length**2/time**2"), "cm**2/s**2");
        assert_eq!(galaxy().at_scale_factor(0.25), galaxy());
        // the sum of the exponents is not known for a formula
        let potential = [("potential", "expansion*length**2/time**2")];
        assert_eq!(formula_units("2*potential", &potential), None);
    }

    #[test]
    fn the_system_may_be_chosen() {
        let cgs = galaxy().shown("mass/length**3", UnitSystem::Cgs, 1.0);
        assert_eq!(
            (cgs.name.as_str(), cgs.factor),
            ("g/cm3", galaxy().cgs_factor("mass/length**3"))
        );
        let code = galaxy().shown("mass/length**3", UnitSystem::Code, 1.0);
        assert_eq!((code.name.as_str(), code.factor), ("mass/length**3", 1.0));
        let none = CodeUnits::default().shown("time", UnitSystem::Astronomical, 1.0);
        assert_eq!((none.name.as_str(), none.factor), ("time", 1.0));
    }
}
