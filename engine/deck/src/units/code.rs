//! Code units: the table `[units]`, and length, mass and time derived from three given units.

use super::cgs::GRAVITATIONAL_CONSTANT;
use super::{NEWTON, WORDS, Word, quantity, quantity_with, split_number};
use crate::formula::dimension_of_key;
use crate::units::dimension::{Dimension, kind};
use nestar_deck_macro::deck;
use nestar_device::math::pow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A unit: a number in cgs or a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// A number in cgs.
    Number(f64),
    /// A word such as `kpc`, or a product or quotient of numbers and words: `10 kpc`, `km/s`, `mH/cm3`.
    Text(String),
}

/// Code units, defined by three of length, mass, time, velocity, density and gravity; the others follow. Each unit is a number in cgs, a
/// word (cm m km Rsun au pc kpc Mpc, g kg mH m_p Msun, s yr kyr Myr Gyr), or a combination: "10 kpc", "km/s", "mH/cm3". A deck without this
/// table is dimensionless. With it, numbers may have units, `end = "30 Myr"`, and all numbers and formulas may use the words and the constants
/// G, k_B, m_H, m_p and c in code units: `velocity_x = "200*km/s"`. A name in `[constants]` takes precedence.
#[deck]
pub struct UnitsConfig {
    /// Unit of length.
    pub length: Option<Size>,
    /// Unit of mass.
    pub mass: Option<Size>,
    /// Unit of time.
    pub time: Option<Size>,
    /// Unit of velocity, such as "km/s".
    pub velocity: Option<Size>,
    /// Unit of density, such as "mH/cm3" or "Msun/pc3".
    pub density: Option<Size>,
    /// Value of Newton's constant in code units, such as 1.
    #[key(above = 0.0)]
    pub gravity: Option<f64>,
    /// Unit of length in cm, equivalent to `length`; 1 if only others of these three keys are given.
    #[key(unit = "cm", above = 0.0)]
    pub length_cgs: Option<f64>,
    /// Unit of mass in g, equivalent to `mass`.
    #[key(unit = "g", above = 0.0)]
    pub mass_cgs: Option<f64>,
    /// Unit of time in s, equivalent to `time`.
    #[key(unit = "s", above = 0.0)]
    pub time_cgs: Option<f64>,
    /// Name of the unit system; by default composed of the given units.
    pub name: Option<String>,
}

/// A unit given in the table.
#[derive(Clone, Debug, PartialEq)]
struct StatedUnit {
    /// Its key.
    key: &'static str,
    /// Powers of length, mass and time.
    dimension: [i32; 3],
    /// Value in cgs; in code units for gravity.
    value: f64,
    /// Text for messages.
    shown: String,
}

/// Keys with their dimensions and cgs units, in the order of messages.
const KINDS: [(&str, [i32; 3], &str); 6] = [
    ("length", [1, 0, 0], "cm"),
    ("mass", [0, 1, 0], "g"),
    ("time", [0, 0, 1], "s"),
    ("velocity", [1, 0, -1], "cm/s"),
    ("density", [-3, 1, 0], "g/cm3"),
    ("gravity", NEWTON, ""),
];

impl UnitsConfig {
    /// Returns `true` if the units are given only by the keys in cgs; missing keys are 1 in this case.
    fn is_in_cgs(&self) -> bool {
        let own = [&self.length, &self.mass, &self.time, &self.velocity];
        let own = own.into_iter().chain([&self.density]);
        let none = own.flatten().next().is_none() && self.gravity.is_none();
        let cgs = [self.length_cgs, self.mass_cgs, self.time_cgs];
        none && cgs.into_iter().flatten().next().is_some()
    }

