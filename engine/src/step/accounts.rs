//! Accounts: what functions of cells give or take, added up over all leaf cells, levels, steps and ranks of a run.

use super::state::{StateOperations, require_name};
use super::{Catalogue, Engine, Error};
use crate::field::Tally;
use crate::ranks::{Columns, Ranks, RanksError, Reduction};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::exact::Exact;
use std::sync::Arc;

/// An account of [`Accounts`]: what [`Engine::account`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account(usize);

/// Running totals that plugins open by [`Engine::account`] and add to by [`Accounts::add`].
#[derive(Resource, Clone, Debug, Default)]
pub struct Accounts(Vec<Ledger>);

/// The totals of an account. Nothing is rounded: neither the order in which ranks, levels and steps add to it matters, nor where the
/// run was interrupted.
#[derive(Clone, Debug)]
struct Ledger {
    name: String,
    numbers: Vec<String>,
    /// Of all ranks, up to the end of the latest root step.
    totals: Vec<Exact>,
    /// Of this rank, since then.
    own: Vec<Exact>,
}

impl Accounts {
    /// Adds what cells of this rank have given in a step that stands.
    ///
    /// # Panics
    /// If the tally has another number of sums than the account.
    pub fn add(&mut self, account: Account, tally: &Tally) {
        let ledger = &mut self.0[account.0];
        let (name, has, gives) = (&ledger.name, ledger.own.len(), tally.count());
        assert!(has == gives, "the account `{name}` has {has} numbers, but is given {gives}");
        for (own, integral) in ledger.own.iter_mut().zip(tally.integrals()) {
            own.merge(&integral);
        }
    }

    /// Number `n` of an account, up to the end of the latest root step: the same on all ranks.
    ///
    /// # Panics
    /// If the account has not as many.
    #[must_use]
    pub fn total(&self, account: Account, n: usize) -> f64 {
        self.0[account.0].totals[n].value()
    }

    /// Takes what the ranks have added since the latest root step into the totals. All ranks call it at the end of a root step.
    pub(super) fn settle(world: &mut World) -> Result<(), RanksError> {
        let ranks = world.resource::<Ranks>().clone();
        let mut accounts = world.resource_mut::<Self>();
        let ledgers = accounts.0.iter_mut();
        let mut own: Vec<&mut Exact> = ledgers.flat_map(|ledger| &mut ledger.own).collect();
        if own.is_empty() {
            return Ok(());
        }
        if !ranks.are_alone() {
            own.iter_mut().for_each(|own| own.settle());
            let words = own.iter_mut().flat_map(|own| own.words().iter());
            let mut words: Vec<u64> = words.map(|word| word.cast_unsigned()).collect();
            ranks.communicator().reduce(Reduction::Sum, &mut words)?;
            let all = own.iter_mut().flat_map(|own| own.words().iter_mut());
            for (word, sum) in all.zip(words) {
                *word = sum.cast_signed();
            }
        }
        for ledger in &mut accounts.0 {
            for (total, own) in ledger.totals.iter_mut().zip(&mut ledger.own) {
                total.merge(&std::mem::take(own));
            }
        }
        Ok(())
    }

    /// The totals of an account as bytes, after their names.
    fn save(&self, account: Account) -> Vec<u8> {
        let ledger = &self.0[account.0];
        let names = ledger.numbers.join(" ");
        let totals = ledger.totals.iter().flat_map(Exact::to_bytes);
        let length = (names.len() as u64).to_le_bytes();
        length.into_iter().chain(names.into_bytes()).chain(totals).collect()
    }

    fn load(&mut self, account: Account, bytes: &[u8]) -> Result<(), String> {
        let ledger = &mut self.0[account.0];
        let cut = || "it is cut off".to_string();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = u64::from_le_bytes(*length) as usize;
        let (names, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let (names, own) = (String::from_utf8_lossy(names), ledger.numbers.join(" "));
        if names != own {
            return Err(format!("it has the numbers {names}, this program's has {own}"));
        }
        let totals = rest.chunks(Exact::BYTES).map(Exact::from_bytes);
        let totals: Option<Vec<Exact>> = totals.collect();
        let totals = totals.filter(|totals| totals.len() == ledger.totals.len());
        ledger.totals = totals.ok_or_else(cut)?;
        Ok(())
    }
}

impl Engine {
    /// Opens an account: running totals of so many numbers with these names, from the beginning of the simulation on, over all leaf cells
    /// and ranks. A system adds to it what [`map_attempts_with`](super::Write::map_attempts_with) gives:
    /// `accounts.add(account, &tally)` with a parameter `mut accounts: ResMut<Accounts>`. The totals are columns `NAME_NUMBER` of the diagnostics, in the
    /// order given, and part of every snapshot; they lose nothing to round-off, and are the same on any number of ranks.
    ///
    /// # Errors
    /// The name is taken; a name has other characters than letters, digits and `_`.
    pub fn account(&mut self, name: &str, numbers: &[&str]) -> Result<Account, Error> {
        for name in numbers.iter().chain([&name]) {
            require_name(name, "account")?;
        }
        let mut accounts = self.world.resource_mut::<Accounts>();
        let account = Account(accounts.0.len());
        accounts.0.push(Ledger {
            name: name.into(),
            numbers: numbers.iter().map(ToString::to_string).collect(),
            totals: vec![Exact::default(); numbers.len()],
            own: vec![Exact::default(); numbers.len()],
        });
        self.keep_state(
            &format!("account_{name}"),
            StateOperations {
                version: 1,
                save: Arc::new(move |world| world.resource::<Accounts>().save(account)),
                load: Arc::new(move |world, bytes| {
                    world.resource_mut::<Accounts>().load(account, bytes)
                }),
            },
        )?;
        let columns: Vec<String> = numbers.iter().map(|n| format!("{name}_{n}")).collect();
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        for column in &columns {
            catalogue.add("column", column, "A running total of an account.");
        }
        let totals = move |world: &mut World| {
            let totals = &world.resource::<Accounts>().0[account.0].totals;
            Ok(totals.iter().map(Exact::value).collect())
        };
        Columns::add_numbers(&mut self.world, columns, totals);
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Accounts, Ledger};
    use nestar_kernels::mesh::exact::Exact;

    fn accounts(numbers: &[&str]) -> Accounts {
        let ledger = Ledger {
            name: "cooling".into(),
            numbers: numbers.iter().map(ToString::to_string).collect(),
            totals: vec![Exact::default(); numbers.len()],
            own: vec![Exact::default(); numbers.len()],
        };
        Accounts(vec![ledger])
    }

    #[test]
    fn totals_come_back_to_the_last_bit_and_under_their_names_alone() {
        let (account, mut before) = (Account(0), accounts(&["radiated", "heated"]));
        for x in [0.1, 1e20, -1e20, 3e-30] {
            before.0[0].totals[1].add(x);
        }
        let bytes = before.save(account);
        let mut after = accounts(&["radiated", "heated"]);
        assert_eq!(after.load(account, &bytes), Ok(()));
        assert_eq!(after.0[0].totals, before.0[0].totals);
        assert_eq!(after.total(account, 1), 0.1);
        let why = accounts(&["radiated", "lost"]).load(account, &bytes);
        assert!(why.unwrap_err().contains("radiated heated"));
        for cut in [0, 7, 20, bytes.len() - 1] {
            assert!(after.load(account, &bytes[..cut]).is_err(), "{cut}");
        }
    }
}
