//! Adaptive mesh refinement criteria.

pub mod config;
pub mod criteria;

pub use config::{Criterion, MeshConfig};

use crate::fields::{Gas, GasModel};
use crate::order::Flag;
use criteria::Criteria;
use nestar_engine::{Engine, Error, Plugin};

/// Plugin that compiles the criteria of the table `[mesh]` and flags patches. Add it after the gas.
pub struct Refinement {
    /// The table `[mesh]`.
    pub config: MeshConfig,
}

impl Plugin for Refinement {
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
