//! Radiative cooling and heating of gas by tables.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers cell functions of `cells.rs`, from which the
//! engine makes systems and columns.

mod cells;
mod config;
mod rate_source;
mod tabulation;
mod temperature;
mod zarr_table;

pub use config::{CoolingConfig, LawsConfig, RatesConfig};
pub use rate_source::{CoolingLaws, CoolingRates};

use crate::declare::Declare;
use crate::fields::quantities::{check_heating, compile, heating, vocabulary_of_rates};
use crate::fields::{Gas, GasFloors, GasModel, GravitationalConstant};
use crate::order::{Advance, Split};
use crate::register::Register;
use crate::subcycling::StateSelection;
use crate::units::Units;
use bevy_ecs::prelude::*;
use cells::{
    CoolingLimit, SOLAR, cool, cool_by, cooling_length, cooling_length_metal, cooling_step,
    cooling_step_by, cooling_time, cooling_time_metal, table_temperature_k,
};
use nestar_deck::{Deck, DeckError};
use nestar_device::CellFn;
use nestar_engine::comm::{DiagnosticColumns, Reduce};
use nestar_engine::data::criteria::QuantityFn;
use nestar_engine::data::{DerivedInputs, LevelRows, Parameters, Pool};
use nestar_engine::mesh::Topology;
use nestar_engine::step::{BudgetId, Budgets, Catalogue, Remarks, Replays, Write};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::choice::Choice;
use nestar_kernels::cooling::{CoolingModel, scale};
use rate_source::{CoolingLawMap, RateSource};
use std::sync::Arc;

/// Scalar with the mass of metals.
const METAL: &str = "metal";
/// Seconds in a million Julian years.
const MILLION_YEARS: f64 = 3.155_76e13;
/// Key of the heating formula.
const HEATING: &str = "cooling.heating";
/// Key of the mean molecular weight.
const WEIGHT: &str = "cooling.mean_molecular_weight";
/// Key of that of the gas.
const WEIGHT_OF_GAS: &str = "hydro.mean_molecular_weight";
/// Sums of the account.
const ENERGIES: [&str; 3] = ["radiated", "heated", "floored"];

/// Plugin for the table `[cooling]`.
pub struct Cooling;

/// Parameters of the cell functions.
#[derive(Resource)]
struct CoolingSetup {
    cooler: Parameters<CoolingModel<f64>>,
    /// Heating in addition to the tables, contained in them; `None`: by a formula.
    constant: Option<f64>,
    /// `true` if the gas carries metals and the rates depend on them.
    metals: bool,
}

