//! Functions that are called again and again in a cell until they are done, as sources: stiff reactions, cooling.

use crate::order::Advance;
use bevy_ecs::prelude::*;
use nestar_device::CellState;
use nestar_engine::comm::Ranks;
use nestar_engine::data::{CellSubcycle, Components, DerivedInputs, Field, LevelRows};
use nestar_engine::mesh::Costs;
use nestar_engine::step::{BudgetId, Budgets, Catalogue, Replays, RunCounters, Write};
use nestar_engine::{Engine, Error};
use nestar_kernels::mesh::subcycle::SubcycleResult;
use std::sync::Arc;

/// How a function is called by [`Register::subcycle`](crate::register::Register::subcycle).
#[derive(Clone, Copy, Debug)]
pub struct Subcycling {
    calls: usize,
    account: Option<(&'static str, &'static [&'static str])>,
    weight: f64,
}

impl Subcycling {
    /// At most so many calls in a cell and step; who needs more stops the run.
    #[must_use]
    pub const fn of(calls: usize) -> Self {
        Self {
            calls,
            account: None,
            weight: 0.0,
        }
    }

    /// Adds up what the function gives to be summed, under these names: the columns `NAME_NUMBER` of the diagnostics.
    #[must_use]
    pub const fn account(self, name: &'static str, numbers: &'static [&'static str]) -> Self {
        Self {
            account: Some((name, numbers)),
            ..self
        }
    }

    /// Lets ranks share patches out by the work that the function tells: a unit of work in a cell is as much as `weight` times the rest
    /// of the cell's step; 0: no weight.
    #[must_use]
    pub const fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

/// Adds such a source, of which the function reads `numbers`, where there are any, as the state of a second field.
pub(crate) fn subcycle_in<F: Field, M: CellSubcycle>(
    (sim, components): (&mut Engine, Components),
    attempts: Subcycling,
    numbers: Option<Arc<DerivedInputs>>,
    parameters: M::Parameters,
) -> Result<(), Error>
where
    M::Parameters: Send + Sync,
{
    let account = open::<M>(sim, attempts)?;
    let others = usize::from(numbers.is_some());
    let part = (attempts.weight > 0.0).then(|| (sim.register_cost_part(), attempts.weight));
    let parameters = Arc::new(parameters);
    let again = (components, numbers.clone());
    Replays::add::<F, M>(&mut sim.world, again, attempts.calls, parameters.clone());
    let attempt = move |mut rows: LevelRows,
                        mut field: Write<F>,
                        ranks: Res<Ranks>,
                        mut accounts: ResMut<Budgets>,
                        mut counters: ResMut<RunCounters>,
                        mut costs: Costs| {
        rows.choose(components);
        rows.name_sums(attempts.account.unwrap_or_default());
        let tally = match &numbers {
            None => field.map_attempts_with::<M>(&rows, &[], attempts.calls, &parameters),
            Some(numbers) => {
                field.map_attempts_by::<M>(&rows, numbers, attempts.calls, &parameters)
            }
        };
        counters.count_subcycles(&tally);
        if let Some(account) = account {
            accounts.add(account, &tally);
        }
        if let Some((part, weight)) = part
            && !ranks.is_single()
        {
            costs.weigh(rows.rows(), part, tally.work(), weight);
        }
    };
    let attempt = IntoSystem::into_system(attempt).with_name(format!("attempts {}", M::ITEM.name));
    sim.system_in(Advance::Sources, attempt);
    sim.check_field::<F>(M::ITEM.name, move |field| {
        field.fits_subcycle::<M>(&components, others)
    });
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    catalogue.add("attempts", M::ITEM.name, M::DOC).of(F::NAME);
    Ok(())
}

/// Opens the account of what the function gives.
fn open<M: CellSubcycle>(
    sim: &mut Engine,
    attempts: Subcycling,
) -> Result<Option<BudgetId>, Error> {
    let gives = <M::Result<f64> as SubcycleResult<f64>>::Sums::COUNT;
    let (name, numbers) = attempts.account.unwrap_or_default();
    if numbers.len() != gives {
        let (function, names) = (M::ITEM.name, numbers.len());
        return Err(Error::Setup(format!(
            "`{function}` gives {gives} numbers to be summed, its account names {names}: name each by `Subcycling::account`"
        )));
    }
    match gives {
        0 => Ok(None),
        _ => sim.register_budget(name, numbers).map(Some),
    }
}
