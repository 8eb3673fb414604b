//! Tabulated functions: the table `[tables]`.

use crate::formula::{Curve, Extrapolation, integrals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the table of functions.
pub(crate) const TABLES: &str = "tables";

/// Tabulated functions by name in the order of the deck, and their resolved tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct TabulatedFunctions {
    pub curves: Vec<(String, Arc<Curve>)>,
    pub resolved: toml::Table,
}

/// Tabulated functions of one argument, which formulas of the deck call by name, such as `halo(r)`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TablesConfig(pub BTreeMap<String, TableConfig>);

/// A list of numbers, or a formula of the columns of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TabulatedNumbers {
    /// A formula of the columns of the file, by name (`column_1`, `column_2`, … if the columns have no names).
    Formula(String),
    /// A list of numbers.
    List(Vec<f64>),
}

/// Method that computes slopes from the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Monotone between points: no overshoot (Fritsch & Butland 1984).
    #[default]
    Monotone,
    /// Cubic spline: continuous second derivative.
    Spline,
}

/// How a function continues below its first point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtrapolationBelow {
    /// Undefined: the run stops with an error that has the position.
    #[default]
    Refuse,
    /// Constant: the first number.
    Constant,
    /// Linear, with the slope at the point.
    Linear,
    /// a + b x^2, matched in value and slope: the potential in a homogeneous sphere.
    #[serde(rename = "core")]
    Square,
}

/// How a function continues above its last point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtrapolationAbove {
    /// Undefined: the run stops with an error that has the position.
    #[default]
    Refuse,
    /// Constant: the last number.
    Constant,
    /// Linear, with the slope at the point.
    Linear,
    /// a - b / x, matched in value and slope: the potential outside a sphere.
    #[serde(rename = "kepler")]
    Inverse,
}

/// A tabulated function of one argument with piecewise cubic interpolation and continuous slope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// Text file with columns of numbers, relative to the deck; without a file, `x` and `y` are lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Points x in ascending order.
    pub x: TabulatedNumbers,
    /// Values at the points, such as `potential` or `G*mass/radius^2`.
    pub y: TabulatedNumbers,
    /// Slopes at the points; computed from the values if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope: Option<TabulatedNumbers>,
    /// Method that computes slopes from the values.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// If `true`, the function is the integral of the values over x: 0 at
    /// the first point, or at infinity if `above` is "kepler".
    #[serde(default)]
    pub integral: bool,
    /// How the function continues below the first point.
    #[serde(default)]
    pub below: ExtrapolationBelow,
    /// How the function continues above the last point.
    #[serde(default)]
    pub above: ExtrapolationAbove,
}

impl TableConfig {
    /// Creates the function; fails with the row in which a width, slope or integral is not finite.
    pub(crate) fn curve(
        &self,
        points: &[f64],
        mut values: Vec<f64>,
        mut slopes: Vec<f64>,
    ) -> Result<Curve, usize> {
        if self.integral {
            let mut integrals = integrals(points, &values, &slopes);
            let last = points.len() - 1;
            if self.above == ExtrapolationAbove::Inverse {
                let zero = integrals[last] + values[last] * points[last];
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
            points
                .get(n + 1)
                .is_none_or(|next| (next - points[n]).is_finite())
        };
        let finite = |&n: &usize| values[n].is_finite() && slopes[n].is_finite() && wide(n);
        match (0..points.len()).find(|n| !finite(n)) {
            Some(row) => Err(row),
            None => Ok(Curve::new(points, &values, &slopes, [below, above])),
        }
    }
}
