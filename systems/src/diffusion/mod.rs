//! Viscosity and heat conduction of the gas, by fluxes through faces.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers functions of faces and cells, from which the engine makes systems.

mod config;
mod faces;

pub use config::{ConductionConfig, ViscosityConfig};

use crate::fields::{Gas, GasModel};
use crate::register::Register;
use faces::{
    Conductivity, HeatLimit, Transport, conductive_limit, dual_conductive_limit, dual_heat_flux,
    dual_viscous_limit, heat_flux, magnetic_conductive_limit, magnetic_viscous_limit,
    viscous_and_heat_flux, viscous_flux, viscous_limit,
};
use nestar_engine::{Engine, Error, Plugin};

/// Plugin for the tables `[viscosity]` and `[conduction]`.
pub struct Diffusion {
    /// Courant number, which limits the steps of the explicit scheme too.
    pub courant: f64,
}

impl Plugin for Diffusion {
    fn name(&self) -> &str {
        "diffusion"
    }

    fn after(&self) -> &[&str] {
        &["hydro"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let [viscous, conductive] = ["viscosity", "conduction"].map(|table| sim.deck.has(table));
        let model = sim.world.resource::<GasModel>();
        let (frozen, gamma, dual) = (model.frozen, model.gamma, model.dual.is_some());
        let magnetic = model.magnetic.is_some();
        let (mut kinematic, mut conductivity) = (None, None);
        if viscous {
            let given: ViscosityConfig = sim.deck.table("viscosity")?;
            require_moving(sim, frozen, "viscosity")?;
            kinematic = Some(given.kinematic);
        }
        if conductive {
            let given: ConductionConfig = sim.deck.table("conduction")?;
            require_moving(sim, frozen, "conduction")?;
            conductivity = Some(given.conductivity(&sim.deck, gamma)?);
        }
        let courant = self.courant;
        if let Some(kinematic) = kinematic {
            let given = [kinematic, gamma, courant];
            match dual {
                false if magnetic => sim.limit::<Gas, magnetic_viscous_limit>("viscosity", given),
                false => sim.limit::<Gas, viscous_limit>("viscosity", given),
                true => sim.limit::<Gas, dual_viscous_limit>("viscosity", given),
            }
        }
        if let Some(kappa) = conductivity {
            let given = HeatLimit { kappa, courant };
            match dual {
                false if magnetic => {
                    sim.limit::<Gas, magnetic_conductive_limit>("conduction", given);
                }
                false => sim.limit::<Gas, conductive_limit>("conduction", given),
                true => sim.limit::<Gas, dual_conductive_limit>("conduction", given),
            }
        }
        register_fluxes(sim, kinematic, conductivity, dual);
        Ok(())
    }
}

/// Refuses gas that is not advanced.
fn require_moving(sim: &Engine, frozen: bool, table: &str) -> Result<(), Error> {
    if frozen {
        let why = format!("[{table}] needs gas that is not frozen: remove `hydro.frozen`");
        return Err(sim.deck.error_at(table, why).into());
    }
    Ok(())
}

/// Adds the fluxes: those of both processes together, unless both energies of the dual-energy formalism take heat.
fn register_fluxes(
    sim: &mut Engine,
    kinematic: Option<f64>,
    conductivity: Option<Conductivity<f64>>,
    dual: bool,
) {
    match (kinematic, conductivity) {
        (Some(kinematic), Some(conductivity)) if !dual => {
            sim.flux::<Gas, viscous_and_heat_flux>(Transport {
                kinematic,
                conductivity,
            });
        }
        (None, Some(conductivity)) if !dual => sim.flux::<Gas, heat_flux>(conductivity),
        _ => {
            if let Some(kinematic) = kinematic {
                sim.flux::<Gas, viscous_flux>([kinematic]);
            }
            if let Some(conductivity) = conductivity {
                sim.flux::<Gas, dual_heat_flux>(conductivity);
            }
        }
    }
}
