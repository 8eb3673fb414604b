//! Tabulated functions: the table `[tables]`.

use crate::formula::{Curve, Extrapolation, integrals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table of the functions.
pub(crate) const TABLES: &str = "tables";

/// Functions by name, in the order of the deck, and what they say of themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct TabulatedFunctions {
    pub curves: Vec<(String, Arc<Curve>)>,
    pub resolved: toml::Table,
}

/// Functions of one number that formulas of the deck call by name, such as `halo(r)`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TablesConfig(pub BTreeMap<String, TableConfig>);

/// Numbers: a list, or a formula of the file's columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TabulatedNumbers {
    /// A formula of the file's columns by their names (`column_1`, `column_2` … where its first row has none).
    Formula(String),
    /// The numbers.
    List(Vec<f64>),
}

/// How slopes follow from numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// The function rises and falls as the numbers do, and never goes beyond them.
    #[default]
    Monotone,
    /// A cubic spline: the slope has no kinks either.
    Spline,
}

/// What a function is below its first place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtrapolationBelow {
    /// No number, which ends the run with the place.
    #[default]
    Refuse,
    /// The first number.
    Constant,
    /// The line with the slope there.
    Linear,
    /// a + b x^2 with number and slope there: as in a homogeneous ball.
    #[serde(rename = "core")]
    Square,
}

/// What a function is above its last place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtrapolationAbove {
    /// No number, which ends the run with the place.
    #[default]
    Refuse,
    /// The last number.
    Constant,
    /// The line with the slope there.
    Linear,
    /// a - b / x with number and slope there: as outside of a ball.
    #[serde(rename = "kepler")]
    Inverse,
}

/// A function of one number by its numbers at places, cubic between them: its slope has no jumps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// A text file with columns of numbers, from the folder of the deck; without one `x` and `y` are lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The places, which ascend from row to row.
    pub x: TabulatedNumbers,
    /// The numbers at the places, such as `potential` or `G*mass/radius^2`.
    pub y: TabulatedNumbers,
    /// The slopes there; without them they follow from the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope: Option<TabulatedNumbers>,
    /// How slopes follow from numbers.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether the function is the integral of the numbers over x: 0 at
    /// the first place, or at infinity if `above` is "kepler".
    #[serde(default)]
    pub integral: bool,
    /// What the function is below the first place.
    #[serde(default)]
    pub below: ExtrapolationBelow,
    /// What the function is above the last place.
    #[serde(default)]
    pub above: ExtrapolationAbove,
}

impl TableConfig {
    /// The function with these values and slopes at these places; or the row in which a width, slope or integral is not finite.
    pub(crate) fn curve(
        &self,
        places: &[f64],
        mut values: Vec<f64>,
        mut slopes: Vec<f64>,
    ) -> Result<Curve, usize> {
        if self.integral {
            let mut integrals = integrals(places, &values, &slopes);
            let last = places.len() - 1;
            if self.above == ExtrapolationAbove::Inverse {
                let zero = integrals[last] + values[last] * places[last];
                integrals.iter_mut().for_each(|value| *value -= zero);
            }
            (values, slopes) = (integrals, values);
        }
        let below = match self.below {
            ExtrapolationBelow::Refuse => Extrapolation::Refuse,
            ExtrapolationBelow::Constant => Extrapolation::Constant,
            ExtrapolationBelow::Linear => Extrapolation::Linear,
            ExtrapolationBelow::Square => Extrapolation::Square,
        };
        let above = match self.above {
            ExtrapolationAbove::Refuse => Extrapolation::Refuse,
            ExtrapolationAbove::Constant => Extrapolation::Constant,
            ExtrapolationAbove::Linear => Extrapolation::Linear,
            ExtrapolationAbove::Inverse => Extrapolation::Inverse,
        };
        let wide = |n: usize| {
            places
                .get(n + 1)
                .is_none_or(|next| (next - places[n]).is_finite())
        };
        let sound = |&n: &usize| values[n].is_finite() && slopes[n].is_finite() && wide(n);
        match (0..places.len()).find(|n| !sound(n)) {
            Some(row) => Err(row),
            None => Ok(Curve::new(places, &values, &slopes, [below, above])),
        }
    }
}
