//! Adaptive mesh refinement criteria.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the only system flags patches and is in `criteria.rs`, and the engine
//! counts patches.

pub mod config;
pub mod criteria;

pub use config::{Criterion, MeshConfig};

use crate::fields::{Gas, GasModel};
use crate::order::Flag;
use criteria::Criteria;
use nestar_engine::{Engine, Error, Plugin};

/// Plugin that compiles the criteria of the table `[mesh]` and flags patches.
pub struct Refinement {
    /// The table `[mesh]`.
    pub config: MeshConfig,
}

impl Plugin for Refinement {
    fn name(&self) -> &str {
        "refinement"
    }

    fn after(&self) -> &[&str] {
        &["hydro"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let model = sim.world.resource::<GasModel>().clone();
        let criteria = Criteria::compile(&self.config, &sim.deck, &model)?;
        let reach = criteria.0.reach();
        sim.world.insert_resource(criteria);
        sim.system_in(Flag::Criteria, criteria::flag_by_criteria)
            .halo_width::<Gas>(reach);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
