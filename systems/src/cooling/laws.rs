//! Cooling laws of programs.

use bevy_ecs::prelude::*;
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};
use std::collections::BTreeMap;
use std::sync::Arc;

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
