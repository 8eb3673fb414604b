//! Spheres in equilibrium: collisionless particles and hydrostatic gas around a centre.
//!
//! A [`Profile`] is a density as a function of radius. A [`Sphere`] is a component of particles with
//! isotropic velocities in equilibrium in the total potential; [`HydrostaticGas`] is a component supported by
//! pressure. [`Disc`] and [`GasDisc`] are exponential discs of particles and of gas around the same centre. An [`Orbit`] places two spheres relative to each other. All values are in code units and have the
//! same bits on every machine. [`NamedSpheres`] holds the spheres of a deck.
//!
//! The plugin registers neither systems nor columns, so there are no `systems.rs` and `diagnostics.rs`.

mod config;
mod density_table;
mod discs;
mod distribution;
mod entropy;
mod error;
mod named_spheres;
mod profile;
mod radial_function;
mod sphere;

pub use config::{
    Ambient, DiscConfig, EncounterConfig, EntropyConfig, GasConfig, GasDiscConfig, ProfileConfig,
    SphereConfig, SpheresConfig,
};
pub use discs::{Disc, DiscMotion, DiscShape, GalaxyForce, GasDisc, GasDiscState, Medium};
pub use entropy::Entropy;
pub use error::SphereError;
pub use named_spheres::{Centre, Component, NamedSpheres, Orbit};
pub use profile::Profile;
pub use sphere::{HydrostaticGas, Sphere, UNIFORMS};

use crate::fields::{GasModel, GravitationalConstant};
use nestar_engine::{Engine, Error, Plugin};

/// Plugin that reads the tables `[spheres]` and `[encounter]` into the resource [`NamedSpheres`]. Plugins
/// that use the spheres come after it.
pub struct Spheres;

impl Plugin for Spheres {
    fn name(&self) -> &str {
        "spheres"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "gravity"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let deck = &mut sim.deck;
        if !deck.has("spheres") {
            return match deck.has("encounter") {
                true => {
                    let why = "[encounter] needs a table [spheres]";
                    Err(deck.error_at("encounter", why).into())
                }
                false => Ok(()),
            };
        }
        let Some(gravity) = sim.world.get_resource::<GravitationalConstant>() else {
            let why =
                "[spheres] needs a table [gravity]: spheres are in equilibrium by self-gravity";
            return Err(deck.error_at("spheres", why).into());
        };
        let gamma = sim.world.get_resource::<GasModel>().map(|gas| gas.gamma);
        let spheres = NamedSpheres::of(deck, gravity.0, gamma.unwrap_or(5.0 / 3.0))?;
        sim.world.insert_resource(spheres);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
