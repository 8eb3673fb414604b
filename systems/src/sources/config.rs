//! The table `[sources]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accelerations and heating of the gas by formulas. They may name what refinement criteria may: x, y, z, r, t (the middle of the
/// step at hand), level, width, the gas's quantities and its scalars (density, pressure, temperature, velocity_x, speed,
/// fraction_NAME …). Second order in time where they depend on place and time; what they make of the gas's state is taken from
/// before the step.
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
    /// Energy that a volume gains in a time, a formula; cooling is negative. Of a rate by mass, write `density * rate`.
    #[schemars(extend("unit" = "mass/(length*time**3)"))]
    pub heating: String,
    /// Whether half of a step's sources act before the gas moves and half after it (Strang), which is of second order in time;
    /// otherwise all of them act after it.
    pub split: bool,
    /// Most widths of a cell through which gas may be accelerated in a step, |a| dt^2 <= limit * width; 0: no limit.
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
