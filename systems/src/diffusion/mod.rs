//! Viscosity and heat conduction of the gas, by fluxes through faces.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers functions of faces and cells, from which the engine makes systems.

mod config;
mod faces;

pub use config::{Coefficients, ConductionConfig, ViscosityConfig};

use crate::fields::{Gas, GasModel};
use crate::register::Register;
use faces::{
    conductive_limit, dual_heat_flux, heat_flux, viscous_and_heat_flux, viscous_flux, viscous_limit,
};
use nestar_engine::{Engine, Error, Plugin};

/// Plugin for the tables `[viscosity]` and `[conduction]`.
pub struct Diffusion {
    /// Courant number, which limits the steps of the explicit scheme too.
    pub courant: f64,
}

/// Tables of the plugin.
const TABLES: [&str; 2] = ["viscosity", "conduction"];

impl Plugin for Diffusion {
    fn name(&self) -> &str {
        "diffusion"
    }

    fn after(&self) -> &[&str] {
        &["hydro"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let given = TABLES.map(|table| sim.deck.has(table));
        if given == [false; 2] {
            return Ok(());
        }
        let model = sim.world.resource::<GasModel>();
        let (frozen, gamma, dual) = (model.frozen, model.gamma, model.dual.is_some());
        let coefficients = Coefficients::read(&mut sim.deck, gamma)?;
        if let (true, Some(table)) = (frozen, TABLES.iter().find(|table| sim.deck.has(table))) {
            let why = format!("[{table}] needs gas that is not frozen: remove `hydro.frozen`");
            return Err(sim.deck.error_at(table, why).into());
        }
        let [viscous, conductive] = given;
        register_limits(sim, &coefficients, given, self.courant);
        let Coefficients {
            kinematic,
            conductivity,
            per_density,
            gamma,
        } = coefficients;
        match (viscous, conductive, dual) {
            (true, true, false) => {
                let all = [kinematic, conductivity, per_density, gamma];
                sim.flux::<Gas, viscous_and_heat_flux>(all);
            }
            (false, true, false) => {
                sim.flux::<Gas, heat_flux>([conductivity, per_density, gamma]);
            }
            (true, _, _) => sim.flux::<Gas, viscous_flux>([kinematic]),
            (false, _, _) => {}
        }
        if conductive && dual {
            sim.flux::<Gas, dual_heat_flux>([conductivity, per_density, gamma]);
        }
        Ok(())
    }
}

/// Adds the limits of the time step.
fn register_limits(
    sim: &mut Engine,
    coefficients: &Coefficients,
    [viscous, conductive]: [bool; 2],
    courant: f64,
) {
    let gamma = coefficients.gamma;
    if viscous {
        let own = [coefficients.kinematic, gamma, courant];
        sim.limit::<Gas, viscous_limit>("viscosity", own);
    }
    if conductive {
        let (constant, per_density) = (coefficients.conductivity, coefficients.per_density);
        let own = [constant, per_density, gamma, courant];
        sim.limit::<Gas, conductive_limit>("conduction", own);
    }
}
