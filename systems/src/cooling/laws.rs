//! Laws of cooling that programs bring.

use bevy_ecs::prelude::*;
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the built-in law.
pub(super) const KOYAMA_INUTSUKA: &str = "koyama-inutsuka";

/// What gas loses and gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoolingRates {
    /// Lambda, erg cm^3/s: times the squared number of hydrogen nuclei per volume, the energy radiated by volume and time.
    pub cooling: f64,
    /// Gamma, erg/s per hydrogen nucleus.
    pub heating: f64,
}

/// A law: rates by hydrogen nuclei per cubic centimetre, temperature in kelvin and metallicity in solar units.
pub(super) type Law = Arc<dyn Fn(f64, f64, f64) -> CoolingRates + Send + Sync>;

/// The laws of the program, by name.
#[derive(Resource, Clone, Default)]
pub(super) struct Laws(pub BTreeMap<String, Law>);

/// For plugins with a law of cooling of their own.
pub trait CoolingLaws {
    /// Lets decks choose a law, `cooling.table = "name"`: `law` gives the rates of gas with so many hydrogen nuclei per cubic centimetre, a temperature in
    /// kelvin and a metallicity in solar units. It is called while the run begins, on the host and in double precision, at the nodes of a table
    /// (`cooling.nodes`, `density_nodes`, `densities_cm3`), by which all cells then cool, on any device. Call it in `Plugin::declare`.
    ///
    /// # Errors
    /// The name is taken.
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
        let mut laws = self.world.get_resource_or_init::<Laws>();
        let taken = laws.0.insert(name.into(), Arc::new(law)).is_some();
        if taken || name == KOYAMA_INUTSUKA {
            return Err(Error::Setup(format!(
                "the law of cooling {name:?} is there already: give yours another name"
            )));
        }
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        catalogue.add("cooling law", name, "A law of cooling: `cooling.table`.");
        Ok(())
    }
}
