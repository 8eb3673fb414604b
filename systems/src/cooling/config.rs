//! The table `[cooling]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Laws of cooling: a name or file, or power laws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RatesConfig {
    /// `koyama-inutsuka`, the name of a law of the program, a text file (`.csv`, with columns `temperature_k` and `lambda`) or a Zarr group (`.zarr`),
    /// relative to the deck.
    Named(String),
    /// Power laws.
    Laws(LawsConfig),
}

/// Cooling as power laws of the temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LawsConfig {
    /// Temperatures, ascending.
    #[schemars(extend("unit" = "K"))]
    pub temperature_k: Vec<f64>,
    /// Cooling there.
    #[schemars(extend("unit" = "erg*cm**3/s"))]
    pub lambda: Vec<f64>,
    /// Exponent above each temperature; absent: the lines through the values in logarithms, continued beyond them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exponent: Vec<f64>,
}

/// Radiative cooling and heating of gas, by tables over temperature, density and metallicity: exact between their nodes for any step. Needs `[units]`. With a table
/// `[chemistry]` it adds what metals do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoolingConfig {
    /// Where the rates come from.
    pub table: RatesConfig,
    /// Mass fraction of hydrogen: rates are by hydrogen nucleus.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub hydrogen_fraction: f64,
    /// Mean molecular weight, where the table has none: 0.6 for ionised gas of cosmic composition, 1.27 for neutral gas. Without
    /// `[chemistry]` it is that of `hydro.mean_molecular_weight`, of which one key is enough.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub mean_molecular_weight: f64,
    /// Metallicity in units of the sun's (0.01295 by mass), for gas without a scalar `metal`, where the rates depend on it.
    #[schemars(range(min = 0.0))]
    pub metallicity: f64,
    /// Lowest temperature of the gas: nothing cools below it, and what is below it is raised to it.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "K"))]
    pub floor_k: f64,
    /// Highest temperature of the table, if its rates are known so far: hotter gas cools and is heated at rates that are continued as they end.
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "K"))]
    pub top_k: f64,
    /// Redshift at which a table is read, and of the cosmic microwave background.
    #[schemars(range(min = 0.0))]
    pub redshift: f64,
    /// Whether gas is in balance with the cosmic microwave background at 2.725 (1 + redshift) K: the rate there is subtracted.
    pub background: bool,
    /// Heating beside the table's, a number or a formula of the gas and its place, as in `[sources]`.
    #[serde(deserialize_with = "crate::fields::rates::text")]
    #[schemars(schema_with = "crate::fields::rates::number_or_formula", extend("unit" = "erg/s/hydrogen nucleus"))]
    pub heating: String,
    /// Photo-electric heating by dust of gas colder than 2e4 K; 8.5e-26 around the sun.
    #[schemars(extend("unit" = "erg/s/hydrogen nucleus"), range(min = 0.0))]
    pub photoelectric: f64,
    /// Cells of the finest level that a Jeans length has at least: the pressure is p >= N^2 G rho^2 dx^2/(gamma pi); 0: no such floor. 4 is usual.
    #[schemars(range(min = 0.0))]
    pub jeans_cells: f64,
    /// Limits the step to this part of the time in which cooling and heating together, each counted by itself, would change the energy of gas above the
    /// floors by all of it, or a small difference of temperature grows or decays at constant density, whichever is shorter: both stay finite in balance.
    /// 0: no limit, which the solution in a cell does not need.
    #[schemars(range(min = 0.0))]
    pub courant: f64,
    /// Whether half of a step's heating and cooling acts before the gas moves and half after it (Strang), which is of second order in time;
    /// otherwise all of it acts after it.
    pub split: bool,
    /// Refines where sound crosses fewer cells than this in the time in which gas cools; 0: nowhere.
    #[schemars(range(min = 0.0))]
    pub length_cells: f64,
    /// Nodes within a factor of 2 of temperature.
    #[schemars(range(min = 1, max = 64))]
    pub nodes: u32,
    /// Nodes within a factor of 2 of density, for rates that depend on it.
    #[schemars(range(min = 1, max = 16))]
    pub density_nodes: u32,
    /// Densities between which a law of the program is tabulated; beyond them it stays.
    #[schemars(extend("unit" = "hydrogen nuclei/cm**3", "exclusiveMinimum" = 0.0))]
    pub densities_cm3: [f64; 2],
}

impl Default for CoolingConfig {
    fn default() -> Self {
        Self {
            table: RatesConfig::Named("koyama-inutsuka".into()),
            hydrogen_fraction: 0.76,
            mean_molecular_weight: 0.6,
            metallicity: 1.0,
            floor_k: 10.0,
            top_k: 1e9,
            redshift: 0.0,
            background: false,
            heating: "0".into(),
            photoelectric: 0.0,
            jeans_cells: 0.0,
            courant: 0.0,
            split: false,
            length_cells: 0.0,
            nodes: 8,
            density_nodes: 2,
            densities_cm3: [1e-6, 1e6],
        }
    }
}
