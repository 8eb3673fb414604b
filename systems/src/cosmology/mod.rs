//! An expanding universe: the table `[cosmology]`.
//!
//! The code units follow the expansion (supercomoving variables, Martel & Shapiro 1998): a code length is the comoving unit of length
//! times the scale factor `a`, a code time `a^2/H0`, and a code mass is constant. Gas with a ratio of specific heats of 5/3 and particles
//! then keep their equations, without a term for the expansion. Newton's constant in code units is `a` times that of today, and this
//! factor is the only one: the potential is stored without it, and kicks multiply by it at their own time
//! ([`gravity_strength`](crate::fields::gravity_strength)).
//!
//! Scale factor and age are functions of the clock ([`Background`]) and no state. Gas with another ratio of specific heats loses or gains
//! internal energy by one factor in each step.

mod background;
mod config;
mod energy;
mod grafic;
mod perturbations;
mod second_order;
mod spectrum;
mod spectrum_table;
mod systems;

pub use background::{Background, DensityParameters};
pub use config::{CosmologyConfig, Preset};
pub use perturbations::{PerturbationsConfig, SpectrumShape};
pub use spectrum::{Normalisation, PrimordialAmplitude, Shape, Spectrum, SpectrumParameters};
pub use spectrum_table::SpectrumTable;

use crate::declare::{Declare, GasFrame};
use crate::fields::quantities::scale_factor;
use crate::fields::{CriticalDensity, GasModel, InitialPerturbations, PerturbationField};
use config::Universe;
use grafic::Grafic;
use nestar_deck::{Deck, DeckError};
use nestar_device::{Place, Real, device};
use nestar_engine::comm::{DiagnosticColumns, Ranks};
use nestar_engine::mesh::{Levels, Topology};
use nestar_engine::step::memory::machine;
use nestar_engine::step::{ChangingUnits, Remarks, RunFacts};
use nestar_engine::{Engine, Error, Plugin};
use perturbations::Perturbations;
use std::sync::Arc;

/// Plugin for the table `[cosmology]`.
pub struct Cosmology;

/// Name of the table.
const TABLE: &str = "cosmology";
/// Name of the table of the initial perturbations.
const PERTURBATIONS: &str = "perturbations";

/// Keys that give the values of a snapshot their meaning.
const KEPT: [&str; 9] = [
    "cosmology.preset",
    "cosmology.omega_m",
    "cosmology.omega_lambda",
    "cosmology.omega_r",
    "cosmology.h",
    "cosmology.w0",
    "cosmology.wa",
    "cosmology.start_redshift",
    "cosmology.length",
];

/// Tables that do not know changing units.
const REFUSED: [(&str, &str); 5] = [
    ("external", "its forces are given in constant units"),
    ("mhd", "the expansion does not act on magnetic fields"),
    ("viscosity", "its coefficient is given in constant units"),
    ("conduction", "its coefficient is given in constant units"),
    ("spheres", "they are in equilibrium without expansion"),
];

/// Redshift.
#[device]
fn redshift<R: Real>(at: &Place<R>) -> R {
    R::from_f64(1.0 / at.numbers[0] - 1.0)
}

impl Cosmology {
    /// Defines the code units and the times of a run by the table `[cosmology]`, before other tables are read.
    ///
    /// # Errors
    /// The table is invalid; the deck gives units or the end time as well.
    fn prepare_deck(deck: &mut Deck) -> Result<(), DeckError> {
        let config: CosmologyConfig = deck.table(TABLE)?;
        let Universe {
            background,
            range,
            units,
            ..
        } = config.universe(deck)?;
        deck.define_units(TABLE, units)?;
        let time = |redshift: &f64| background.time_of(1.0 / (1.0 + redshift));
        let end = background.time_of(range[1]);
        deck.derive("time.end", "cosmology.end_redshift", &[end], false)?;
        let times: Vec<f64> = config.redshifts.iter().map(time).collect();
        match times.is_empty() {
            true => Ok(()),
            false => deck.derive("output.times", "cosmology.redshifts", &times, true),
        }
    }

    /// Refuses tables and settings that do not go with an expansion.
    fn check(sim: &Engine) -> Result<(), Error> {
        let deck = &sim.deck;
        for (table, why) in REFUSED {
            if deck.has(table) {
                let why = format!("[{table}] does not work with [{TABLE}]: {why}");
                return Err(deck.error_at(table, why).into());
            }
        }
        if !deck.has("gravity") {
            let why = "[cosmology] needs a table [gravity]: matter of a universe attracts";
            return Err(deck.error_at(TABLE, why).into());
        }
        let gravity = deck.resolved_at("gravity").unwrap_or_default();
        if gravity.get("force").is_some_and(|force| force == "stress") {
            let why = "\"stress\" does not work with [cosmology]: set gravity.force = \"gradient\"";
            return Err(deck.error_at("gravity.force", why).into());
        }
        let faces = sim.settings.domain.boundary.faces();
        if faces.iter().flatten().any(|face| face.word() != "periodic") {
            let why = "[cosmology] needs periodic boundaries: set domain.boundary = \"periodic\"";
            return Err(deck.error_at("domain.boundary", why).into());
        }
        if !sim.world.resource::<GasModel>().equation.has_energy() {
            let why = "[cosmology] needs gas with an energy, whose temperature follows the expansion: set hydro.eos = \"gamma-law\"";
            return Err(deck.error_at("hydro.eos", why).into());
        }
        Ok(())
    }
}

