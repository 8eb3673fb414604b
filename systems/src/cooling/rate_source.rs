//! Cooling rates, their range of validity, and cooling laws of programs.

use crate::fields::quantities::LARGEST_RATE;
use bevy_ecs::prelude::*;
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};
use nestar_kernels::cooling::RateFunctions;
use nestar_kernels::cooling::laws::PowerLaws;
use nestar_kernels::cooling::tabulate::MolecularWeight;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns why a value of a table is no rate of cooling or heating, `None` if it may be one.
pub(super) fn implausible(value: f64) -> Option<String> {
    match value {
        _ if value.abs() <= LARGEST_RATE && value >= 0.0 => None,
        _ if value.abs() <= LARGEST_RATE => {
            Some("negative: cooling and heating are both rates from 0 on".into())
        }
        _ => Some(format!(
            "beyond the largest plausible rate {LARGEST_RATE:e}: give rates, not logarithms"
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

/// Name of the built-in law.
pub(super) const KOYAMA_INUTSUKA: &str = "koyama-inutsuka";

/// Cooling and heating rate of gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoolingRates {
    /// Lambda, erg cm^3/s: radiated power per volume over the squared number density of hydrogen nuclei.
    pub cooling: f64,
    /// Gamma, erg/s per hydrogen nucleus.
    pub heating: f64,
}

/// A law: rates as a function of hydrogen number density (cm^-3), temperature (kelvin) and metallicity (solar units).
pub(super) type Law = Arc<dyn Fn(f64, f64, f64) -> CoolingRates + Send + Sync>;

/// Cooling laws of the program, by name.
#[derive(Resource, Clone, Default)]
pub(super) struct CoolingLawMap(pub BTreeMap<String, Law>);

/// Adds cooling laws.
pub trait CoolingLaws {
    /// Adds a cooling law that decks select by `cooling.table = "name"`: `law` returns the rates for a number density
    /// of hydrogen nuclei (cm^-3), a temperature (kelvin) and a metallicity (solar units). The law is
    /// tabulated at the start of a run, in double precision, at the nodes set by `cooling.nodes`, `density_nodes` and
    /// `densities_cm3`. Cells use the table. Call it in `Plugin::declare`.
    ///
    /// # Errors
    /// The name is in use.
    fn cooling_law(
        &mut self,
        name: &str,
        law: impl Fn(f64, f64, f64) -> CoolingRates + Send + Sync + 'static,
    ) -> Result<(), Error>;
}

impl CoolingLaws for Engine {
    fn cooling_law(
        &mut self,
        name: &str,
        law: impl Fn(f64, f64, f64) -> CoolingRates + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let mut laws = self.world.get_resource_or_init::<CoolingLawMap>();
        let taken = laws.0.insert(name.into(), Arc::new(law)).is_some();
        if taken || name == KOYAMA_INUTSUKA {
            return Err(Error::Setup(format!(
                "the name {name:?} of a cooling law is in use: choose another name"
            )));
        }
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        catalogue.add("cooling law", name, "A cooling law for `cooling.table`.");
        Ok(())
    }
}
