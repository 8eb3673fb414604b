//! Radiative cooling and heating of gas by tables.

mod cells;
mod config;
mod group;
mod known;
mod laws;
mod source;

pub use config::{CoolingConfig, LawsConfig, RatesConfig};
pub use laws::{CoolingLaws, CoolingRates};

use crate::declare::Declare;
use crate::fields::quantities::{compile, vocabulary_of_rates};
use crate::fields::rates::heating;
use crate::fields::{Gas, GasModel, GravitationalConstant};
use crate::order::{Advance, Split};
use crate::register::Register;
use crate::units::Units;
use bevy_ecs::prelude::*;
use cells::{
    SOLAR, Share, cool, cool_by, cooling_length, cooling_length_metal, cooling_step,
    cooling_step_by, cooling_time, cooling_time_metal,
};
use known::Source;
use laws::Laws;
use nestar_deck::{Deck, DeckError};
use nestar_device::CellFn;
use nestar_engine::comm::Reduce;
use nestar_engine::data::criteria::{CellQuantity, QuantityFn};
use nestar_engine::data::{DerivedInputs, LevelRows};
use nestar_engine::mesh::Topology;
use nestar_engine::step::{BudgetId, Budgets, Catalogue, Remarks, Replays, Write};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::cooling::{CoolingModel, scale};
use std::sync::Arc;

/// The scalar that carries the mass of metals.
const METAL: &str = "metal";
/// Seconds in a million Julian years.
const MILLION_YEARS: f64 = 3.155_76e13;
/// The key of the formula.
const HEATING: &str = "cooling.heating";
/// The key of the mean molecular weight.
const WEIGHT: &str = "cooling.mean_molecular_weight";
/// The energies that an account adds up.
const ENERGIES: [&str; 3] = ["radiated", "heated", "floored"];

/// The plugin: reads the table `[cooling]`, if the deck has it. Add it behind the gas and self-gravity.
pub struct Cooling;

/// What cells are given beside their state.
#[derive(Resource)]
struct Given {
    cooler: CoolingModel<f64>,
    /// Heating and metallicity, where they differ from cell to cell.
    numbers: Option<Arc<DerivedInputs>>,
    /// Whether the gas carries metals on which the rates depend.
    metals: bool,
}

impl Plugin for Cooling {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("cooling") {
            return Ok(());
        }
        Units::of(sim, "[cooling]")?;
        if sim.deck.has(WEIGHT) && !sim.deck.has("chemistry") {
            let config: CoolingConfig = sim.deck.table("cooling")?;
            let weight = config.mean_molecular_weight;
            sim.deck.fill("hydro.mean_molecular_weight", weight);
        }
        let [name, _] = names_of_time(&sim.deck);
        sim.derived_when_made(name, "time", cooling_time::DOC, |sim, model| {
            one_weight(&mut sim.deck, model)?;
            let given = given(sim, model)?;
            let cooler = given.cooler.clone();
            let chosen = match given.metals {
                true => (QuantityFn::with::<cooling_time_metal>(cooler), &[METAL][..]),
                false => (QuantityFn::with::<cooling_time>(cooler), &[][..]),
            };
            sim.world.insert_resource(given);
            Ok(chosen)
        })
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let Some(given) = sim.world.remove_resource::<Given>() else {
            return Ok(());
        };
        let config: CoolingConfig = sim.deck.table("cooling")?;
        if sim.world.resource::<GasModel>().frozen {
            return Err(sim
                .deck
                .error_at(
                    "cooling",
                    "[cooling] changes gas that stands still: take out `hydro.frozen`",
                )
                .into());
        }
        show(sim, &given)?;
        if config.courant > 0.0 {
            limit(sim, &given, config.courant)?;
        }
        if config.length_cells > 0.0 {
            let share = share(&given, config.length_cells);
            match given.metals {
                true => sim
                    .at_rest(&[METAL])?
                    .criterion::<Gas, cooling_length_metal>(share),
                false => sim.at_rest(&[])?.criterion::<Gas, cooling_length>(share),
            }
        }
        if sim.world.resource::<GasModel>().two_waves {
            let mut remarks = sim.world.resource_mut::<Remarks>();
            remarks.0.push(
                "[cooling] with hydro.riemann = \"hlle\": two waves mix hot gas into cold layers, which then cool too much (tens of per cent \
                 of a cooling length); take \"hllc\""
                    .into(),
            );
        }
        let account = sim.register_budget("cooling", &ENERGIES)?;
        register(sim, given, account, config.split)
    }
}

