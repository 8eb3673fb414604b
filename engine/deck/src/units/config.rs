//! The table `[units]`.

use super::quantity::quantity;
use super::words::{NEWTON, kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// In cgs.
    Number(f64),
    /// A word such as `kpc`, or numbers and words that are multiplied and divided: `10 kpc`, `km/s`, `mH/cm3`.
    Text(String),
}

/// What the units of the code are: three of length, mass, time, velocity, density and gravity, from which the others follow. Each size is a
/// number in cgs, a word (cm m km Rsun au pc kpc Mpc, g kg mH m_p Msun, s yr kyr Myr Gyr), or made of these: "10 kpc", "km/s", "mH/cm3". A deck
/// without the table is dimensionless. In a deck with it all numbers and formulas may use the words, and the constants G, k_B, m_H, m_p and c,
/// in code units: `left_edge = ["-5*kpc", …]`, `velocity_x = "200*km/s"`; a name in `[constants]` goes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnitsConfig {
    /// A code length.
    pub length: Option<Size>,
    /// A code mass.
    pub mass: Option<Size>,
    /// A code time.
    pub time: Option<Size>,
    /// A code velocity, such as "km/s".
    pub velocity: Option<Size>,
    /// A code density, such as "mH/cm3" or "Msun/pc3".
    pub density: Option<Size>,
    /// Newton's constant in code units, such as 1.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub gravity: Option<f64>,
    /// Centimetres in a code length, as `length`; 1 where another of these three is given.
    #[schemars(extend("unit" = "cm", "exclusiveMinimum" = 0.0))]
    pub length_cgs: Option<f64>,
    /// Grams in a code mass, as `mass`.
    #[schemars(extend("unit" = "g", "exclusiveMinimum" = 0.0))]
    pub mass_cgs: Option<f64>,
    /// Seconds in a code time, as `time`.
    #[schemars(extend("unit" = "s", "exclusiveMinimum" = 0.0))]
    pub time_cgs: Option<f64>,
    /// Name of the unit system; absent: made of what is given.
    pub name: Option<String>,
}

/// A size that the table gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedUnit {
    /// Its key.
    pub key: &'static str,
    /// Powers of length, mass and time in it.
    pub dimension: [i32; 3],
    /// Its size in cgs; for gravity in code units.
    pub value: f64,
    /// As people read it.
    pub shown: String,
}

/// What keys give, in the order of messages.
pub(super) const KINDS: [(&str, [i32; 3], &str); 6] = [
    ("length", [1, 0, 0], "cm"),
    ("mass", [0, 1, 0], "g"),
    ("time", [0, 0, 1], "s"),
    ("velocity", [1, 0, -1], "cm/s"),
    ("density", [-3, 1, 0], "g/cm3"),
    ("gravity", NEWTON, ""),
];

impl UnitsConfig {
    /// Whether the keys of numbers in cgs alone say what the units are: those that are absent are 1 then.
    pub(crate) fn is_in_cgs(&self) -> bool {
        let own = [&self.length, &self.mass, &self.time, &self.velocity];
        let own = own.into_iter().chain([&self.density]);
        let none = own.flatten().next().is_none() && self.gravity.is_none();
        let cgs = [self.length_cgs, self.mass_cgs, self.time_cgs];
        none && cgs.into_iter().flatten().next().is_some()
    }

    /// What the table gives.
    ///
    /// # Errors
    /// A key, and what is wrong with it.
    pub(crate) fn given(&self) -> Result<Vec<StatedUnit>, (&'static str, String)> {
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

/// The size of a key.
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
            let (wanted, other) = (kind(dimension), kind(other));
            let why = format!("must be {wanted} such as {unit}, but \"{text}\" is {other}");
            Err((key, why))
        }
        _ => checked(key, dimension, found.cgs, text.trim().into()),
    }
}

/// A size that is positive.
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
