//! How plugins open accounts.

use super::Engine;
use crate::comm::DiagnosticColumns;
use crate::step::state::{StateOperations, require_name};
use crate::step::{BudgetId, Budgets, Catalogue, Error};
use std::sync::Arc;

impl Engine {
    /// Opens an account: running totals of so many numbers with these names, from the beginning of the simulation on, over all leaf
    /// cells and ranks. A system adds to it what [`map_attempts_with`](crate::step::Write::map_attempts_with) gives:
    /// `accounts.add(account, &tally)` with a parameter `mut accounts: ResMut<Accounts>`. The totals are columns `NAME_NUMBER` of the
    /// diagnostics, in the order given, and behind them `NAME_NUMBER_LEVEL`, of what cells have given while they were on the level;
    /// and part of every snapshot. They lose nothing to round-off before they are written, and are the same on any number of ranks.
    ///
    /// # Errors
    /// The name is taken; a name has other characters than letters, digits and `_`.
    pub fn register_budget(&mut self, name: &str, numbers: &[&str]) -> Result<BudgetId, Error> {
        for name in numbers.iter().chain([&name]) {
            require_name(name, "account")?;
        }
        let levels = self.levels();
        let mut accounts = self.world.resource_mut::<Budgets>();
        let account = accounts.open(name, numbers, levels);
        let columns = accounts.names(account);
        let state = StateOperations {
            version: 2,
            save: Arc::new(move |world| world.resource::<Budgets>().save(account)),
            load: Arc::new(move |world, bytes| {
                world.resource_mut::<Budgets>().load(account, bytes)
            }),
        };
        self.keep_state(&format!("account_{name}"), state)?;
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        for column in &columns[..numbers.len()] {
            let doc = format!("A running total of an account; {column}_LEVEL: that of a level.");
            catalogue.add("column", column, &doc);
        }
        DiagnosticColumns::add_numbers(&mut self.world, columns, move |world| {
            Ok(world.resource::<Budgets>().values(account))
        });
        Ok(account)
    }
}
