//! The table `[external]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands outside the simulation and acts on all matter in it: a potential, and accelerations that have none, as formulas of x, y,
/// z, r and t. Profiles from files are functions in them, such as `halo(r)`: see `[tables]`. Self-gravity is not needed for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalConfig {
    /// Potential, a formula: matter is accelerated by the central difference of its values one and two cells away, also beyond the faces of
    /// the domain (walls and periodic ones too), where the formula must be a number.
    #[schemars(extend("unit" = "length**2/time**2"))]
    pub potential: String,
    /// Further acceleration along x, a formula.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_x: String,
    /// Further acceleration along y.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_y: String,
    /// Further acceleration along z.
    #[schemars(extend("unit" = "length/time**2"))]
    pub acceleration_z: String,
    /// Order of the differences: 2 or 4.
    pub order: u8,
    /// Most widths of a cell through which matter may be accelerated in a step, |a| dt^2 <= limit * width, by the acceleration at its begin; 0:
    /// no limit. Bound what sets in suddenly by time.max_step.
    #[schemars(range(min = 0.0))]
    pub limit: f64,
}

impl Default for ExternalConfig {
    fn default() -> Self {
        let none = || String::from("0");
        Self {
            potential: none(),
            acceleration_x: none(),
            acceleration_y: none(),
            acceleration_z: none(),
            order: 4,
            limit: 0.5,
        }
    }
}