    /// Returns the given units.
    ///
    /// # Errors
    /// Returns an invalid key and the reason.
    fn given(&self) -> Result<Vec<StatedUnit>, (&'static str, String)> {
        let sizes = [&self.length, &self.mass, &self.time, &self.velocity];
        let sizes = sizes.into_iter().chain([&self.density]);
        let mut given = Vec::new();
        for ((key, dimension, unit), size) in KINDS.into_iter().zip(sizes) {
            if let Some(size) = size {
                given.push(read(key, dimension, unit, size)?);
            }
        }
        if let Some(value) = self.gravity {
            let shown = format!("G = {value}");
            given.push(checked("gravity", NEWTON, value, shown)?);
        }
        let cgs = [self.length_cgs, self.mass_cgs, self.time_cgs];
        let keys = ["length_cgs", "mass_cgs", "time_cgs"];
        let all = self.is_in_cgs();
        for (n, (key, value)) in keys.into_iter().zip(cgs).enumerate() {
            let (_, dimension, unit) = KINDS[n];
            if let Some(value) = value.or(all.then_some(1.0)) {
                given.push(checked(key, dimension, value, format!("{value} {unit}"))?);
            }
        }
        Ok(given)
    }
}

/// Reads the unit of a key.
fn read(
    key: &'static str,
    dimension: [i32; 3],
    unit: &str,
    size: &Size,
) -> Result<StatedUnit, (&'static str, String)> {
    let text = match size {
        Size::Number(value) => return checked(key, dimension, *value, format!("{value} {unit}")),
        Size::Text(text) => text,
    };
    let found = quantity(text).map_err(|why| (key, why))?;
    match found.dimension {
        Some(other) if other != dimension => {
            let (wanted, other) = (kind(dimension.into()), kind(other.into()));
            let why = format!("must be {wanted} such as {unit}, but \"{text}\" is {other}");
            Err((key, why))
        }
        _ => checked(key, dimension, found.cgs, text.trim().into()),
    }
}

/// Checks that a unit is positive and finite.
fn checked(
    key: &'static str,
    dimension: [i32; 3],
    value: f64,
    shown: String,
) -> Result<StatedUnit, (&'static str, String)> {
    if value > 0.0 && value.is_finite() {
        return Ok(StatedUnit {
            key,
            dimension,
            value,
            shown,
        });
    }
    Err((
        key,
        format!("must be a positive finite number, found {shown}"),
    ))
}

/// Code units in cgs; all 1 for a dimensionless run.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeUnits {
    /// Centimetres in a code length.
    pub length_cgs: f64,
    /// Grams in a code mass.
    pub mass_cgs: f64,
    /// Seconds in a code time.
    pub time_cgs: f64,
    /// Name of the unit system.
    pub name: String,
    /// Further unit words that stand for pure numbers.
    pub numbers: Vec<(String, f64)>,
    /// How the units change during the run, as a plugin has defined; `None` if they are constant. With changing units, a deck
    /// states lengths and masses with units, but neither times nor velocities.
    pub expansion: Option<Expansion>,
}

/// Units that follow a scale factor, which changes during the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expansion {
    /// Scale factor to which the units of [`CodeUnits`] belong.
    pub scale_factor: f64,
    /// Powers of the scale factor in the units of length, mass and time.
    pub powers: [i32; 3],
}

/// Name of the unit system of a dimensionless run.
const DIMENSIONLESS: &str = "dimensionless";

impl Default for CodeUnits {
    fn default() -> Self {
        Self {
            length_cgs: 1.0,
            mass_cgs: 1.0,
            time_cgs: 1.0,
            name: DIMENSIONLESS.into(),
            numbers: Vec::new(),
            expansion: None,
        }
    }
}

