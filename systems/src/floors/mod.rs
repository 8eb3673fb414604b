//! Floors of the gas: lowest density, pressure, temperature and Jeans pressure.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers cell functions of `cells.rs`, from which the
//! engine makes systems and columns.

mod cells;
mod config;

pub use config::FloorsConfig;

use crate::fields::{Gas, GasFloors, GasModel, GravitationalConstant, PressureFormula};
use crate::order::{Advance, Synchronise};
use crate::register::Register;
use crate::subcycling::StateSelection;
use bevy_ecs::prelude::*;
use cells::{
    FloorValues, GAINS, floor_both, floor_both_by, floor_gas, floor_gas_by, floor_scalar,
    floored_density, floored_fraction,
};
use nestar_deck::Formula;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};
use nestar_engine::data::{CellSubcycle, Components, DerivedInputs, LevelRows, Pool};
use nestar_engine::mesh::Topology;
use nestar_engine::step::{BudgetId, Budgets, Catalogue, Replays, Write};
use nestar_engine::{Engine, Error, Plugin};
use std::sync::Arc;

/// Plugin for the table `[floors]`.
pub struct Floors;

/// Tables with sources and fluxes that may cool the gas.
const SOURCES: [&str; 5] = ["sources", "cooling", "chemistry", "viscosity", "conduction"];

/// The lowest density, the scalars that it raises, and their budgets.
#[derive(Clone)]
struct ScalarFloors {
    density: [f64; 1],
    scalars: Vec<(Components, BudgetId)>,
}

impl Plugin for Floors {
    fn name(&self) -> &str {
        "floors"
    }

    fn after(&self) -> &[&str] {
        &[
            "hydro",
            "sources",
            "acceleration",
            "diffusion",
            "external",
            "gravity",
            "chemistry",
            "cooling",
        ]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("floors") {
            return Ok(());
        }
        let config = FloorsConfig::read(&mut sim.deck)?;
        sim.world.insert_resource(GasFloors {
            temperature_k: config.temperature_k,
            jeans_cells: config.jeans_cells,
        });
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("floors") {
            return Ok(());
        }
        let config = FloorsConfig::read(&mut sim.deck)?;
        if config.is_off() {
            return Ok(());
        }
        let model = sim.world.resource::<GasModel>().clone();
        if model.frozen {
            let why = "[floors] needs gas that is not frozen: remove `hydro.frozen`";
            return Err(sim.deck.error_at("floors", why).into());
        }
        let numbers = temperature(sim, &config, &model)?;
        let constant = match (&numbers, &model.physical) {
            (None, Some(physical)) if config.temperature_k > 0.0 => {
                config.temperature_k / physical.kelvin
            }
            _ => config.temperature,
        };
        let parameters = FloorValues {
            density: config.density,
            temperature: constant,
            pressure: config.pressure,
            jeans: jeans(sim, &config, model.gamma),
            energy: 1.0 / (model.gamma - 1.0),
        };
        let scalars = scalars(sim, config.density, &model)?;
        match (model.dual.is_some(), numbers) {
            (false, None) => register::<floor_gas>(sim, parameters, None, scalars),
            (false, some) => register::<floor_gas_by>(sim, parameters, some, scalars),
            (true, None) => register::<floor_both>(sim, parameters, None, scalars),
            (true, some) => register::<floor_both_by>(sim, parameters, some, scalars),
        }
    }
}

/// Returns the pressure over the squared density at which a Jeans length has the required number of cells of the finest
/// level.
fn jeans(sim: &Engine, config: &FloorsConfig, gamma: f64) -> f64 {
    let Some(gravity) = sim.world.get_resource::<GravitationalConstant>() else {
        return 0.0;
    };
    let topology = sim.world.resource::<Topology>();
    let width = topology.domain.cell_width(topology.max_level);
    let length = config.jeans_cells * width[0].max(width[1]).max(width[2]);
    gravity.0 * length * length / (gamma * std::f64::consts::PI)
}

