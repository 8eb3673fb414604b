//! Cooling rates and their range of validity.

use nestar_kernels::cooling::RateFunctions;
use nestar_kernels::cooling::laws::PowerLaws;
use nestar_kernels::cooling::tabulate::MolecularWeight;

/// Largest plausible rate, erg cm^3/s or erg/s per hydrogen nucleus: larger values are probably logarithms.
const LARGEST: f64 = 1e-10;

/// Returns why a value of a table is no rate of cooling or heating, `None` if it may be one.
pub(super) fn implausible(value: f64) -> Option<String> {
    match value {
        _ if value.abs() <= LARGEST && value >= 0.0 => None,
        _ if value.abs() <= LARGEST => {
            Some("negative: cooling and heating are both rates from 0 on".into())
        }
        _ => Some(format!(
            "beyond the largest plausible rate {LARGEST:e}: give rates, not logarithms"
        )),
    }
}

/// Rates, their range, and their dependence on metals.
pub(super) struct RateSource {
    pub rates: RateFunctions<'static>,
    /// Temperatures between which the rates are power laws, in kelvin; empty: rates by a formula or one power law.
    pub nodes: Vec<f64>,
    /// `true` if there is heating.
    pub heats: bool,
    /// Range of temperatures, in kelvin.
    pub known: [f64; 2],
    /// Range of hydrogen number densities, cm^-3; `None`: the rates do not depend on density.
    pub densities: Option<[f64; 2]>,
    /// Range of metallicities of a table that has such an axis.
    pub metals: [f64; 2],
    /// Metallicities between which the rates are linear; fewer than two: no dependence on metals.
    pub metallicities: Vec<f64>,
    /// Largest metallicity.
    pub richest: f64,
}

impl RateSource {
    /// Rates by formulas that depend on temperature only.
    pub fn plain(cooling: impl Fn(f64) -> f64 + Send + Sync + 'static, heating: f64) -> Self {
        Self {
            rates: RateFunctions {
                cooling: Box::new(move |_, t, _| cooling(t)),
                heating: Box::new(move |_, _, _| heating),
                weight: MolecularWeight::Fixed(1.0),
            },
            nodes: Vec::new(),
            heats: heating != 0.0,
            known: [0.0, f64::INFINITY],
            densities: None,
            metals: [0.0, f64::INFINITY],
            metallicities: Vec::new(),
            richest: 0.0,
        }
    }

    /// Cooling rates that are power laws of the temperature.
    pub fn of_power_laws(laws: PowerLaws) -> Self {
        Self {
            nodes: laws.nodes(),
            ..Self::plain(move |t| laws.at(t), 0.0)
        }
    }

    /// Returns the contribution of metals; `None` if the rates do not depend on metals or are not known for zero
    /// metallicity.
    pub fn of_metals(self) -> Option<Self> {
        if self.metallicities.len() < 2 || self.metals[0] > 0.0 {
            return None;
        }
        let RateFunctions {
            cooling,
            heating,
            weight,
        } = self.rates;
        let rates = RateFunctions {
            cooling: Box::new(move |n, t, z| cooling(n, t, z) - cooling(n, t, 0.0)),
            heating: Box::new(move |n, t, z| heating(n, t, z) - heating(n, t, 0.0)),
            weight,
        };
        Some(Self { rates, ..self })
    }
}
