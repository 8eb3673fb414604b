//! Defines the table `[sources]`.

use nestar_deck::deck;

/// Accelerations and heating of the gas by formulas. Variables are those of refinement criteria: x, y, z, r, t (middle
/// of the step), level, width, and quantities and scalars of the gas (density, pressure, temperature, velocity_x,
/// speed, fraction_NAME …). Formulas are evaluated at the middle of the step, with
/// the gas quantities before the step.
#[deck]
pub struct SourcesConfig {
    /// Acceleration along x, a formula.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_x: String,
    /// Acceleration along y.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_y: String,
    /// Acceleration along z.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_z: String,
    /// Heating rate per volume, a formula; negative values cool. For a rate per mass, write `density * rate`.
    #[key(default = "0".into(), unit = "mass/(length*time**3)")]
    pub heating: String,
    /// Applies half of the sources before and half after the gas is advanced (Strang splitting, second order in time);
    /// `false`: all of them after.
    #[key(default = true)]
    pub split: bool,
    /// Largest number of cell widths across which gas may be accelerated in a step, |a| dt^2 <= limit * width; 0: no
    /// limit.
    #[key(default = 1.0, zero_or = 1e-12)]
    pub limit: f64,
}
