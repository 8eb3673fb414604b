//! Primordial chemistry of the gas: reactions, ionisation, heating and cooling, sub-cycled in each cell.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers cell functions of `cells.rs` and `times.rs`, from which the engine makes systems and columns.

mod cells;
mod config;
mod radiation;
mod times;

use crate::declare::{Declare, GasFrame};
use crate::fields::quantities::{check_heating, heating, vocabulary_of_rates};
use crate::fields::{Gas, GasFloors, GasModel, InitialScalars, PressureFormula, SCALE_FACTOR};
use crate::order::{Limit, Synchronise};
use crate::register::{Register, add_update};
use crate::subcycling::Subcycling;
use crate::units::{BOLTZMANN, Units};
use bevy_ecs::prelude::*;
use cells::{
    ChemistryParameters, electrons_6, electrons_9, electrons_12, ionise_6, ionise_9, ionise_12,
    react_6, react_6_by, react_9, react_9_by, react_12, react_12_by, rescale_elements_6,
    rescale_elements_9, rescale_elements_12, temperature_6, temperature_9, temperature_12,
};
pub use config::{
    ChemistryConfig, H2CoolingConfig, InitialSpecies, RecombinationConfig, ThreeBodyConfig,
};
use nestar_deck::{Deck, DeckError};
use nestar_device::{Real, device};
use nestar_engine::comm::{Comm, DiagnosticColumns, Reduce};
use nestar_engine::data::criteria::QuantityFn;
use nestar_engine::data::{
    CellMap, CellMark, CellSubcycle, CellValue, DerivedInputs, LevelRows, Parameters, Pool,
};
use nestar_engine::mesh::Levels;
use nestar_engine::step::{Read, Remarks};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::hydro::Conserved;
use radiation::{Radiation, RadiationTable};
pub use radiation::{RadiationColumns, RadiationConfig};
use std::sync::Arc;
use times::{
    ChemistryLimit, cooling_time_6, cooling_time_9, cooling_time_12, cools_within_6,
    cools_within_9, cools_within_12, response_6, response_6_by, response_9, response_9_by,
    response_12, response_12_by,
};

/// Plugin for the table `[chemistry]`.
pub struct Chemistry;

/// Scalars; 6, 9 and 12 species use the first 5, 8 and 11.
pub const SPECIES: [&str; 11] = [
    "HI", "HII", "HeI", "HeII", "HeIII", "HM", "H2I", "H2II", "DI", "DII", "HDI",
];
/// Sums of the account.
const ENERGIES: [&str; 3] = ["lost", "heated", "floored"];
/// Seconds in a million Julian years.
const MILLION_YEARS: f64 = 3.155_76e13;

/// Mass of each scalar in hydrogen masses, and heat capacity of its particle and electrons over Boltzmann's constant.
const MASS_AND_HEAT: [[f64; 2]; SPECIES.len()] = [
    [1.0, 1.5],
    [1.0, 3.0],
    [4.0, 1.5],
    [4.0, 3.0],
    [4.0, 4.5],
    [1.0, 0.0],
    [2.0, 2.5],
    [2.0, 3.0],
    [2.0, 1.5],
    [2.0, 3.0],
    [3.0, 2.5],
];

/// Writes the formula of the pressure at a temperature. The ratio of pressure and energy is that of atoms. `kelvin` changes with the scale
/// factor if the units change.
fn pressure(names: &[&str], kelvin: f64, is_changing: bool) -> String {
    let term = |(name, [mass, heat]): (&&str, [f64; 2])| {
        let factor = heat / mass / 1.5 / kelvin;
        format!("{factor:?}*fraction_{name}")
    };
    let terms: Vec<String> = names.iter().zip(MASS_AND_HEAT).map(term).collect();
    let expansion = match is_changing {
        true => "*scale_factor**2",
        false => "",
    };
    format!("density*temperature_k*({}){expansion}", terms.join(" + "))
}

/// Returns the scalars of a number of species.
fn scalars(species: u32) -> &'static [&'static str] {
    &SPECIES[..species as usize - 1]
}

