//! Floors of the gas: lowest density, pressure, temperature and Jeans pressure.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the plugin registers cell functions of `cells.rs`, from which the
//! engine makes systems and columns.

mod cells;
mod config;

pub use config::FloorsConfig;

use crate::fields::quantities::scale_factor;
use crate::fields::{
    Gas, GasFloors, GasModel, GravitationalConstant, PressureFormula, SCALE_FACTOR,
};
use crate::order::{Advance, Split, Synchronise};
use crate::register::Register;
use crate::subcycling::StateSelection;
use crate::units::Units;
use bevy_ecs::prelude::*;
use bevy_ecs::system::System;
use cells::{
    FloorValues, GAINS, floor_both, floor_both_by, floor_gas, floor_gas_by, floor_scalar,
    floored_density, floored_fraction,
};
use nestar_deck::Formula;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity, QuantityFn};
use nestar_engine::data::{CellSubcycle, Components, DerivedInputs, LevelRows, Parameters, Pool};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{BudgetId, Budgets, Catalogue, Replays, StepSet, StepVerdict, Write};
use nestar_engine::{Engine, Error, Plugin};
use std::marker::PhantomData;
use std::sync::Arc;

/// Plugin for the table `[floors]`.
pub struct Floors;

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
        let kelvins = match (&numbers, &model.physical) {
            (None, Some(physical)) if config.temperature_k > 0.0 => {
                Some(config.temperature_k / physical.kelvin)
            }
            _ => None,
        };
        let values = FloorValues {
            density: config.density,
            temperature: config.temperature,
            pressure: config.pressure,
            jeans: jeans(sim, &config, model.gamma),
            energy: 1.0 / (model.gamma - 1.0),
        };
        let at = move |a: f64| FloorValues {
            temperature: kelvins.map_or(values.temperature, |kelvins| kelvins * (a * a)),
            jeans: values.jeans * a,
            ..values
        };
        let parameters = match Units::are_changing(sim) {
            false => at(1.0).into(),
            true => Parameters::following(move |numbers| at(numbers[SCALE_FACTOR])),
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
    let present = NamedQuantity {
        function: QuantityFn::of::<scale_factor>(),
        components: Vec::new(),
        parameters: Vec::new(),
    };
    names.push(("scale_factor".into(), present));
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

/// What the systems of the floors need. `M` is the function of the floors.
struct FloorWork<M> {
    parameters: Parameters<FloorValues<f64>>,
    /// Components of the gas for `M`.
    gas: Components,
    numbers: Option<Arc<DerivedInputs>>,
    scalars: ScalarFloors,
    budget: BudgetId,
    function: PhantomData<fn() -> M>,
}

impl<M: CellSubcycle<Parameters = FloorValues<f64>>> FloorWork<M> {
    /// Raises the scalars, then the gas, of the current level at the end of its step, and adds the gains to the budgets.
    fn apply(&self, rows: &mut LevelRows, gas: &mut Write<Gas>, budgets: &mut Budgets) {
        rows.at_end();
        let parameters = self.parameters.at(rows.numbers_in_step());
        rows.name_sums("floors_scalar", &["mass"]);
        for (components, budget) in &self.scalars.scalars {
            rows.choose(*components);
            let totals = gas.iterate::<floor_scalar>(rows, (), 1, &self.scalars.density);
            budgets.add(*budget, &totals);
        }
        rows.choose(self.gas);
        rows.name_sums("floors", &GAINS);
        let totals = match &self.numbers {
            None => gas.iterate::<M>(rows, (), 1, &parameters),
            Some(numbers) => gas.iterate::<M>(rows, &**numbers, 1, &parameters),
        };
        budgets.add(self.budget, &totals);
    }
}

/// Returns the components of the gas for the functions of the floors: density, momentum, energy, and the internal energy with the dual-energy
/// formalism.
fn gas_for_floors(model: &GasModel) -> Components {
    match (model.magnetic_field(), model.internal_energy()) {
        (Some(_), Some(internal)) => Components::of(&[0, 1, 2, 3, 4, internal]),
        _ => Components::default(),
    }
}

/// Registers the function `M` of the floors. The systems are added when all plugins have added theirs.
fn register<M: CellSubcycle<Parameters = FloorValues<f64>>>(
    sim: &mut Engine,
    parameters: Parameters<FloorValues<f64>>,
    numbers: Option<Arc<DerivedInputs>>,
    scalars: ScalarFloors,
) -> Result<(), Error> {
    let gas = gas_for_floors(sim.world.resource::<GasModel>());
    let budget = sim.register_budget("floors", &GAINS)?;
    for name in GAINS {
        DiagnosticColumns::set_units(&mut sim.world, format!("floors_{name}"), unit(name));
    }
    let mut selection = sim.selection();
    selection.components = gas;
    selection.numbers = numbers.clone();
    selection.prepare::<Gas>(M::ITEM.name, Pool::prepare_subcycle::<M>);
    Replays::add::<Gas, M>(&mut sim.world, gas, numbers.clone(), 1, parameters.clone());
    let work = Arc::new(FloorWork::<M> {
        parameters,
        gas,
        numbers,
        scalars,
        budget,
        function: PhantomData,
    });
    sim.defer_setup(|sim| {
        sim.in_plugin("floors", |sim| add_systems(sim, work));
        Ok(())
    });
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    let doc = "Lowest density, temperature, pressure and Jeans pressure of the gas.";
    catalogue.add("source", "floors of the gas", doc).of("gas");
    Ok(())
}

/// Adds a system of the floors at the end of each set in which another system writes the gas, so that later sets read
/// floored gas.
fn add_systems<M: CellSubcycle<Parameters = FloorValues<f64>>>(
    sim: &mut Engine,
    work: Arc<FloorWork<M>>,
) {
    let own = work.clone();
    let apply = move |mut rows: LevelRows, mut gas: Write<Gas>, mut budgets: ResMut<Budgets>| {
        own.apply(&mut rows, &mut gas, &mut budgets);
    };
    let named = |name: String| IntoSystem::into_system(apply.clone()).with_name(name);
    add_after_writers(
        sim,
        Split::Sources,
        named("floors after split sources".into()),
    );
    let own = work.clone();
    let apply_to_accepted = move |mut rows: LevelRows,
                                  mut gas: Write<Gas>,
                                  mut budgets: ResMut<Budgets>,
                                  verdict: Res<StepVerdict>| {
        // the condition of the set was evaluated before the fluid
        if verdict.rejected.is_none() {
            own.apply(&mut rows, &mut gas, &mut budgets);
        }
    };
    let fluid = IntoSystem::into_system(apply_to_accepted).with_name("floors after Fluid");
    add_after_writers(sim, Advance::Fluid, fluid);
    for set in [
        Advance::Predict,
        Advance::Deposit,
        Advance::Potential,
        Advance::Couple,
        Advance::Correct,
        Advance::Sources,
    ] {
        add_after_writers(sim, set, named(format!("floors after {set:?}")));
    }
    let apply_in_steps = move |mut rows: LevelRows,
                               clock: Res<LevelClock>,
                               mut gas: Write<Gas>,
                               mut budgets: ResMut<Budgets>| {
        // the initial hierarchy is synchronised, too
        if clock.dt > 0.0 {
            work.apply(&mut rows, &mut gas, &mut budgets);
        }
    };
    let corrected = IntoSystem::into_system(apply_in_steps).with_name("floors of corrected gas");
    add_after_writers(sim, Synchronise::Correct, corrected);
}

/// Adds a system to a set in which another system writes the gas.
fn add_after_writers(sim: &mut Engine, set: impl StepSet, system: impl System<In = (), Out = ()>) {
    if sim.writes_in::<Gas>(set) {
        sim.system_in(set, system);
    }
}
