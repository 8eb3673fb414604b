//! Gas with the random perturbations of the table `[perturbations]` in an expanding universe.

use nestar_deck::deck;
use nestar_device::math::pow;
use nestar_engine::{Engine, Error};
use nestar_systems::fields::{
    GasModel, GasUnits, InitialPerturbations, PerturbationField, PerturbedMatter,
};
use nestar_systems::hydro::{InitialState, Primitive, PrimitiveColumns};
use std::sync::Arc;

/// Gas that follows the perturbations of the table `[perturbations]`. Its temperature is adiabatic.
#[deck]
pub struct Cosmological {
    /// Mean density of the gas over that of all matter. Default: the share of baryons if the deck has particles, otherwise 1; with frozen gas
    /// 1e-12, so that it attracts nothing.
    #[key(above = 0.0, max = 1.0)]
    pub gas: Option<f64>,
    /// Temperature at the mean density. Default: that of gas that has cooled by the expansion since redshift 136, when it decoupled from the
    /// microwave background.
    #[key(unit = "K", above = 0.0)]
    pub temperature_k: Option<f64>,
}

/// Density of frozen gas over that of all matter.
const NEGLIGIBLE: f64 = 1e-12;

/// Returns the perturbed gas of the deck.
pub(crate) fn gas(sim: &mut Engine, name: &str) -> Result<Box<dyn InitialState>, Error> {
    let config: Cosmological = sim.deck.table(name)?;
    let Some(perturbations) = sim.world.get_resource::<InitialPerturbations>() else {
        let why = "scenario = \"cosmological\" needs the tables [cosmology] and [perturbations]: add them";
        return Err(sim.deck.error_at("scenario", why).into());
    };
    let field = perturbations.0.clone();
    field.prepare(&sim.deck, PerturbedMatter::Gas)?;
    let model = sim.world.resource::<GasModel>();
    let density = config.gas.unwrap_or(match sim.deck.has("particles") {
        _ if model.frozen => NEGLIGIBLE,
        true => field.gas_share(),
        false => 1.0,
    });
    let kelvin = model
        .physical
        .as_ref()
        .map_or(1.0, GasUnits::initial_kelvin);
    let temperature = config.temperature_k.unwrap_or(field.temperature_k());
    Ok(Box::new(PerturbedGas {
        field,
        density,
        pressure: density * temperature / kelvin,
        gamma: model.gamma,
    }))
}

/// Gas with perturbations.
struct PerturbedGas {
    field: Arc<dyn PerturbationField>,
    /// Density and pressure where there is no perturbation.
    density: f64,
    pressure: f64,
    gamma: f64,
}

impl InitialState for PerturbedGas {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        let level = columns.level;
        for n in 0..columns.len() {
            let point = columns.point(n);
            let contrast = 1.0 + self.field.overdensity(point, level);
            columns.states[n] = Primitive {
                density: self.density * contrast,
                velocity: self.field.flow(point, level),
                pressure: self.pressure * pow(contrast, self.gamma),
            };
        }
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(Vec::new())
    }
}
