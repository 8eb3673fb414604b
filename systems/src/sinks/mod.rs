//! Sink particles: gas that collapses below the resolution of the mesh becomes particles that accrete more gas.
//!
//! All ranks know all sinks of the finest level and the gas around them (`volumes.rs`), and take the same decisions: where sinks form
//! (`formation.rs`), what they accrete and which merge (`accretion.rs`). Each rank then changes its own cells and particles. A rule
//! (`rules.rs`) is two functions. Sinks form and accrete after the drift of the particles, at the end of a step. `diagnostics.rs` does
//! not exist: the columns are those of a budget.

mod accretion;
mod cells;
mod config;
mod formation;
mod rules;
mod systems;
mod volumes;

pub use config::SinksConfig;
pub use rules::{
    FormingSink, SinkCell, SinkRule, SinkRules, SinkState, bound_excess, is_collapsing,
};

use crate::births::{ParticlesOnDemand, SpeciesMap};
use crate::fields::{Gas, GasModel, GravitationalConstant, Potential};
use crate::order::Advance;
use crate::register::Register;
use accretion::Threshold;
use cells::dense_minimum;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::data::{Field, Pool};
use nestar_engine::mesh::Topology;
use nestar_engine::step::Catalogue;
use nestar_engine::{Engine, Error, Plugin};
use systems::{
    LevelSinks, SinkColumns, SinkSettings, TAKEN, accrete, find_forming_sinks, gather_sinks,
};

/// Plugin for the table `[sinks]`.
pub struct Sinks;

impl Plugin for Sinks {
    fn name(&self) -> &str {
        "sinks"
    }

    fn after(&self) -> &[&str] {
        &["particles", "cooling", "chemistry", "star_formation"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.world.init_resource::<SinkRules>();
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("sinks") {
            return Ok(());
        }
        let config: SinksConfig = sim.deck.table("sinks")?;
        let rules = sim.world.resource::<SinkRules>().clone().0;
        let words: Vec<&str> = rules.iter().map(|(word, _)| *word).collect();
        config.check(sim, &words)?;
        let Some(&(_, rule)) = rules.iter().find(|(word, _)| *word == config.rule) else {
            return Ok(());
        };
        sim.allow_births(&config.species)?;
        let model = sim.world.resource::<GasModel>();
        let species = sim.world.resource::<SpeciesMap>();
        let own = species.named(&config.species)?;
        let columns = SinkColumns::of(&own.scalars, &model.scalars);
        let gravity = sim.world.resource::<GravitationalConstant>().0;
        let topology = sim.world.resource::<Topology>();
        let width = topology.domain.cell_width(topology.max_level);
        let widest = width.into_iter().fold(0.0, f64::max);
        let length = config.jeans_cells.map(|cells| cells * widest);
        let threshold = Threshold::new(config.density, length, gravity, model.gamma);
        let budget = sim.register_budget("sinks", &TAKEN)?;
        let accreted = format!("sinks_{}", TAKEN[0]);
        DiagnosticColumns::set_units(&mut sim.world, accreted, "mass");
        let forms = config.form;
        sim.world.insert_resource(SinkSettings {
            config,
            rule,
            threshold,
            gravity,
            budget,
            columns,
        });
        sim.world.init_resource::<LevelSinks>();
        if forms {
            sim.selection().prepare::<(Potential, Gas)>(
                "dense_minimum",
                Pool::prepare_collect::<dense_minimum>,
            );
            sim.chain_in(
                Advance::Predict,
                (gather_sinks, find_forming_sinks, accrete),
            );
        } else {
            sim.chain_in(Advance::Predict, (gather_sinks, accrete));
        }
        let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
        catalogue
            .add("source", "sinks", "Sink particles that accrete gas.")
            .of(Gas::NAME);
        Ok(())
    }
}