impl Plugin for Cooling {
    fn name(&self) -> &str {
        "cooling"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "gravity"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("cooling") {
            return Ok(());
        }
        Units::of(sim, "[cooling]")?;
        if sim.deck.has(WEIGHT) && !sim.deck.has("chemistry") {
            let config: CoolingConfig = sim.deck.table("cooling")?;
            let weight = config.mean_molecular_weight;
            sim.deck.fill(WEIGHT_OF_GAS, WEIGHT, weight);
        }
        let [name, _] = names_of_time(&sim.deck);
        sim.derived_when_built(name, "time", cooling_time::DOC, |sim, model| {
            one_weight(&mut sim.deck, model)?;
            one_floor(sim)?;
            let given = given(sim, model)?;
            let cooler = given.cooler.clone();
            let chosen = match given.metals {
                true => (QuantityFn::with::<cooling_time_metal>(cooler), &[METAL][..]),
                false => (QuantityFn::with::<cooling_time>(cooler), &[][..]),
            };
            sim.world.insert_resource(given);
            Ok(chosen)
        })?;
        if sim.deck.has("chemistry") || !temperature::is_known(sim)? {
            return Ok(());
        }
        let doc = table_temperature_k::DOC;
        sim.derived_when_built("temperature_k", "K", doc, |sim, _| {
            let units = Units::of(sim, "[cooling]")?;
            let cooler = sim.world.resource::<CoolingSetup>().cooler.clone();
            let is_changing = Units::are_changing(sim);
            let formula = temperature::pressure_formula(&cooler.at([1.0; 2]), &units, is_changing);
            sim.world.insert_resource(formula);
            Ok((QuantityFn::with::<table_temperature_k>(cooler), &[]))
        })
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let Some(given) = sim.world.remove_resource::<CoolingSetup>() else {
            return Ok(());
        };
        let config: CoolingConfig = sim.deck.table("cooling")?;
        if sim.world.resource::<GasModel>().frozen {
            return Err(sim
                .deck
                .error_at(
                    "cooling",
                    "[cooling] needs gas that is not frozen: remove `hydro.frozen`",
                )
                .into());
        }
        register_cooling_time(sim, &given)?;
        let numbers = numbers(sim, &given, &config)?.map(Arc::new);
        if config.courant > 0.0 {
            register_limit(sim, &given, numbers.as_ref(), config.courant)?;
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
        let riemann = sim.world.resource::<GasModel>().riemann;
        if !riemann.resolves_contacts() {
            let mut remarks = sim.world.resource_mut::<Remarks>();
            remarks.0.push(format!(
                "[cooling] with hydro.riemann = {:?}: this solver diffuses hot gas into cold layers, which then cool too much (tens of per cent \
                 over a cooling length); use \"hllc\"",
                riemann.word()
            ));
        }
        if Units::are_changing(sim) && sim.deck.has("cooling.redshift") {
            let mut remarks = sim.world.resource_mut::<Remarks>();
            remarks.0.push(
                "[cooling] takes the rates of the redshift `cooling.redshift` during the whole run, although the universe expands"
                    .into(),
            );
        }
        let account = sim.register_budget("cooling", &ENERGIES)?;
        for name in ENERGIES {
            let energy = "mass*length**2/time**2";
            DiagnosticColumns::set_units(&mut sim.world, format!("cooling_{name}"), energy);
        }
        register(sim, given.cooler, numbers, account, config.split)
    }
}

/// Sets the mean molecular weight of cooling to that of the gas, unless the deck gives it, so that temperatures agree.
/// With chemistry it follows from the species.
///
/// # Errors
/// The deck gives two different values.
fn one_weight(deck: &mut Deck, model: &GasModel) -> Result<(), DeckError> {
    let Some(physical) = model.physical.as_ref().filter(|_| !deck.has("chemistry")) else {
        return Ok(());
    };
    let weight = physical.mean_molecular_weight;
    deck.fill(WEIGHT, WEIGHT_OF_GAS, weight);
    let own = deck
        .table::<CoolingConfig>("cooling")?
        .mean_molecular_weight;
    if own != weight {
        let why = format!(
            "`{WEIGHT}` is {own}, but `{WEIGHT_OF_GAS}`, which sets the temperature of the gas, is {weight}: use the same value"
        );
        return Err(deck.error_at(WEIGHT, why));
    }
    Ok(())
}

/// Sets the floors of cooling to those of the table `[floors]`, unless the deck gives them.
///
/// # Errors
/// The deck gives two different values.
fn one_floor(sim: &mut Engine) -> Result<(), DeckError> {
    let Some(&floors) = sim.world.get_resource::<GasFloors>() else {
        return Ok(());
    };
    let own = |deck: &mut Deck| deck.table::<CoolingConfig>("cooling");
    let deck = &mut sim.deck;
    floors.hold_temperature(deck, "cooling.floor_k", |deck| Ok(own(deck)?.floor_k))?;
    floors.hold_jeans(deck, "cooling.jeans_cells", |deck| {
        Ok(own(deck)?.jeans_cells)
    })
}

/// Returns the names of the cooling time and of its minimum; with chemistry, of those of metals.
fn names_of_time(deck: &Deck) -> [&'static str; 2] {
    match deck.has("chemistry") {
        true => ["metal_cooling_time", "metal_cooling_time_least"],
        false => ["cooling_time", "cooling_time_least"],
    }
}

/// Adds the shortest cooling time to the diagnostics.
fn register_cooling_time(sim: &mut Engine, given: &CoolingSetup) -> Result<(), Error> {
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

/// Reads the rates and computes the conversion factors.
fn given(sim: &mut Engine, model: &GasModel) -> Result<CoolingSetup, Error> {
    let units = Units::of(sim, "[cooling]")?;
    let config: &CoolingConfig = &sim.deck.table("cooling")?;
    let laws = sim
        .world
        .get_resource::<CoolingLawMap>()
        .cloned()
        .unwrap_or_default();
    let deck = &sim.deck;
    let source = RateSource::read(config, deck, &laws)?;
    let source = match deck.has("chemistry") {
        true => source.of_metals().ok_or_else(|| no_metals(deck))?,
        false => source,
    };
    let metals = model.scalars.iter().any(|name| name == METAL) && source.metallicities.len() > 1;
    // a formula of quantities is compiled when all of them are known
    let formula = heating(deck, HEATING, &config.heating, Vec::new()).ok();
    let constant = formula.and_then(|(_, constant)| constant);
    check_heating(deck, HEATING, constant)?;
    let gamma = model.gamma;
    let curves = tabulation::curves(config, deck, source, gamma, metals, constant)?;
    let (jeans, hydrogen) = (jeans(sim, config, &units, gamma), config.hydrogen_fraction);
    let (metallicity, weight) = (
        config.metallicity,
        match deck.has("chemistry") {
            true => config.mean_molecular_weight,
            false => 1.0,
        },
    );
    let cooler = units.parameters(sim, move |units, scale_factor| CoolingModel {
        kelvin: (gamma - 1.0) * units.temperature(),
        nuclei: hydrogen * units.number_density(),
        time: units.time / MILLION_YEARS,
        jeans: jeans * scale_factor,
        heating: scale(gamma, hydrogen),
        metallicity,
        weight,
        sound: gamma * (gamma - 1.0),
        curves: curves.clone(),
    });
    Ok(CoolingSetup {
        cooler,
        constant,
        metals,
    })
}

/// Returns the error for rates without a separate contribution of metals.
fn no_metals(deck: &Deck) -> DeckError {
    let why = "with [chemistry], which heats and cools hydrogen and helium, [cooling] adds only metals; but the rates of \
               `cooling.table` do not depend on metals or exclude zero metallicity: use a Zarr group with `cooling_metal` or a law of the program";
    deck.error_at("cooling.table", why)
}

/// Compiles heating that is not in the tables, metallicity and mean molecular weight of a cell; `None` if all are constant.
fn numbers(
    sim: &Engine,
    given: &CoolingSetup,
    config: &CoolingConfig,
) -> Result<Option<DerivedInputs>, Error> {
    let (deck, model) = (&sim.deck, sim.world.resource::<GasModel>());
    let species = deck.has("chemistry");
    if given.constant.is_some() && !given.metals && !species {
        return Ok(None);
    }
    let heating = match given.constant {
        Some(_) => compile(deck, HEATING, "0", Vec::new())?,
        None => heating(deck, HEATING, &config.heating, vocabulary_of_rates(model))?.0,
    };
    let of = |key: &str, wanted: bool, text: String, otherwise: &str| {
        let mut names = vocabulary_of_rates(model);
        names.retain(|(name, _)| wanted && text.contains(&**name));
        compile(deck, key, if wanted { &text } else { otherwise }, names)
    };
    let fraction = format!("fraction_{METAL}/{SOLAR}");
    let metallicity = of("cooling.metallicity", given.metals, fraction, "0")?;
    let unit = Units::of(sim, "[cooling]")?.temperature();
    let expansion = match Units::are_changing(sim) {
        true => "*scale_factor**2",
        false => "",
    };
    let weight = format!("temperature_k{expansion}/(temperature*{unit:?})");
    let weight = of(WEIGHT, species, weight, "1")?;
    Ok(Some(DerivedInputs::new(vec![heating, metallicity, weight])))
}

/// Returns the energy per mass over density at which a Jeans length has the required number of cells of the finest
/// level.
fn jeans(sim: &Engine, config: &CoolingConfig, units: &Units, gamma: f64) -> f64 {
    let gravity = sim.world.get_resource::<GravitationalConstant>();
    let gravity = gravity.map_or_else(|| units.gravitational_constant(), |g| g.0);
    let topology = sim.world.resource::<Topology>();
    let width = topology.domain.cell_width(topology.max_level);
    let width = width[0].max(width[1]).max(width[2]);
    let length = config.jeans_cells * width;
    gravity * length * length / (gamma * (gamma - 1.0) * std::f64::consts::PI)
}

/// Returns the parameters of a limit or a criterion.
fn share(given: &CoolingSetup, of: f64) -> Parameters<CoolingLimit<f64>> {
    given.cooler.map(move |cooler| CoolingLimit {
        cooler: cooler.clone(),
        of,
    })
}

/// Registers the time-step limit.
fn register_limit(
    sim: &mut Engine,
    given: &CoolingSetup,
    numbers: Option<&Arc<DerivedInputs>>,
    courant: f64,
) -> Result<(), Error> {
    let share = share(given, courant);
    let mut sim = sim.at_rest(&[])?;
    match numbers {
        None => sim.limit::<Gas, cooling_step>("cooling", share),
        Some(numbers) => sim
            .with_numbers(numbers)
            .limit::<Gas, cooling_step_by>("cooling", share),
    }
    Ok(())
}

/// Registers the cooling system, as two half steps around the gas update if `split`.
fn register(
    sim: &mut Engine,
    cooler: Parameters<CoolingModel<f64>>,
    numbers: Option<Arc<DerivedInputs>>,
    account: BudgetId,
    split: bool,
) -> Result<(), Error> {
    let mut selection = StateSelection {
        numbers: numbers.clone(),
        ..sim.at_rest(&[])?
    };
    let components = selection.components;
    match numbers.is_none() {
        true => selection.prepare::<Gas>(cool::ITEM.name, Pool::prepare_subcycle::<cool>),
        false => selection.prepare::<Gas>(cool_by::ITEM.name, Pool::prepare_subcycle::<cool_by>),
    }
    let (read, world) = (numbers.clone(), &mut sim.world);
    match numbers.is_none() {
        true => Replays::add::<Gas, cool>(world, components, read, 1, cooler.clone()),
        false => Replays::add::<Gas, cool_by>(world, components, read, 1, cooler.clone()),
    }
    let act = move |mut rows: LevelRows, mut gas: Write<Gas>, mut accounts: ResMut<Budgets>| {
        rows.choose(components);
        rows.name_sums("cooling", &ENERGIES);
        let cooler = cooler.at(rows.numbers_in_step());
        let tally = match &numbers {
            None => gas.iterate::<cool>(&rows, (), 1, &cooler),
            Some(numbers) => gas.iterate::<cool_by>(&rows, &**numbers, 1, &cooler),
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