impl Plugin for Cosmology {
    fn name(&self) -> &str {
        TABLE
    }

    fn after(&self) -> &[&str] {
        &["hydro", "gravity"]
    }

    fn prepare(&self, deck: &mut Deck) -> Result<(), Error> {
        match deck.has(TABLE) {
            true => Ok(Self::prepare_deck(deck)?),
            false => Ok(()),
        }
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has(TABLE) {
            return Ok(());
        }
        let config: CosmologyConfig = sim.deck.table(TABLE)?;
        let universe = config.universe(&sim.deck)?;
        let background = Arc::new(universe.background.clone());
        let table = background.clone();
        let mut levels = sim.world.resource_mut::<Levels>();
        levels.define_numbers(move |time| table.scale_factor_and_age(time));
        sim.world.insert_resource(systems::Expansion {
            background: background.clone(),
            max_growth: config.max_expansion,
        });
        let table = background.clone();
        let critical = move |time| table.critical_density(table.scale_factor(time));
        sim.world
            .insert_resource(CriticalDensity(Arc::new(critical)));
        follow_units(sim, &universe, background);
        sim.derived::<scale_factor>("scale_factor", "1", GasFrame::Grid, &[], &[])?;
        sim.derived::<redshift>("redshift", "1", GasFrame::Grid, &[], &[])
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has(TABLE) {
            return match sim.deck.has(PERTURBATIONS) {
                true => {
                    let why = "[perturbations] needs a table [cosmology]: add it";
                    Err(sim.deck.error_at(PERTURBATIONS, why).into())
                }
                false => Ok(()),
            };
        }
        Self::check(sim)?;
        if sim.deck.has(PERTURBATIONS) {
            perturb(sim)?;
        }
        sim.keep_keys(&KEPT);
        let model = sim.world.resource::<GasModel>();
        if model.internal_energy().is_none() && !model.frozen {
            let why = "[cosmology] cold gas falls with high Mach numbers, where the total energy does not tell its temperature: \
                       set hydro.dual_energy = true";
            sim.world.resource_mut::<Remarks>().0.push(why.into());
        }
        systems::register(sim)?;
        energy::register(sim)?;
        add_columns(sim);
        Ok(())
    }
}

/// Adds the columns of the expansion to the diagnostics.
fn add_columns(sim: &mut Engine) {
    let names = ["scale_factor", "redshift", "age"];
    DiagnosticColumns::add_numbers(&mut sim.world, names, |world| {
        let levels = world.resource::<Levels>();
        let [a, age] = levels.numbers_at(levels.time(0));
        Ok(vec![a, redshift_of(a), age])
    });
}

/// Returns the redshift at a scale factor to twelve decimals, so that it is 0 today.
fn redshift_of(a: f64) -> f64 {
    ((1.0 / a - 1.0) * 1e12).round() / 1e12 + 0.0
}

/// Prepares the initial perturbations.
fn perturb(sim: &mut Engine) -> Result<(), Error> {
    let config: PerturbationsConfig = sim.deck.table(PERTURBATIONS)?;
    let universe: CosmologyConfig = sim.deck.table(TABLE)?;
    let universe = universe.universe(&sim.deck)?;
    if config.omega_b >= universe.parameters.matter {
        let why = format!(
            "`perturbations.omega_b` must be below the density parameter of all matter, {}",
            universe.parameters.matter
        );
        return Err(sim.deck.error_at("perturbations.omega_b", why).into());
    }
    let domain = sim.world.resource::<Topology>().domain;
    let field: Arc<dyn PerturbationField> = match &config.grafic {
        Some(folder) => Arc::new(Grafic::new(folder, &config, &universe, &sim.deck, domain)?),
        None => {
            let stream = sim.random_stream("initial perturbations", config.seed)?;
            let deck = &sim.deck;
            let random = Perturbations::new(&config, &universe, deck, stream, domain)?;
            let ranks = sim.world.resource::<Ranks>();
            let sharers = ranks.communicator().placement().local_size.max(1) as u64;
            if let Some(free) = machine::free() {
                random.check_memory(deck, free / sharers)?;
            }
            Arc::new(random)
        }
    };
    sim.world.insert_resource(InitialPerturbations(field));
    Ok(())
}

/// Registers the units and the attributes of snapshots as functions of the simulation time.
fn follow_units(sim: &mut Engine, universe: &Universe, background: Arc<Background>) {
    let table = background.clone();
    let scale_factor = move |time| table.scale_factor(time);
    sim.world
        .insert_resource(ChangingUnits(Some(Arc::new(scale_factor))));
    let mut facts = sim.world.resource_mut::<RunFacts>();
    let parameters = universe.parameters;
    for (name, number) in [
        ("omega_matter", parameters.matter),
        ("omega_lambda", parameters.dark_energy),
        ("omega_radiation", parameters.radiation),
        ("hubble", 100.0 * universe.h),
    ] {
        facts.constant.insert(name.into(), number);
    }
    facts.of_time.push(Arc::new(move |time| {
        let [a, age] = background.scale_factor_and_age(time);
        [
            ("scale_factor", a),
            ("redshift", redshift_of(a)),
            ("hubble_rate", background.hubble(a)),
            ("age", age),
            ("growth_factor", background.growth(a)),
        ]
        .map(|(name, number)| (name.to_string(), number))
        .to_vec()
    }));
}

#[cfg(test)]
mod tests;
