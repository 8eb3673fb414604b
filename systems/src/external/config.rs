//! Defines the table `[external]`.

use nestar_deck::deck;

/// External gravity on all matter: a potential and additional accelerations, as formulas of x, y, z, r and t. Profiles
/// from files can be used as functions, such as `halo(r)` (see `[tables]`). It does not need self-gravity.
#[deck]
pub struct ExternalConfig {
    /// Potential, a formula. The acceleration is its central difference over one and two cells. The formula must
    /// therefore be finite up to two cells outside the domain.
    #[key(default = "0".into(), unit = "length**2/time**2")]
    pub potential: String,
    /// Additional acceleration along x, a formula.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_x: String,
    /// Additional acceleration along y.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_y: String,
    /// Additional acceleration along z.
    #[key(default = "0".into(), unit = "length/time**2")]
    pub acceleration_z: String,
    /// Order of the finite differences: 2 or 4.
    #[key(default = 4)]
    pub order: u8,
    /// Largest number of cell widths across which matter may be accelerated in a step, |a| dt^2 <= limit * width, by
    /// the acceleration at the start of the step; 0: no limit. Use `time.max_step` for forces that begin suddenly.
    #[key(default = 0.5, zero_or = 1e-12)]
    pub limit: f64,
}
