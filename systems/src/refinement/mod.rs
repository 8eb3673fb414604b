//! Adaptive refinement: which cells want a finer mesh.

pub mod columns;
mod compiled;
pub mod config;
mod device;
pub mod systems;
mod text;

pub use config::{Criterion, MeshConfig};

use crate::fields::GasModel;
use crate::order::Flag;
use nestar_engine::field::FaultBox;
use nestar_engine::{Engine, Error, Plugin};
use systems::Criteria;

/// The plugin: compiles the criteria of the mesh table and flags patches with them. Add it behind the gas.
pub struct Refinement {
    /// The table `[mesh]`.
    pub config: MeshConfig,
}

impl Plugin for Refinement {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let model = sim.world.resource::<GasModel>().clone();
        let faults = sim.world.resource::<FaultBox>().clone();
        let criteria = Criteria::compile(&self.config, &sim.deck, &model, faults)?;
        sim.world.insert_resource(criteria);
        sim.system_in(Flag::Criteria, systems::flag);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