impl Plugin for Chemistry {
    fn name(&self) -> &str {
        "chemistry"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "cooling", "scenario"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("chemistry") {
            return Ok(());
        }
        if let Some(&floors) = sim.world.get_resource::<GasFloors>() {
            // a missing floor has just been filled in
            let own = |deck: &mut Deck| Ok(ChemistryConfig::read(deck)?.floor_k.unwrap_or(0.0));
            floors.hold_temperature(&mut sim.deck, "chemistry.floor_k", own)?;
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
        let rest = GasFrame::Rest;
        sim.world.insert_resource(PressureFormula {
            text: pressure(names, kelvin, Units::are_changing(sim)),
            curves: Vec::new(),
        });
        match config.species {
            6 => {
                sim.derived::<temperature_6>(t, "K", rest, names, &hot)?;
                sim.derived::<electrons_6>(e, "1", rest, names, hydrogen)?;
                name_time::<cooling_time_6>(sim, names, config)
            }
            9 => {
                sim.derived::<temperature_9>(t, "K", rest, names, &hot)?;
                sim.derived::<electrons_9>(e, "1", rest, names, hydrogen)?;
                name_time::<cooling_time_9>(sim, names, config)
            }
            _ => {
                sim.derived::<temperature_12>(t, "K", rest, names, &hot)?;
                sim.derived::<electrons_12>(e, "1", rest, names, hydrogen)?;
                name_time::<cooling_time_12>(sim, names, config)
            }
        }
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("chemistry") {
            return Ok(());
        }
        let config = ChemistryConfig::read(&mut sim.deck)?;
        require_gas(sim)?;
        if config.initial == InitialSpecies::Given {
            require_species(sim, scalars(config.species))?;
        }
        let with = &cell_parameters(sim, config, sim.world.resource::<GasModel>())?;
        register_density_range(sim, with);
        match with.config.species {
            6 => {
                register_cooling_time::<cooling_time_6>(sim, with)?;
                register_limits::<response_6, response_6_by, cools_within_6>(sim, with)?;
                register::<react_6, react_6_by, ionise_6, rescale_elements_6>(sim, with, 1.0)
            }
            9 => {
                register_cooling_time::<cooling_time_9>(sim, with)?;
                register_limits::<response_9, response_9_by, cools_within_9>(sim, with)?;
                register::<react_9, react_9_by, ionise_9, rescale_elements_9>(sim, with, 3.0)
            }
            _ => {
                register_cooling_time::<cooling_time_12>(sim, with)?;
                register_limits::<response_12, response_12_by, cools_within_12>(sim, with)?;
                register::<react_12, react_12_by, ionise_12, rescale_elements_12>(sim, with, 5.0)
            }
        }
    }
}

/// Configuration and parameters of cells.
struct ChemistrySetup {
    config: ChemistryConfig,
    cells: Parameters<ChemistryParameters<f64>>,
    /// Heating by a formula.
    numbers: Option<Arc<DerivedInputs>>,
}

/// Key of the radiation background.
const RADIATION: &str = "chemistry.radiation";
/// Key of the redshift of the radiation.
const REDSHIFT: &str = "chemistry.redshift";

/// Returns the redshifts of a run, from the lowest to the highest, and the key that gives them; `None` if it has none. In an expanding universe
/// they follow from the clock.
///
/// # Errors
/// The deck gives a redshift in an expanding universe.
fn redshifts(
    sim: &Engine,
    config: &ChemistryConfig,
) -> Result<(Option<[f64; 2]>, &'static str), DeckError> {
    if !Units::are_changing(sim) {
        return Ok((config.redshift.map(|z| [z; 2]), REDSHIFT));
    }
    if config.redshift.is_some() {
        let why = "the redshift follows from the clock: remove `chemistry.redshift`";
        return Err(sim.deck.error_at(REDSHIFT, why));
    }
    let levels = sim.world.resource::<Levels>();
    // a table may begin and end where the run does
    let rounded = |z: f64| (z * 1e9).round() / 1e9;
    let redshift = |time| rounded(1.0 / levels.numbers_at(time)[SCALE_FACTOR] - 1.0);
    let last = redshift(sim.settings.time.end).max(0.0);
    Ok((Some([last, redshift(0.0)]), RADIATION))
}

fn cell_parameters(
    sim: &Engine,
    config: ChemistryConfig,
    model: &GasModel,
) -> Result<ChemistrySetup, Error> {
    let (deck, units) = (&sim.deck, Units::of(sim, "[chemistry]")?);
    let (range, key) = redshifts(sim, &config)?;
    let table = RadiationTable::read(config.radiation.as_ref(), deck, range, key)?;
    let (heating, numbers) = heat(&config, deck, model)?;
    let per_erg = MILLION_YEARS / BOLTZMANN;
    let isothermal = i32::from(deck.has("initial.temperature_k"));
    let (network, own) = (config.network(), config.clone());
    let (is_changing, dust) = (Units::are_changing(sim), config.photoelectric * per_erg);
    let cells = units.parameters(sim, move |units, scale_factor| {
        let redshift = match (is_changing, range) {
            // the end of the table may be passed by rounding
            (true, Some([last, first])) => Some((1.0 / scale_factor - 1.0).clamp(last, first)),
            _ => own.redshift,
        };
        let more = table.as_ref().zip(redshift);
        let more = more.map_or_else(Radiation::default, |(table, z)| table.at(z));
        let mut network = network.with_radiation(&own.background(&more, redshift));
        network.floor = own.floor(redshift);
        ChemistryParameters {
            network,
            hydrogen: own.hydrogen_fraction,
            per_cm3: units.number_density(),
            kelvin: units.temperature(),
            myr: units.time / MILLION_YEARS,
            heating: heating * per_erg,
            dust,
            per_erg,
            most: own.max_substeps as i32,
            isothermal,
        }
    });
    Ok(ChemistrySetup {
        config,
        cells,
        numbers,
    })
}

/// Defines the cooling time for criteria, formulas and plots.
fn name_time<T: CellValue<Parameters = ChemistryParameters<f64>>>(
    sim: &mut Engine,
    names: &'static [&'static str],
    config: ChemistryConfig,
) -> Result<(), Error> {
    let choose = move |sim: &mut Engine, model: &GasModel| {
        let ChemistrySetup { cells, .. } = cell_parameters(sim, config, model)?;
        Ok((QuantityFn::with::<T>(cells), names))
    };
    sim.derived_when_built("cooling_time", "time", T::DOC, choose)
}

