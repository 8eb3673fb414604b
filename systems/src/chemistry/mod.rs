//! Primordial chemistry of the gas: species that react, are ionised, heated and cooled, each cell in sub-steps of its own.

mod cells;
mod config;
mod times;

pub use config::{
    ChemistryConfig, H2CoolingConfig, InitialConfig, RecombinationConfig, ThreeBodyConfig,
};

use crate::attempts::Attempts;
use crate::declare::Declare;
use crate::fields::{Gas, GasModel};
use crate::register::Register;
use crate::units::{BOLTZMANN, Units};
use cells::{
    Chemistry as Cells, electrons_6, electrons_9, electrons_12, ionise_6, ionise_9, ionise_12,
    react_6, react_9, react_12, temperature_6, temperature_9, temperature_12,
};
use nestar_engine::field::marks::NumberFn;
use nestar_engine::field::{CellAttempt, CellMap, CellMark, CellValue};
use nestar_engine::ranks::Reduce;
use nestar_engine::{Engine, Error, Plugin};
use times::{
    Share, cooling_time_6, cooling_time_9, cooling_time_12, cools_within_6, cools_within_9,
    cools_within_12, exchange_6, exchange_9, exchange_12,
};

/// The plugin: reads the table `[chemistry]`, if the deck has it. Add it behind the gas and the scenario.
pub struct Chemistry;

/// The scalars, of which 6, 9 and 12 species have the first 5, 8 and 11.
pub const SPECIES: [&str; 11] = [
    "HI", "HII", "HeI", "HeII", "HeIII", "HM", "H2I", "H2II", "DI", "DII", "HDI",
];
/// What the account adds up.
const ENERGIES: [&str; 2] = ["lost", "floored"];
/// Seconds in a million Julian years.
const MILLION_YEARS: f64 = 3.155_76e13;

/// The scalars of so many species.
fn scalars(species: u32) -> &'static [&'static str] {
    &SPECIES[..species as usize - 1]
}

impl Plugin for Chemistry {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("chemistry") {
            return Ok(());
        }
        let config = ChemistryConfig::read(&mut sim.deck)?;
        let fraction = |name: &&'static str| match *name {
            "HI" => (*name, config.hydrogen_fraction),
            "HeI" => (*name, config.helium_fraction()),
            "DI" => (*name, config.deuterium_fraction()),
            _ => (*name, 0.0),
        };
        let names = scalars(config.species);
        let all: Vec<(&str, f64)> = names.iter().map(fraction).collect();
        sim.scalar_set(&all)?;
        let kelvin = Units::of(sim, "[chemistry]")?.temperature();
        let hot = [config.hydrogen_fraction, kelvin];
        let hydrogen = &hot[..1];
        let (t, e) = ("temperature_k", "electrons_per_hydrogen");
        let cells = cells(sim, &config)?;
        match config.species {
            6 => {
                sim.derived_at_rest::<temperature_6>(t, "K", names, &hot)?;
                sim.derived_at_rest::<electrons_6>(e, "1", names, hydrogen)?;
                name_time::<cooling_time_6>(sim, names, cells)
            }
            9 => {
                sim.derived_at_rest::<temperature_9>(t, "K", names, &hot)?;
                sim.derived_at_rest::<electrons_9>(e, "1", names, hydrogen)?;
                name_time::<cooling_time_9>(sim, names, cells)
            }
            _ => {
                sim.derived_at_rest::<temperature_12>(t, "K", names, &hot)?;
                sim.derived_at_rest::<electrons_12>(e, "1", names, hydrogen)?;
                name_time::<cooling_time_12>(sim, names, cells)
            }
        }
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("chemistry") {
            return Ok(());
        }
        let config = ChemistryConfig::read(&mut sim.deck)?;
        require_gas(sim)?;
        let cells = cells(sim, &config)?;
        match config.species {
            6 => {
                show::<cooling_time_6>(sim, &config, &cells)?;
                watch::<exchange_6, cools_within_6>(sim, &config, &cells)?;
                register::<react_6, ionise_6>(sim, &config, cells, 1.0)
            }
            9 => {
                show::<cooling_time_9>(sim, &config, &cells)?;
                watch::<exchange_9, cools_within_9>(sim, &config, &cells)?;
                register::<react_9, ionise_9>(sim, &config, cells, 3.0)
            }
            _ => {
                show::<cooling_time_12>(sim, &config, &cells)?;
                watch::<exchange_12, cools_within_12>(sim, &config, &cells)?;
                register::<react_12, ionise_12>(sim, &config, cells, 5.0)
            }
        }
    }
}

