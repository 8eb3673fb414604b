//! The table `[units]`.

use super::quantity::quantity;
use super::words::{NEWTON, kind};
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
/// table is dimensionless. With it, all numbers and formulas may use the words and the constants G, k_B, m_H, m_p and c in code units:
/// `left_edge = ["-5*kpc", …]`, `velocity_x = "200*km/s"`. A name in `[constants]` takes precedence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
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
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub gravity: Option<f64>,
    /// Unit of length in cm, equivalent to `length`; 1 if only others of these three keys are given.
    #[schemars(extend("unit" = "cm", "exclusiveMinimum" = 0.0))]
    pub length_cgs: Option<f64>,
    /// Unit of mass in g, equivalent to `mass`.
    #[schemars(extend("unit" = "g", "exclusiveMinimum" = 0.0))]
    pub mass_cgs: Option<f64>,
    /// Unit of time in s, equivalent to `time`.
    #[schemars(extend("unit" = "s", "exclusiveMinimum" = 0.0))]
    pub time_cgs: Option<f64>,
    /// Name of the unit system; by default composed of the given units.
    pub name: Option<String>,
}

/// A unit given in the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedUnit {
    /// Its key.
    pub key: &'static str,
    /// Powers of length, mass and time.
    pub dimension: [i32; 3],
    /// Value in cgs; in code units for gravity.
    pub value: f64,
    /// Text for messages.
    pub shown: String,
}

/// Keys with their dimensions and cgs units, in the order of messages.
pub(super) const KINDS: [(&str, [i32; 3], &str); 6] = [
    ("length", [1, 0, 0], "cm"),
    ("mass", [0, 1, 0], "g"),
    ("time", [0, 0, 1], "s"),
    ("velocity", [1, 0, -1], "cm/s"),
    ("density", [-3, 1, 0], "g/cm3"),
    ("gravity", NEWTON, ""),
];

impl UnitsConfig {
    /// Returns `true` if the units are given only by the keys in cgs; missing keys are 1 in this case.
    pub(crate) fn is_in_cgs(&self) -> bool {
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
            let (wanted, other) = (kind(dimension), kind(other));
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