/// Adds the shortest cooling time to the diagnostics.
fn register_cooling_time<T: CellValue<Parameters = ChemistryParameters<f64>>>(
    sim: &mut Engine,
    ChemistrySetup { config, cells, .. }: &ChemistrySetup,
) -> Result<(), Error> {
    for name in ENERGIES {
        let energy = "mass*length**2/time**2";
        DiagnosticColumns::set_units(&mut sim.world, format!("chemistry_{name}"), energy);
    }
    let mut sim = sim.at_rest(scalars(config.species))?;
    let (name, cells) = ("cooling_time_least", cells.clone());
    sim.column::<Gas, T>(name, Reduce::Smallest, cells)
        .unit("time");
    Ok(())
}

/// Compiles the heating rate: a constant, or a formula.
fn heat(
    config: &ChemistryConfig,
    deck: &Deck,
    model: &GasModel,
) -> Result<(f64, Option<Arc<DerivedInputs>>), DeckError> {
    // variables that reactions do not change
    let stays = |name: &String| ["x", "y", "z", "r", "t", "density"].contains(&&**name);
    let mut names = vocabulary_of_rates(model);
    names.retain(|(name, _)| stays(name));
    let (number, constant) = heating(deck, "chemistry.heating", &config.heating, names)?;
    check_heating(deck, "chemistry.heating", constant)?;
    Ok(match constant {
        Some(constant) => (constant, None),
        None => (0.0, Some(Arc::new(DerivedInputs::new(vec![number])))),
    })
}

/// Checks that the gas has the adiabatic index of atoms and is not frozen.
fn require_gas(sim: &Engine) -> Result<(), Error> {
    let model = sim.world.resource::<GasModel>();
    if (model.gamma - 5.0 / 3.0).abs() > 1e-6 {
        let why = "[chemistry] assumes the heat capacity of atoms (the fraction of molecules is small): \
                   set `hydro.gamma = 1.6666666666666667`";
        return Err(sim.deck.error_at("hydro.gamma", why).into());
    }
    if model.frozen {
        let why = "[chemistry] needs gas that is not frozen: remove `hydro.frozen`";
        return Err(sim.deck.error_at("hydro.frozen", why).into());
    }
    Ok(())
}

/// Checks that the initial state defines at least one species.
fn require_species(sim: &Engine, species: &[&str]) -> Result<(), DeckError> {
    let model = sim.world.resource::<GasModel>();
    let is_one = |n: &usize| species.contains(&&*model.scalars[*n]);
    let given = sim.world.get_resource::<InitialScalars>();
    let none = given.is_some_and(|given| !given.0.iter().any(is_one));
    if !none || !sim.settings.run.start_from.is_empty() {
        return Ok(());
    }
    let why = format!(
        "`chemistry.initial = \"given\"` needs species from the scenario, which gives none: add their mass fractions, \
         `initial.scalars.HI`, `initial.scalars.HII`, … (scenario = \"formula\"; arrays of `zarr.scalars` with scenario = \"zarr\"; species: {}), or \
         set `chemistry.initial = \"equilibrium\"`",
        species.join(", ")
    );
    Err(sim.deck.error_at("chemistry.initial", why))
}

