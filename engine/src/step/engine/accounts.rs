//! Registration of budgets.

use super::Engine;
use crate::comm::DiagnosticColumns;
use crate::step::state::{StateOperations, require_name};
use crate::step::{BudgetId, Budgets, Catalogue, Error};
use std::sync::Arc;

impl Engine {
    /// Opens a budget: running totals of named numbers over all leaf cells and ranks since the start of the
    /// simulation. A system adds the result of [`map_attempts_with`](crate::step::Write::map_attempts_with)
    /// by `budgets.add(id, &totals)` with a parameter `mut budgets: ResMut<Budgets>`. The totals become the
    /// diagnostics columns `NAME_NUMBER` and, per level, `NAME_NUMBER_LEVEL`. Snapshots store them. Sums are
    /// exact, so they do not depend on the number of ranks.
    ///
    /// # Errors
    /// The name is used already, or has other characters than letters, digits and `_`.
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
            let doc = format!("A running total of a budget; {column}_LEVEL: that of a level.");
            catalogue.add("column", column, &doc);
        }
        DiagnosticColumns::add_numbers(&mut self.world, columns, move |world| {
            Ok(world.resource::<Budgets>().values(account))
        });
        Ok(account)
    }
}