impl CodeUnits {
    /// Computes the code units from the table `[units]`.
    ///
    /// # Errors
    /// Returns the invalid key, or `None` for the whole table, and the reason.
    pub(crate) fn of(config: &UnitsConfig) -> Result<Self, (Option<&'static str>, String)> {
        let plain = UnitsConfig {
            name: config.name.clone(),
            ..UnitsConfig::default()
        };
        let named = config.name.clone();
        let no_units = named.as_ref().is_none_or(|name| name == DIMENSIONLESS);
        if *config == plain && no_units {
            return Ok(Self::default());
        }
        let given = config.given().map_err(|(key, why)| (Some(key), why))?;
        let [length_cgs, mass_cgs, time_cgs] = solve(&given)?;
        let made = || {
            let sizes: Vec<&str> = given.iter().map(|own| &*own.shown).collect();
            sizes.join(", ")
        };
        Ok(Self {
            length_cgs,
            mass_cgs,
            time_cgs,
            name: named.unwrap_or_else(made),
            ..Self::default()
        })
    }

    /// Returns `true` if the deck defines no units.
    #[must_use]
    pub fn is_dimensionless(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the units if the deck defines them.
    #[must_use]
    pub fn if_dimensional(&self) -> Option<&Self> {
        (!self.is_dimensionless()).then_some(self)
    }

    /// Returns Newton's constant for units of length, mass and time given in cgs. It is rounded to twelve digits, so that it is
    /// exactly 1 if the deck defines it as 1.
    #[must_use]
    pub fn newton_constant_in(units: [f64; 3]) -> f64 {
        let newton = GRAVITATIONAL_CONSTANT / factor(units, NEWTON);
        format!("{newton:.11e}").parse().unwrap_or(newton)
    }

    /// Returns `true` if the units change during the run.
    #[must_use]
    pub fn are_changing(&self) -> bool {
        self.expansion.is_some()
    }

    /// Returns these units, which belong to a scale factor of 1, at another scale factor; constant units stay.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "unit factors are metadata: no run depends on their last bit"
    )]
    pub fn at_scale_factor(&self, scale_factor: f64) -> Self {
        let Some(Expansion { powers, .. }) = self.expansion else {
            return self.clone();
        };
        let [length, mass, time] = powers.map(|power| scale_factor.powi(power));
        Self {
            length_cgs: length * self.length_cgs,
            mass_cgs: mass * self.mass_cgs,
            time_cgs: time * self.time_cgs,
            expansion: Some(Expansion {
                scale_factor,
                powers,
            }),
            ..self.clone()
        }
    }

    fn sizes(&self) -> [f64; 3] {
        [self.length_cgs, self.mass_cgs, self.time_cgs]
    }

    /// Returns Newton's constant in code units.
    #[must_use]
    pub fn newton_constant(&self) -> f64 {
        Self::newton_constant_in(self.sizes())
    }

    /// Returns the unit words of the deck with their values in code units and their dimensions.
    pub(crate) fn words(&self) -> Vec<((String, f64), Dimension)> {
        let value = |word: &Word| match word.dimension == NEWTON {
            true => self.newton_constant(),
            false => word.cgs / factor(self.sizes(), word.dimension),
        };
        let powers = |dimension: [i32; 3]| Dimension::Powers(dimension.into());
        let known = WORDS.iter().filter(|word| self.has(word.dimension));
        let known = known.map(|word| ((word.name.into(), value(word)), powers(word.dimension)));
        let numbers = self.numbers.iter().cloned();
        known
            .chain(numbers.map(|named| (named, powers([0; 3]))))
            .collect()
    }

    /// Returns `true` if numbers in a deck may have a unit of this dimension.
    fn has(&self, [_, _, time]: [i32; 3]) -> bool {
        !self.are_changing() || time == 0
    }

    /// Returns the value in cgs of a length such as `Mpc`, where words may stand for the `numbers`.
    ///
    /// # Errors
    /// The text is not a length.
    pub fn length_with(text: &str, numbers: &[(String, f64)]) -> Result<f64, String> {
        let found = quantity_with(text, numbers)?;
        match found.dimension {
            Some([1, 0, 0]) => Ok(found.cgs),
            _ => Err(format!("must be a length such as Mpc, found {text:?}")),
        }
    }

    /// Reads a unit such as `km/s`.
    ///
    /// # Errors
    /// The text is not a unit.
    pub(crate) fn read(&self, text: &str) -> Result<MeasuringUnit, String> {
        let found = quantity_with(text, &self.numbers)?;
        let powers = found.dimension.unwrap_or_default();
        if !self.has(powers) {
            let kind = kind(powers.into());
            return Err(format!(
                "`{text}` is {kind}, whose unit changes during this run: give the number in code units"
            ));
        }
        let size = found.cgs / factor(self.sizes(), powers);
        let dimension = Dimension::Powers(powers.into());
        Ok(MeasuringUnit::of(size, dimension))
    }

    /// Reads a number of the unit `units`, such as `length`: a number in code units, or one with a unit (`2 kpc`).
    ///
    /// # Errors
    /// The text is no number; its unit has another dimension.
    pub fn number(&self, text: &str, units: &str) -> Result<f64, String> {
        if let Ok(value) = text.trim().parse() {
            return Ok(value);
        }
        let (value, unit) = split_number(text.trim())
            .ok_or_else(|| format!("{text:?} is no number, and no number with a unit"))?;
        if self.is_dimensionless() {
            return Err(format!("{text:?}: the run has no units"));
        }
        let unit = self.read(unit)?;
        match dimension_of_key(units) {
            Some(wanted) if wanted != unit.dimension => Err(format!(
                "must be {}, but {text:?} is {}",
                wanted.shown(),
                unit.dimension.shown()
            )),
            _ => Ok(unit.in_code_units(value)),
        }
    }

    /// Returns the units as a deck table.
    pub(crate) fn table(&self) -> toml::Table {
        let sizes = [
            ("length_cgs", self.length_cgs),
            ("mass_cgs", self.mass_cgs),
            ("time_cgs", self.time_cgs),
        ];
        let mut table = toml::Table::new();
        table.extend(sizes.map(|(key, size)| (key.into(), size.into())));
        table.insert("name".into(), self.name.clone().into());
        table
    }
}