/// Registers the time-step limit (`B` with heating by a formula) and the criterion of the deck.
fn register_limits<L, B, C>(
    sim: &mut Engine,
    ChemistrySetup {
        config,
        cells,
        numbers,
    }: &ChemistrySetup,
) -> Result<(), Error>
where
    L: CellValue<Parameters = ChemistryLimit<f64>>,
    B: CellValue<Parameters = ChemistryLimit<f64>>,
    C: CellMark<Parameters = ChemistryLimit<f64>>,
{
    let mut sim = sim.at_rest(scalars(config.species))?;
    let share = |of: f64| {
        cells.map(move |cells| ChemistryLimit {
            chemistry: cells.clone(),
            of,
        })
    };
    if config.courant > 0.0 {
        let share = share(config.courant);
        match numbers {
            None => sim.limit::<Gas, L>("chemistry", share),
            Some(numbers) => sim
                .with_numbers(numbers)
                .limit::<Gas, B>("chemistry", share),
        }
    }
    if config.length_cells > 0.0 {
        sim.criterion::<Gas, C>(share(config.length_cells));
    }
    Ok(())
}

/// Registers reactions (`B` with heating by a formula), initial ionisation, and the rescaling of species to the
/// elements after flux corrections. The cost of a sub-step is `weight` times the rest of the step of a cell.
fn register<M, B, I, E>(
    sim: &mut Engine,
    ChemistrySetup {
        config,
        cells,
        numbers,
    }: &ChemistrySetup,
    weight: f64,
) -> Result<(), Error>
where
    M: CellSubcycle<Parameters = ChemistryParameters<f64>>,
    B: CellSubcycle<Parameters = ChemistryParameters<f64>>,
    I: CellMap<Parameters = ChemistryParameters<f64>>,
    E: CellMap<Parameters = ChemistryParameters<f64>>,
{
    let mut sim = sim.at_rest(scalars(config.species))?;
    if config.initial == InitialSpecies::Equilibrium {
        sim.initial::<Gas, I>(cells.clone());
    }
    add_update::<Gas, E>(
        "elements",
        sim.selection(),
        Synchronise::Correct,
        cells.clone(),
    );
    // the sub-steps of calls double, from one on
    let calls = config.max_substeps.next_power_of_two().ilog2() as usize + 2;
    let attempts = Subcycling::of(calls)
        .account("chemistry", &ENERGIES)
        .weight(weight);
    let cells = cells.clone();
    match numbers {
        None => sim.subcycle::<Gas, M>(attempts, cells),
        Some(numbers) => sim
            .with_numbers(numbers)
            .subcycle::<Gas, B>(attempts, cells),
    }
}

/// Hydrogen nuclei per cm^3 above which lines of H2 are opaque (Ripamonti & Abel 2004, MNRAS 348, 1019).
const OPAQUE_LINES: f64 = 1e10;

/// Largest density since the previous root step, and whether the run has been told.
#[derive(Resource)]
struct DensityRange {
    /// Parameters with the hydrogen nuclei per cm^3 per code unit of density.
    cells: Parameters<ChemistryParameters<f64>>,
    /// Largest number of hydrogen nuclei per cm^3 on this rank.
    densest: f64,
    is_told: bool,
}

/// Registers the remark for networks with H2.
fn register_density_range(sim: &mut Engine, setup: &ChemistrySetup) {
    if setup.config.species < 9 {
        return;
    }
    sim.world.insert_resource(DensityRange {
        cells: setup.cells.clone(),
        densest: 0.0,
        is_told: false,
    });
    sim.system_in(Limit::Propose, compare_density_with_range);
    (sim.selection()).prepare::<Gas>(
        specific_volume::ITEM.name,
        Pool::prepare_reduction::<specific_volume>,
    );
}

#[device]
fn specific_volume<R: Real>(u: Conserved<R>) -> R {
    1.0 / u.density
}

/// Measures the density of the level; on the root level it tells the run, once, that some gas is too dense.
fn compare_density_with_range(
    rows: LevelRows,
    gas: Read<Gas>,
    mut range: ResMut<DensityRange>,
    mut remarks: ResMut<Remarks>,
    others: Comm,
) -> Result<(), Error> {
    if range.is_told || rows.is_estimate() {
        return Ok(());
    }
    let cells = range.cells.at(rows.numbers_in_step());
    let per_density = cells.hydrogen * cells.per_cm3;
    let density = per_density / gas.reduce::<specific_volume>(&rows, (), &[]);
    range.densest = range.densest.max(density);
    if rows.level() > 0 {
        return Ok(());
    }
    // positive numbers have the order of their bits
    let densest = f64::from_bits(others.max(range.densest.to_bits())?);
    if densest > OPAQUE_LINES {
        range.is_told = true;
        remarks.0.push(format!(
            "note: [chemistry] reaches {densest:.1e} hydrogen nuclei per cm^3; above {OPAQUE_LINES:e} lines of H2 are opaque, which the \
             network does not include: the gas cools too fast"
        ));
    }
    Ok(())
}