/// Gives cooling the mean molecular weight of the gas, where the deck does not name it, so that temperatures in kelvin are the same.
/// With chemistry the gas has that of its species.
///
/// # Errors
/// The deck names two that differ.
fn one_weight(deck: &mut Deck, model: &GasModel) -> Result<(), DeckError> {
    let Some(physical) = model.physical.as_ref().filter(|_| !deck.has("chemistry")) else {
        return Ok(());
    };
    let weight = physical.mean_molecular_weight;
    deck.fill(WEIGHT, weight);
    let own = deck
        .table::<CoolingConfig>("cooling")?
        .mean_molecular_weight;
    if own != weight {
        let why = format!(
            "`{WEIGHT}` is {own}, and `hydro.mean_molecular_weight`, by which the gas has its temperature, is {weight}: give both one number"
        );
        return Err(deck.error_at(WEIGHT, why));
    }
    Ok(())
}

/// Names of the cooling time and of the shortest one; beside species' own heating and cooling, of that of their metals.
fn names_of_time(deck: &Deck) -> [&'static str; 2] {
    match deck.has("chemistry") {
        true => ["metal_cooling_time", "metal_cooling_time_least"],
        false => ["cooling_time", "cooling_time_least"],
    }
}

/// Adds the shortest cooling time to the diagnostics.
fn show(sim: &mut Engine, given: &Given) -> Result<(), Error> {
    let [_, name] = names_of_time(&sim.deck);
    let (least, cooler) = (Reduce::Smallest, given.cooler.clone());
    match given.metals {
        true => sim
            .at_rest(&[METAL])?
            .column::<Gas, cooling_time_metal>(name, least, cooler)
            .unit("time"),
        false => sim
            .at_rest(&[])?
            .column::<Gas, cooling_time>(name, least, cooler)
            .unit("time"),
    };
    Ok(())
}

/// Rates and scales.
fn given(sim: &mut Engine, model: &GasModel) -> Result<Given, Error> {
    let units = Units::of(sim, "[cooling]")?;
    let config: &CoolingConfig = &sim.deck.table("cooling")?;
    let laws = sim
        .world
        .get_resource::<Laws>()
        .cloned()
        .unwrap_or_default();
    let deck = &sim.deck;
    let source = Source::read(config, deck, &laws)?;
    let source = match deck.has("chemistry") {
        true => source.of_metals().ok_or_else(|| no_metals(deck))?,
        false => source,
    };
    let metals = model.scalars.iter().any(|name| name == METAL) && source.metallicities.len() > 1;
    let names = vocabulary_of_rates(model);
    let (formula, constant) = heating(deck, HEATING, &config.heating, names)?;
    let gamma = model.gamma;
    let curves = source::curves(
        config,
        deck,
        source,
        (gamma, metals, constant.unwrap_or(0.0)),
    )?;
    let numbers =
        (constant.is_none() || metals).then(|| numbers(deck, model, metals, formula, constant));
    let cooler = CoolingModel {
        kelvin: (gamma - 1.0) * units.temperature(),
        nuclei: config.hydrogen_fraction * units.number_density(),
        time: units.time / MILLION_YEARS,
        jeans: jeans(sim, config, &units, gamma),
        heating: scale(gamma, config.hydrogen_fraction),
        metallicity: config.metallicity,
        sound: gamma * (gamma - 1.0),
        curves,
    };
    Ok(Given {
        cooler,
        numbers: numbers.transpose()?.map(Arc::new),
        metals,
    })
}

