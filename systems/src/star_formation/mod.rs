//! Star formation: dense gas becomes particles.
//!
//! `cells.rs` has the rule, a function that returns a star for some cells. The stars are born after the drift of the particles of
//! a level, at the end of its step; the gas of their cells decreases by the same mass, momentum, energy and scalars. A star stands
//! in the centre of its cell, where its cloud has the density that the gas loses, so that the potential stays.

mod cells;
mod config;
mod diagnostics;
mod systems;

pub use cells::{FormingStar, StarMasses, form_star};
pub use config::StarFormationConfig;
pub use systems::StarBirths;

use crate::births::ParticlesOnDemand;
use crate::fields::quantities::{compile, vocabulary};
use crate::fields::{Gas, GasFloors, GasModel, GravitationalConstant};
use crate::order::Advance;
use crate::register::Register;
use crate::units::Units;
use cells::{SchmidtRule, VelocityRule, gathering_gas, schmidt_stars};
use nestar_deck::DeckError;
use nestar_engine::data::criteria::CellQuantity;
use nestar_engine::data::{DerivedInputs, Parameters, Pool};
use nestar_engine::mesh::Topology;
use nestar_engine::step::{Catalogue, Remarks};
use nestar_engine::{Engine, Error, Plugin};
use std::f64::consts::PI;
use std::sync::Arc;
use systems::{GatheringCells, StarFormationRule, find_gathering_gas, form_stars};

/// Plugin for the table `[star_formation]`.
pub struct StarFormation;

impl Plugin for StarFormation {
    fn name(&self) -> &str {
        "star_formation"
    }

    fn after(&self) -> &[&str] {
        &["particles", "cooling", "chemistry"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("star_formation") {
            return Ok(());
        }
        let config: StarFormationConfig = sim.deck.table("star_formation")?;
        config.check(sim)?;
        sim.allow_births(&config.species)?;
        let model = sim.world.resource::<GasModel>().clone();
        let numbers = Arc::new(numbers(sim, &config, &model)?);
        let parameters = parameters(sim, &config)?;
        remark_on_resolution(sim, &config, &model);
        sim.with_numbers(&numbers)
            .prepare::<Gas>("schmidt_stars", Pool::prepare_collect::<schmidt_stars>);
        sim.world.insert_resource(StarFormationRule {
            species: config.species.clone(),
            parameters,
            numbers,
        });
        if config.converging || config.virial_parameter.is_some() {
            sim.world.init_resource::<GatheringCells>();
            sim.selection()
                .prepare::<Gas>("gathering_gas", Pool::prepare_collect::<gathering_gas>);
            sim.chain_in(Advance::Predict, (find_gathering_gas, form_stars));
        } else {
            sim.system_in(Advance::Predict, form_stars);
        }
        diagnostics::register(sim)?;
        let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
        let doc = "Stars that form from dense gas.";
        catalogue.add("source", "star formation", doc).of("gas");
        Ok(())
    }
}

/// Compiles the temperature, the condition, the metallicity and the sound speed.
fn numbers(
    sim: &Engine,
    config: &StarFormationConfig,
    model: &GasModel,
) -> Result<DerivedInputs, DeckError> {
    let has_metals = model.scalars.iter().any(|scalar| scalar == "metal");
    // only what the rule uses, because it is computed in each cell
    let used = |name: &'static str, is_used: bool| if is_used { name } else { "0" };
    let texts = [
        (
            "temperature_k",
            used("temperature_k", config.temperature_k.is_some()),
        ),
        ("where", &*config.condition),
        ("species", used("fraction_metal", has_metals)),
        ("jeans_mass", used("sound_speed", config.jeans_mass)),
    ];
    let compiled = texts.map(|(key, text)| {
        let path = format!("star_formation.{key}");
        compile(&sim.deck, &path, text, vocabulary(model))
    });
    let list: Result<Vec<CellQuantity>, DeckError> = compiled.into_iter().collect();
    list.map(DerivedInputs::new)
}

/// Returns the parameters of the rule, which follow the scale factor in an expanding universe.
fn parameters(
    sim: &mut Engine,
    config: &StarFormationConfig,
) -> Result<Parameters<SchmidtRule<f64>>, Error> {
    let stream = sim.random_stream("star formation", config.seed)?;
    let units = Units::of(sim, "star_formation")?;
    let gravity = sim.world.resource::<GravitationalConstant>().0;
    let config = config.clone();
    let at = move |units: Units, a: f64| {
        let gravity = gravity * a;
        let jeans = PI * PI * PI.sqrt() / (6.0 * gravity * gravity.sqrt());
        let density = config.threshold_cm3 / (config.hydrogen_fraction * units.number_density());
        let virial = config.virial_parameter.unwrap_or(f64::INFINITY);
        SchmidtRule {
            density,
            temperature_k: config.temperature_k.unwrap_or(f64::INFINITY),
            efficiency: config.efficiency,
            fall_time: (3.0 * PI / (32.0 * gravity)).sqrt(),
            jeans_mass: if config.jeans_mass { jeans } else { 0.0 },
            min_level: f64::from(config.min_level),
            velocity: VelocityRule {
                density,
                converging: f64::from(u8::from(config.converging)),
                most_motion: 2.0 * gravity * virial,
            },
            masses: StarMasses {
                least: config.least_mass,
                most_of_cell: config.most_of_cell,
                stream,
            },
        }
    };
    Ok(units.parameters(sim, at))
}

/// Warns of artificial fragmentation (Truelove et al. 1997) if the Jeans length of gas at the threshold has fewer than four cells of the
/// finest level.
fn remark_on_resolution(sim: &mut Engine, config: &StarFormationConfig, model: &GasModel) {
    let (Some(kelvin), Some(physical)) = (config.temperature_k, &model.physical) else {
        return;
    };
    let floors = sim.world.get_resource::<GasFloors>();
    if floors.is_some_and(|floors| floors.jeans_cells >= 4.0) {
        return;
    }
    let Some(units) = Units::find(sim) else {
        return;
    };
    let a = physical.first_scale_factor;
    let density = config.threshold_cm3 / (config.hydrogen_fraction * units.at(a).number_density());
    let gravity = a * sim.world.resource::<GravitationalConstant>().0;
    let square = model.gamma * kelvin / physical.initial_kelvin();
    let length = (PI * square / (gravity * density)).sqrt();
    let topology = sim.world.resource::<Topology>();
    let width = topology.domain.cell_width(topology.max_level)[0];
    if length < 4.0 * width {
        sim.world.resource_mut::<Remarks>().0.push(format!(
            "star_formation: at the threshold, gas of {kelvin} K has a Jeans length of {:.2} cells of the finest level. Below four \
             cells it fragments artificially: lower `threshold_cm3`, raise `mesh.max_level`, or set `floors.jeans_cells = 4`",
            length / width
        ));
    }
}