/// A unit such as `km/s` of a number in a deck.
pub(crate) struct MeasuringUnit {
    /// Size in code units, as a quotient of two numbers.
    size: [f64; 2],
    pub dimension: Dimension,
}

impl MeasuringUnit {
    /// Returns the unit with this size in code units. A size that is an integer, or one over an integer, up to round-off is exactly that:
    /// `"5 km/s"` is 5 if the unit of velocity is 1 km/s.
    fn of(size: f64, dimension: Dimension) -> Self {
        /// Relative round-off of a size, which results from up to 27 factors.
        const ROUND_OFF: f64 = 1e-14;
        let whole = |x: f64| {
            let near = x.round();
            (near >= 1.0 && (x / near - 1.0).abs() < ROUND_OFF).then_some(near)
        };
        let size = match (whole(size), whole(1.0 / size)) {
            (Some(size), _) => [size, 1.0],
            (None, Some(part)) => [1.0, part],
            (None, None) => [size, 1.0],
        };
        Self { size, dimension }
    }

    /// Converts a number in this unit to code units.
    pub fn in_code_units(&self, value: f64) -> f64 {
        let [above, below] = self.size;
        value * above / below
    }
}

/// Returns the cgs value of a unit with these powers of length, mass and time.
fn factor(units: [f64; 3], dimension: [i32; 3]) -> f64 {
    let mut factor = 1.0;
    for (unit, power) in units.into_iter().zip(dimension) {
        for _ in 0..power.abs() {
            factor = if power > 0 {
                factor * unit
            } else {
                factor / unit
            };
        }
    }
    factor
}