/// Rates of all of the gas beside those of its species.
fn no_metals(deck: &Deck) -> DeckError {
    let why = "the table [chemistry] heats and cools hydrogen and helium by their species, and [cooling] adds what metals do; but \
               `cooling.table` has rates that do not depend on metals, or are not known without any: take a Zarr group with `cooling_metal`, or a law of the program";
    deck.error_at("cooling.table", why)
}

/// Heating that is not in the tables, and metallicity, of a cell.
fn numbers(
    deck: &Deck,
    model: &GasModel,
    metals: bool,
    heating: CellQuantity,
    constant: Option<f64>,
) -> Result<DerivedInputs, DeckError> {
    let heating = match constant {
        Some(_) => compile(deck, HEATING, "0", Vec::new())?,
        None => heating,
    };
    let fraction = format!("fraction_{METAL}");
    let (text, names) = match metals {
        true => (format!("{fraction}/{SOLAR}"), vocabulary_of_rates(model)),
        false => ("0".into(), Vec::new()),
    };
    let names = names.into_iter().filter(|(name, _)| *name == fraction);
    let metallicity = compile(deck, "cooling.metallicity", &text, names.collect())?;
    Ok(DerivedInputs::new(vec![heating, metallicity]))
}

/// Energy by mass over density with which a Jeans length has as many cells of the finest level as wanted.
fn jeans(sim: &Engine, config: &CoolingConfig, units: &Units, gamma: f64) -> f64 {
    let gravity = sim.world.get_resource::<GravitationalConstant>();
    let gravity = gravity.map_or_else(|| units.gravitational_constant(), |g| g.0);
    let topology = sim.world.resource::<Topology>();
    let width = topology.domain.cell_width(topology.max_level);
    let width = width[0].max(width[1]).max(width[2]);
    let length = config.jeans_cells * width;
    gravity * length * length / (gamma * (gamma - 1.0) * std::f64::consts::PI)
}

fn share(given: &Given, of: f64) -> Share<f64> {
    Share {
        cooler: given.cooler.clone(),
        of,
    }
}

/// Enters the limit of the step.
fn limit(sim: &mut Engine, given: &Given, courant: f64) -> Result<(), Error> {
    let share = share(given, courant);
    let mut sim = sim.at_rest(&[])?;
    match given.numbers.clone() {
        None => sim.limit::<Gas, cooling_step>("cooling", share),
        Some(numbers) => sim.limit_by::<Gas, cooling_step_by>("cooling", numbers, share),
    }
    Ok(())
}

/// Enters what cools the gas, in halves around its motion if it is `split`.
fn register(sim: &mut Engine, given: Given, account: BudgetId, split: bool) -> Result<(), Error> {
    let Given {
        cooler, numbers, ..
    } = given;
    let (_, components) = sim.at_rest(&[])?.parts();
    let cooler = Arc::new(cooler);
    let (again, world) = ((components, numbers.clone()), &mut sim.world);
    match numbers.is_none() {
        true => Replays::add::<Gas, cool>(world, again, 1, cooler.clone()),
        false => Replays::add::<Gas, cool_by>(world, again, 1, cooler.clone()),
    }
    let act = move |mut rows: LevelRows, mut gas: Write<Gas>, mut accounts: ResMut<Budgets>| {
        rows.choose(components);
        rows.name_sums(("cooling", &ENERGIES));
        let tally = match &numbers {
            None => gas.map_attempts_with::<cool>(&rows, &[], 1, &cooler),
            Some(numbers) => gas.map_by::<cool_by>(&rows, numbers, &cooler),
        };
        accounts.add(account, &tally);
    };
    let act = IntoSystem::into_system(act).with_name("cooling by tables");
    if split {
        sim.system_in(Split::Sources, act);
    } else {
        sim.system_in(Advance::Sources, act);
    }
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    let doc = "Heating and cooling over a step, exact for the table's curve.";
    catalogue.add("source", "cooling by tables", doc).of("gas");
    Ok(())
}
