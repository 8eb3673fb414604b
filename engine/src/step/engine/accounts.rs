//! How plugins open accounts.

use super::Engine;
use crate::ranks::Columns;
use crate::step::state::{StateOperations, require_name};
use crate::step::{Account, Accounts, Catalogue, Error};
use std::sync::Arc;

impl Engine {
    /// Opens an account: running totals of so many numbers with these names, from the beginning of the simulation on, over all leaf
    /// cells and ranks. A system adds to it what [`map_attempts_with`](crate::step::Write::map_attempts_with) gives:
    /// `accounts.add(account, &tally)` with a parameter `mut accounts: ResMut<Accounts>`. The totals are columns `NAME_NUMBER` of the
    /// diagnostics, in the order given, and part of every snapshot; they lose nothing to round-off, and are the same on any number of
    /// ranks.
    ///
    /// # Errors
    /// The name is taken; a name has other characters than letters, digits and `_`.
    pub fn account(&mut self, name: &str, numbers: &[&str]) -> Result<Account, Error> {
        for name in numbers.iter().chain([&name]) {
            require_name(name, "account")?;
        }
        let account = self.world.resource_mut::<Accounts>().open(name, numbers);
        let state = StateOperations {
            version: 1,
            save: Arc::new(move |world| world.resource::<Accounts>().save(account)),
            load: Arc::new(move |world, bytes| {
                world.resource_mut::<Accounts>().load(account, bytes)
            }),
        };
        self.keep_state(&format!("account_{name}"), state)?;
        let columns: Vec<String> = numbers.iter().map(|n| format!("{name}_{n}")).collect();
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        for column in &columns {
            catalogue.add("column", column, "A running total of an account.");
        }
        Columns::add_numbers(&mut self.world, columns, move |world| {
            Ok(world.resource::<Accounts>().totals(account))
        });
        Ok(account)
    }
}