/// What cells are given.
fn cells(sim: &Engine, config: &ChemistryConfig) -> Result<Cells<f64>, Error> {
    let units = Units::of(sim, "[chemistry]")?;
    Ok(Cells {
        network: config.network(),
        hydrogen: config.hydrogen_fraction,
        per_cm3: units.number_density(),
        kelvin: units.temperature(),
        myr: units.time / MILLION_YEARS,
        heating: config.heating / BOLTZMANN * MILLION_YEARS,
        most: config.max_substeps as i32,
    })
}

/// Lets criteria, formulas and pictures know the cooling time.
fn name_time<T: CellValue<Parameters = Cells<f64>>>(
    sim: &mut Engine,
    names: &'static [&'static str],
    cells: Cells<f64>,
) -> Result<(), Error> {
    let choose = move |_: &mut Engine, _: &GasModel| Ok((NumberFn::with::<T>(cells), names));
    sim.derived_when_made("cooling_time", "time", T::DOC, choose)
}

/// Adds the shortest cooling time to the diagnostics.
fn show<T: CellValue<Parameters = Cells<f64>>>(
    sim: &mut Engine,
    config: &ChemistryConfig,
    cells: &Cells<f64>,
) -> Result<(), Error> {
    let mut sim = sim.at_rest(scalars(config.species))?;
    let (name, cells) = ("cooling_time_least", cells.clone());
    sim.column::<Gas, T>(name, Reduce::Smallest, cells)
        .unit("time");
    Ok(())
}

/// Refuses gas whose heat is not that of the species' atoms, or that stands still.
fn require_gas(sim: &Engine) -> Result<(), Error> {
    let model = sim.world.resource::<GasModel>();
    if (model.gamma - 5.0 / 3.0).abs() > 1e-6 {
        let why = "[chemistry] knows the heat capacity of its species, which is that of atoms (of molecules there are too few to matter): \
                   set `hydro.gamma = 1.6666666666666667`";
        return Err(sim.deck.error_at("hydro.gamma", why).into());
    }
    if model.frozen {
        let why = "[chemistry] changes gas that stands still: take out `hydro.frozen`";
        return Err(sim.deck.error_at("hydro.frozen", why).into());
    }
    Ok(())
}

/// Registers the limit and the criterion that the deck asks for.
fn watch<L, C>(sim: &mut Engine, config: &ChemistryConfig, cells: &Cells<f64>) -> Result<(), Error>
where
    L: CellValue<Parameters = Share<f64>>,
    C: CellMark<Parameters = Share<f64>>,
{
    let mut sim = sim.at_rest(scalars(config.species))?;
    let share = |of: f64| Share {
        chemistry: cells.clone(),
        of,
    };
    if config.courant > 0.0 {
        sim.limit::<Gas, L>("chemistry", share(config.courant));
    }
    if config.length_cells > 0.0 {
        sim.criterion::<Gas, C>(share(config.length_cells));
    }
    Ok(())
}

/// Registers reactions, and ionisation at the beginning; a sub-step weighs as much as `weight` times the rest of a cell's step.
fn register<M, I>(
    sim: &mut Engine,
    config: &ChemistryConfig,
    cells: Cells<f64>,
    weight: f64,
) -> Result<(), Error>
where
    M: CellAttempt<Parameters = Cells<f64>>,
    I: CellMap<Parameters = Cells<f64>>,
{
    let mut sim = sim.at_rest(scalars(config.species))?;
    if config.initial == InitialConfig::Equilibrium {
        sim.initial::<Gas, I>(cells.clone());
    }
    // the sub-steps of calls double, from one on
    let calls = config.max_substeps.next_power_of_two().ilog2() as usize + 2;
    let attempts = Attempts::of(calls)
        .account("chemistry", &ENERGIES)
        .weight(weight);
    sim.attempts::<Gas, M>(attempts, cells)
}
