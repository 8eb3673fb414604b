//! Code units.

use super::cgs::GRAVITATIONAL_CONSTANT;
use super::config::UnitsConfig;
use super::solve::solve;
use super::words::{NEWTON, WORDS, Word};

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

    fn sizes(&self) -> [f64; 3] {
        [self.length_cgs, self.mass_cgs, self.time_cgs]
    }

    /// Returns Newton's constant in code units.
    #[must_use]
    pub fn newton_constant(&self) -> f64 {
        Self::newton_constant_in(self.sizes())
    }

    /// Returns the unit words with their values in code units.
    pub(crate) fn names(&self) -> Vec<(String, f64)> {
        let value = |word: &Word| match word.dimension == NEWTON {
            true => self.newton_constant(),
            false => word.cgs / factor(self.sizes(), word.dimension),
        };
        let named = WORDS.iter().map(|word| (word.name.into(), value(word)));
        named.collect()
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
