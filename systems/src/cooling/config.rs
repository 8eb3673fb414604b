//! Defines the table `[cooling]`.

use nestar_deck::deck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of the cooling rates: a name, a file or power laws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RatesConfig {
    /// `koyama-inutsuka`, the name of a cooling law of the program, or a file relative to the deck. The file is text
    /// (`.csv`, with columns `temperature_k` and `lambda`) or a Zarr group (`.zarr`).
    Named(String),
    /// Power laws.
    Laws(LawsConfig),
}

/// Cooling rate as piecewise power laws of the temperature.
#[deck]
pub struct LawsConfig {
    /// Temperatures, in ascending order.
    #[key(unit = "K")]
    pub temperature_k: Vec<f64>,
    /// Cooling rates at these temperatures.
    #[key(unit = "erg*cm**3/s")]
    pub lambda: Vec<f64>,
    /// Exponent above each temperature. Default: power laws through the values, extrapolated at both ends.
    #[key(default = Vec::new())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exponent: Vec<f64>,
}

/// Radiative cooling and heating by tables over temperature, density and metallicity, integrated exactly between table
/// nodes for any step length. Needs a table `[units]`. With a table `[chemistry]` it adds only the contribution of
/// metals.
#[deck]
pub struct CoolingConfig {
    /// Source of the rates.
    #[key(default = RatesConfig::Named("koyama-inutsuka".into()))]
    pub table: RatesConfig,
    /// Mass fraction of hydrogen: rates are per hydrogen nucleus.
    #[key(default = 0.76, above = 0.0, max = 1.0)]
    pub hydrogen_fraction: f64,
    /// Mean molecular weight, if the table has none: 0.6 for ionised gas of cosmic composition, 1.27 for neutral gas.
    /// Without `[chemistry]` it equals `hydro.mean_molecular_weight`; give only one of the two.
    #[key(default = 0.6, above = 0.0)]
    pub mean_molecular_weight: f64,
    /// Metallicity in solar units (0.01295 by mass), for gas without a scalar `metal`, if the rates depend on it.
    #[key(default = 1.0, min = 0.0)]
    pub metallicity: f64,
    /// Temperature floor: gas does not cool below it, and colder gas is heated to it.
    #[key(default = 10.0, unit = "K", above = 0.0)]
    pub floor_k: f64,
    /// Highest temperature of the table, if the rates extend so far; rates are extrapolated for hotter gas.
    #[key(default = 1e9, unit = "K", above = 0.0)]
    pub top_k: f64,
    /// Redshift at which the table is read, and of the microwave background.
    #[key(default = 0.0, min = 0.0)]
    pub redshift: f64,
    /// Subtracts the rate at the temperature of the microwave background, 2.725 (1 + redshift) K, so that gas is in
    /// equilibrium with it.
    #[key(default = false)]
    pub background: bool,
    /// Heating rate in addition to the table: a number or a formula, as in `[sources]`.
    #[key(default = "0".into(), unit = "erg/s/hydrogen nucleus")]
    #[serde(deserialize_with = "crate::fields::quantities::text")]
    #[schemars(schema_with = "crate::fields::quantities::number_or_formula")]
    pub heating: String,
    /// Photo-electric heating rate by dust in gas colder than 2e4 K; 8.5e-26 in the solar neighbourhood.
    #[key(default = 0.0, unit = "erg/s/hydrogen nucleus", min = 0.0, max = 1e-10)]
    pub photoelectric: f64,
    /// Pressure floor that keeps the Jeans length above this number of cells of the finest level, p >= N^2 G rho^2
    /// dx^2/(gamma pi); 0: off. A common value is 4.
    #[key(default = 0.0, min = 0.0)]
    pub jeans_cells: f64,
    /// Limits the time step to this fraction of the cooling time or of the thermal response time, whichever is shorter;
    /// 0: no limit (the exact integration does not need one). The cooling time is the energy over the sum of the
    /// absolute cooling and heating rates; the response time is that of a small temperature perturbation at constant
    /// density. Both are finite in equilibrium. Gas at a floor is not limited.
    #[key(default = 0.0, zero_or = 1e-6)]
    pub courant: f64,
    /// Applies half of the cooling before and half after the gas is advanced (Strang splitting, second order in time);
    /// `false`: all of it after.
    #[key(default = false)]
    pub split: bool,
    /// Refines cells if sound crosses fewer cells than this in a cooling time; 0: off.
    #[key(default = 0.0, min = 0.0)]
    pub length_cells: f64,
    /// Table nodes per factor of 2 in temperature. Rates of a file or of power laws keep their own nodes, and where these
    /// are far apart, nodes are added.
    #[key(default = 8, min = 1, max = 64)]
    pub nodes: u32,
    /// Table nodes per factor of 2 in density, for rates that depend on it.
    #[key(default = 2, min = 1, max = 16)]
    pub density_nodes: u32,
    /// Range of densities over which a cooling law of the program is tabulated; rates are constant outside it.
    #[key(default = [1e-6, 1e6], unit = "hydrogen nuclei/cm**3", above = 0.0)]
    pub densities_cm3: [f64; 2],
}