/// Compiles the pressure over the density at the lowest temperature, if it depends on density or species.
///
/// # Errors
/// A plugin that defines the temperature does not give the pressure at a temperature.
fn temperature(
    sim: &Engine,
    config: &FloorsConfig,
    model: &GasModel,
) -> Result<Option<Arc<DerivedInputs>>, Error> {
    let path = "floors.temperature_k";
    if config.temperature_k == 0.0 {
        return Ok(None);
    }
    let Some(PressureFormula { text, curves }) = &model.pressure_formula else {
        if model.replaces("temperature_k") {
            let why = "a plugin defines `temperature_k`, but not the pressure at a temperature (the resource `PressureFormula`): use \
                       `floors.temperature`, or let the plugin insert the resource";
            return Err(sim.deck.error_at(path, why).into());
        }
        return Ok(None);
    };
    // scalars are raised before the density
    let raised = |function, components| NamedQuantity {
        function,
        components,
        parameters: vec![config.density],
    };
    let fraction = |(n, name): (usize, &String)| {
        let components = vec![0, model.first_scalar() + n];
        let function = QuantityFn::of::<floored_fraction>();
        (format!("fraction_{name}"), raised(function, components))
    };
    let mut names: Vec<_> = model.scalars.iter().enumerate().map(fraction).collect();
    let density = raised(QuantityFn::of::<floored_density>(), vec![0]);
    names.push(("density".into(), density));
    let text = format!("({text})/density");
    let given = [("temperature_k".to_string(), config.temperature_k)];
    let compile = |names: &[(String, NamedQuantity)]| {
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let formula = Formula::with_curves(&text, &names, &given, curves);
        formula.map_err(|error| sim.deck.error_at(path, error.to_string()))
    };
    // only the variables in use, because these are computed in each cell
    let all = compile(&names)?;
    names.retain(|(name, _)| all.uses(name));
    let formula = compile(&names)?;
    let arguments = names.into_iter().map(|(_, number)| number).collect();
    let quantity = CellQuantity::Formula(formula, arguments, path.into());
    Ok(Some(Arc::new(DerivedInputs::new(vec![quantity]))))
}

/// Opens a budget for each scalar, if there is a density floor.
fn scalars(sim: &mut Engine, density: f64, model: &GasModel) -> Result<ScalarFloors, Error> {
    let names = model.scalars.iter().enumerate();
    let mut scalars = Vec::new();
    for (n, name) in names.filter(|_| density > 0.0) {
        let budget = sim.register_budget(&format!("floors_scalar_{name}"), &["mass"])?;
        DiagnosticColumns::set_units(&mut sim.world, format!("floors_scalar_{name}_mass"), "mass");
        let components = Components::of(&[0, model.first_scalar() + n]);
        StateSelection {
            components,
            ..sim.selection()
        }
        .prepare::<Gas>(
            floor_scalar::ITEM.name,
            Pool::prepare_subcycle::<floor_scalar>,
        );
        scalars.push((components, budget));
    }
    Ok(ScalarFloors {
        density: [density],
        scalars,
    })
}

/// Returns the unit of a sum.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("mass") => "mass",
        Some("energy") => "mass*length**2/time**2",
        _ => "mass*length/time",
    }
}

/// Registers the floors after each step of gas and gravity, after the sources of other tables, and after corrections by a
/// finer level.
fn register<M: CellSubcycle<Parameters = FloorValues<f64>>>(
    sim: &mut Engine,
    parameters: FloorValues<f64>,
    numbers: Option<Arc<DerivedInputs>>,
    scalars: ScalarFloors,
) -> Result<(), Error> {
    let budget = sim.register_budget("floors", &GAINS)?;
    for name in GAINS {
        DiagnosticColumns::set_units(&mut sim.world, format!("floors_{name}"), unit(name));
    }
    let mut selection = sim.selection();
    selection.numbers = numbers.clone();
    selection.prepare::<Gas>(M::ITEM.name, Pool::prepare_subcycle::<M>);
    let all = Components::default();
    let shared = Arc::new(parameters);
    Replays::add::<Gas, M>(&mut sim.world, all, numbers.clone(), 1, shared);
    let act = move |mut rows: LevelRows, mut gas: Write<Gas>, mut budgets: ResMut<Budgets>| {
        rows.name_sums("floors_scalar", &["mass"]);
        for (components, budget) in &scalars.scalars {
            rows.choose(*components);
            let totals = gas.iterate::<floor_scalar>(&rows, (), 1, &scalars.density);
            budgets.add(*budget, &totals);
        }
        rows.choose(all);
        rows.name_sums("floors", &GAINS);
        let totals = match &numbers {
            None => gas.iterate::<M>(&rows, (), 1, &parameters),
            Some(numbers) => gas.iterate::<M>(&rows, &**numbers, 1, &parameters),
        };
        budgets.add(budget, &totals);
    };
    let after_step = IntoSystem::into_system(act.clone()).with_name("floors of the gas");
    sim.system_in(Advance::Correct, after_step);
    if SOURCES.iter().any(|table| sim.deck.has(table)) {
        let sources = IntoSystem::into_system(act.clone()).with_name("floors after sources");
        sim.system_in(Advance::Sources, sources);
    }
    let act_corrected = move |rows: LevelRows, gas: Write<Gas>, budgets: ResMut<Budgets>| {
        // the initial hierarchy is synchronised, too
        if rows.view().clock.dt > 0.0 {
            act(rows, gas, budgets);
        }
    };
    let corrected = IntoSystem::into_system(act_corrected).with_name("floors of corrected gas");
    sim.system_in(Synchronise::Correct, corrected);
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    let doc = "Lowest density, temperature, pressure and Jeans pressure of the gas.";
    catalogue.add("source", "floors of the gas", doc).of("gas");
    Ok(())
}
