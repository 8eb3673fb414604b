//! Sub-cycled sources: functions that are called repeatedly in a cell until they are done, such as stiff reactions.

use crate::order::Advance;
use bevy_ecs::prelude::*;
use nestar_device::CellState;
use nestar_engine::data::{
    CellSubcycle, Components, DerivedInputs, Field, InputList, LevelRows, Parameters, Patches, Pool,
};
use nestar_engine::mesh::{CELLS, Cost};
use nestar_engine::step::{
    BudgetId, Budgets, Catalogue, FunctionFields, OtherFields, OtherHandles, Replays, RunCounters,
    Write,
};
use nestar_engine::{Engine, Error};
use nestar_kernels::mesh::subcycle::SubcycleResult;
use std::sync::Arc;

/// Settings of a sub-cycled source; see [`Register::subcycle`](crate::register::Register::subcycle).
#[derive(Clone, Copy, Debug)]
pub struct Subcycling {
    calls: usize,
    account: Option<(&'static str, &'static [&'static str])>,
    weight: f64,
}

impl Subcycling {
    /// Sets the largest number of calls per cell and step; a cell that needs more stops the run.
    #[must_use]
    pub const fn of(calls: usize) -> Self {
        Self {
            calls,
            account: None,
            weight: 0.0,
        }
    }

    /// Sums the values that the function returns, under these names: diagnostics columns `NAME_NUMBER`.
    #[must_use]
    pub const fn account(self, name: &'static str, numbers: &'static [&'static str]) -> Self {
        Self {
            account: Some((name, numbers)),
            ..self
        }
    }

    /// Balances the load of the ranks by the measured work: a unit of work in a cell costs `weight` times the rest of
    /// its step; 0: off.
    #[must_use]
    pub const fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

/// Adds a sub-cycled source.
pub(crate) fn add_subcycle<F: FunctionFields, M: CellSubcycle>(
    mut selection: StateSelection,
    attempts: Subcycling,
    parameters: impl Into<Parameters<M::Parameters>>,
) -> Result<(), Error>
where
    M::Parameters: Send + Sync,
{
    selection.prepare::<F>(M::ITEM.name, Pool::prepare_subcycle::<M>);
    let StateSelection {
        sim,
        components,
        numbers,
    } = selection;
    let account = open::<M>(sim, attempts)?;
    let weight = attempts.weight;
    let measures = weight > 0.0 && measure_costs(sim);
    let parameters = parameters.into();
    Replays::add::<F::First, M>(
        &mut sim.world,
        components,
        numbers.clone(),
        attempts.calls,
        parameters.clone(),
    );
    let attempt = move |mut rows: LevelRows,
                        mut field: Write<F::First>,
                        others: OtherHandles<F>,
                        mut accounts: ResMut<Budgets>,
                        mut counters: ResMut<RunCounters>,
                        mut patches: Patches<&mut Cost>| {
        rows.choose(components);
        let (name, names) = attempts.account.unwrap_or_default();
        rows.name_sums(name, names);
        let inputs = F::Others::read(&others).with_numbers(numbers.as_deref());
        let parameters = parameters.at(rows.numbers_in_step());
        let tally = field.iterate::<M>(&rows, inputs, attempts.calls, &parameters);
        counters.count_subcycles(&tally);
        if let Some(account) = account {
            accounts.add(account, &tally);
        }
        if measures {
            for ((_, mut cost), &work) in patches.iter_mut().zip(tally.work()) {
                cost.0 += weight * f64::from(work) / CELLS as f64;
            }
        }
    };
    let attempt = IntoSystem::into_system(attempt).with_name(format!("attempts {}", M::ITEM.name));
    sim.system_in(Advance::Sources, attempt).in_sequence();
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    catalogue
        .add("attempts", M::ITEM.name, M::DOC)
        .of(F::First::NAME);
    Ok(())
}

/// Indicates that costs are reset in each step.
#[derive(Resource)]
struct CostsAreReset;

/// Registers the costs of patches as [`measure_costs`](crate::register::Register::measure_costs).
pub(crate) fn measure_costs(sim: &mut Engine) -> bool {
    let measures = sim.register_measured_cost();
    if measures && !sim.world.contains_resource::<CostsAreReset>() {
        sim.world.insert_resource(CostsAreReset);
        sim.system_in(Advance::Exchange, reset_costs);
    }
    measures
}

/// Resets the costs of the patches of a level; systems of its step add their work.
fn reset_costs(mut patches: Patches<&mut Cost>) {
    for (_, mut cost) in patches.iter_mut() {
        *cost = Cost(1.0);
    }
}

/// Opens the account for the sums of the function.
fn open<M: CellSubcycle>(
    sim: &mut Engine,
    attempts: Subcycling,
) -> Result<Option<BudgetId>, Error> {
    let gives = <M::Result<f64> as SubcycleResult<f64>>::Sums::COUNT;
    let (name, numbers) = attempts.account.unwrap_or_default();
    if numbers.len() != gives {
        let (function, names) = (M::ITEM.name, numbers.len());
        return Err(Error::Setup(format!(
            "`{function}` returns {gives} sums, but its account has {names} names: give one name per sum (`Subcycling::account`)"
        )));
    }
    match gives {
        0 => Ok(None),
        _ => sim.register_budget(name, numbers).map(Some),
    }
}

/// A simulation with the components and derived inputs that functions read; see
/// [`Register::with_scalars`](crate::register::Register::with_scalars).
pub struct StateSelection<'a> {
    /// Simulation.
    pub sim: &'a mut Engine,
    /// Components of the first field that form the first state, for [`LevelRows::choose`](nestar_engine::data::LevelRows::choose).
    pub components: Components,
    /// Derived inputs that form the second state.
    pub numbers: Option<Arc<DerivedInputs>>,
}

/// A method of [`Pool`] that checks that a function fits a field, its components and its inputs, and starts to compile it.
pub(crate) type Prepare<F> = fn(&Pool<F>, &Components, &InputList) -> Result<(), String>;

impl StateSelection<'_> {
    /// Checks, once all plugins are built, that the function `name` fits the fields and the derived inputs, and starts to
    /// compile it for a device.
    pub(crate) fn prepare<F: FunctionFields>(
        &mut self,
        name: &'static str,
        prepare: Prepare<F::First>,
    ) {
        let (components, numbers) = (self.components, self.numbers.clone());
        self.sim.check_fields::<F>(name, move |field, others| {
            prepare(field, &components, &others.with_numbers(numbers.as_deref()))
        });
    }
}