/// The invalid key, if it is a single one, and the reason.
type UnitsError = (Option<&'static str>, String);

/// Returns the units of length, mass and time in cgs.
///
/// # Errors
/// Returns the redundant key, if it is a single one, and the reason.
fn solve(given: &[StatedUnit]) -> Result<[f64; 3], UnitsError> {
    require_three(given)?;
    let found = given_keys(given);
    let [Some(length), Some(mass), Some(time)] = derive_units(given) else {
        let why = format!(
            "{found} are not independent, so length, mass and time do not follow: replace one of them by another of {}",
            known_keys()
        );
        return Err((None, why));
    };
    let units = [length, mass, time];
    match units.iter().all(|value| value.is_normal()) {
        true => Ok(units),
        false => Err((
            None,
            format!("{found} give units outside the range of numbers: {units:?}"),
        )),
    }
}

/// Lists the given keys for messages.
fn given_keys(given: &[StatedUnit]) -> String {
    let keys: Vec<&str> = given.iter().map(|own| own.key).collect();
    keys.join(", ")
}

/// Lists all keys for messages.
fn known_keys() -> String {
    KINDS.map(|(key, ..)| key).join(", ")
}

/// Checks that exactly three different units are given.
fn require_three(given: &[StatedUnit]) -> Result<(), UnitsError> {
    for (n, own) in given.iter().enumerate() {
        let same = |other: &&StatedUnit| other.dimension == own.dimension;
        if let Some(other) = given[..n].iter().find(same) {
            let other = other.key;
            let why = format!("defines the same unit as `units.{other}`: remove one of them");
            return Err((Some(own.key), why));
        }
    }
    if let Some(own) = given.get(3) {
        let why = format!(
            "is redundant: three of {} define the units; found {}",
            known_keys(),
            given_keys(given)
        );
        return Err((Some(own.key), why));
    }
    if given.len() == 3 {
        return Ok(());
    }
    let is_given = |dimension| given.iter().any(|own| own.dimension == dimension);
    let absent = KINDS.iter().filter(|kind| !is_given(kind.1));
    let absent: Vec<&str> = absent.map(|kind| kind.0).collect();
    let more = ["three", "two more", "one more"][given.len()];
    let found = match given.is_empty() {
        true => "nothing".into(),
        false => given_keys(given),
    };
    let why = format!("found {found}; give {more} of {}", absent.join(", "));
    Err((None, why))
}

/// Derives length, mass and time by repeated substitution; a unit that does not follow is `None`.
fn derive_units(given: &[StatedUnit]) -> [Option<f64>; 3] {
    let value = |key: &str| {
        let dimension = KINDS.iter().find(|kind| kind.0 == key).map(|kind| kind.1);
        let own = given.iter().find(|own| Some(own.dimension) == dimension);
        own.map(|own| own.value)
    };
    let [mut length, mut mass, mut time] = ["length", "mass", "time"].map(value);
    let (velocity, density) = (value("velocity"), value("density"));
    // length^3/(mass time^2) in cgs
    let newton = value("gravity").map(|code| GRAVITATIONAL_CONSTANT / code);
    // three units need at most two substitutions
    for _ in 0..3 {
        let before = [length, mass, time];
        let [l, m, t] = before;
        time = t
            .or_else(|| Some(l? / velocity?))
            .or_else(|| Some((1.0 / (newton? * density?)).sqrt()))
            .or_else(|| Some((l? * l? * l? / (newton? * m?)).sqrt()));
        length = l
            .or_else(|| Some(velocity? * t?))
            .or_else(|| Some(cubic_root(m? / density?)))
            .or_else(|| Some(cubic_root(newton? * m? * t? * t?)))
            .or_else(|| Some(newton? * m? / (velocity? * velocity?)));
        mass = m
            .or_else(|| Some(density? * (l? * l? * l?)))
            .or_else(|| Some(l? * l? * l? / (newton? * t? * t?)));
        if before == [length, mass, time] {
            break;
        }
    }
    [length, mass, time]
}

/// Returns the cubic root of a positive number.
fn cubic_root(x: f64) -> f64 {
    let root = pow(x, 1.0 / 3.0);
    // one step of Newton's method corrects for the rounding of 1/3
    root - (root * root * root - x) / (3.0 * root * root)
}
