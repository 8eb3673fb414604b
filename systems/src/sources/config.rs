//! Defines the table `[sources]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accelerations and heating of the gas by formulas. Variables are those of refinement criteria: x, y, z, r, t (middle
/// of the step), level, width, and quantities and scalars of the gas (density, pressure, temperature, velocity_x,
/// speed, fraction_NAME …). Formulas are evaluated at the middle of the step, with
/// the gas quantities before the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourcesConfig {
    /// Acceleration along x, a formula.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_x: String,
    /// Acceleration along y.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_y: String,
    /// Acceleration along z.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_z: String,
    /// Heating rate per volume, a formula; negative values cool. For a rate per mass, write `density * rate`.
    #[schemars(extend("unit" = "mass/(length*time**3)"))]
    pub heating: String,
    /// Applies half of the sources before and half after the gas is advanced (Strang splitting, second order in time);
    /// `false`: all of them after.
    pub split: bool,
    /// Largest number of cell widths across which gas may be accelerated in a step, |a| dt^2 <= limit * width; 0: no
    /// limit.
    #[schemars(range(min = 0.0))]
    pub limit: f64,
}

impl Default for SourcesConfig {
    fn default() -> Self {
        let none = || String::from("0");
        Self {
            acceleration_x: none(),
            acceleration_y: none(),
            acceleration_z: none(),
            heating: none(),
            split: true,
            limit: 1.0,
        }
    }
}
