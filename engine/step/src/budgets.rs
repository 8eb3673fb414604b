//! Budgets: what cell functions add or remove, accumulated over leaf cells, levels, steps and ranks.

use bevy_ecs::prelude::*;
use nestar_engine_comm::{Ranks, RanksError, Reduction};
use nestar_engine_data::CellTotals;
use nestar_kernels::mesh::exact_sum::ExactSum;

/// Identifies a budget that [`Engine::register_budget`](crate::Engine::register_budget) has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetId(usize);

/// Holds the running totals of all budgets; systems add to them by [`Budgets::add`].
#[derive(Resource, Clone, Debug, Default)]
pub struct Budgets(Vec<Budget>);

/// Holds the totals of one budget in exact sums. They depend neither on the order of ranks, levels and steps
/// nor on restarts.
#[derive(Clone, Debug)]
struct Budget {
    name: String,
    numbers: Vec<String>,
    /// Sums of all ranks up to the latest root step, `[level][number]`, including those of the restored
    /// snapshot.
    totals: Vec<Vec<ExactSum>>,
    /// Sums of this rank since that root step.
    own: Vec<Vec<ExactSum>>,
}

impl Budget {
    /// Returns number `n` summed over all levels.
    fn total(&self, n: usize) -> f64 {
        let mut sum = ExactSum::default();
        self.totals.iter().for_each(|level| sum.merge(&level[n]));
        sum.value()
    }
}

impl Budgets {
    /// Adds the cell totals of an accepted step on this rank.
    ///
    /// # Panics
    /// If the number of totals differs from that of the budget.
    pub fn add(&mut self, id: BudgetId, totals: &CellTotals) {
        self.add_sums(id, totals.level(), totals.integrals());
    }

    /// Adds sums of an accepted step of `level` on this rank, integrals over its cells.
    ///
    /// # Panics
    /// If the number of sums differs from that of the budget.
    pub fn add_sums(
        &mut self,
        id: BudgetId,
        level: usize,
        sums: impl IntoIterator<Item = ExactSum>,
    ) {
        let budget = &mut self.0[id.0];
        let sums: Vec<ExactSum> = sums.into_iter().collect();
        let (name, has, gives) = (&budget.name, budget.numbers.len(), sums.len());
        assert!(
            has == gives,
            "the budget `{name}` has {has} numbers, but receives {gives}"
        );
        for (own, sum) in budget.own[level].iter_mut().zip(&sums) {
            own.merge(sum);
        }
    }

    /// Returns number `n` of a budget over all levels at the latest root step; identical on all ranks.
    ///
    /// # Panics
    /// If the budget has fewer numbers.
    #[must_use]
    pub fn total(&self, id: BudgetId, n: usize) -> f64 {
        self.0[id.0].total(n)
    }

    /// Returns number `n` of a budget for cells that were on `level`.
    ///
    /// # Panics
    /// If the budget has fewer numbers, or the run fewer levels.
    #[must_use]
    pub fn total_of(&self, id: BudgetId, n: usize, level: usize) -> f64 {
        self.0[id.0].totals[level][n].value()
    }

    /// Opens a budget with named numbers on `levels` levels.
    pub(super) fn open(&mut self, name: &str, numbers: &[&str], levels: usize) -> BudgetId {
        let nothing = vec![vec![ExactSum::default(); numbers.len()]; levels];
        self.0.push(Budget {
            name: name.into(),
            numbers: numbers.iter().map(ToString::to_string).collect(),
            totals: nothing.clone(),
            own: nothing,
        });
        BudgetId(self.0.len() - 1)
    }

    /// Returns the column names of a budget: totals over all levels, then those of each level.
    pub(super) fn names(&self, id: BudgetId) -> Vec<String> {
        let Budget {
            name, numbers, own, ..
        } = &self.0[id.0];
        let all = numbers.iter().map(|number| format!("{name}_{number}"));
        let levels = |all: String| (0..own.len()).map(move |level| format!("{all}_{level}"));
        all.clone().chain(all.flat_map(levels)).collect()
    }

    /// Returns the values of these columns.
    pub(super) fn values(&self, id: BudgetId) -> Vec<f64> {
        let budget = &self.0[id.0];
        let numbers = 0..budget.numbers.len();
        let levels =
            |n: usize| (0..budget.own.len()).map(move |level| budget.totals[level][n].value());
        let all = numbers.clone().map(|n| budget.total(n));
        all.chain(numbers.flat_map(levels)).collect()
    }

    /// Reduces the contributions of all ranks since the latest root step into the totals. Collective, once
    /// per root step.
    pub(super) fn reduce(world: &mut World) -> Result<(), RanksError> {
        let ranks = world.resource::<Ranks>().clone();
        let mut accounts = world.resource_mut::<Self>();
        let budgets = accounts.0.iter_mut();
        let levels = budgets.flat_map(|budget| &mut budget.own);
        let mut own: Vec<&mut ExactSum> = levels.flatten().collect();
        if own.is_empty() {
            return Ok(());
        }
        own.iter_mut().for_each(|own| own.normalize());
        let words = own.iter_mut().flat_map(|own| own.words().iter());
        let mut words: Vec<u64> = words.map(|word| word.cast_unsigned()).collect();
        ranks.communicator().reduce(Reduction::Sum, &mut words)?;
        let all = own.iter_mut().flat_map(|own| own.words().iter_mut());
        for (word, sum) in all.zip(words) {
            *word = sum.cast_signed();
        }
        for budget in &mut accounts.0 {
            let totals = budget.totals.iter_mut().flatten();
            for (total, own) in totals.zip(budget.own.iter_mut().flatten()) {
                total.merge(&std::mem::take(own));
            }
        }
        Ok(())
    }

    /// Encodes the names and totals of a budget.
    pub(super) fn save(&self, id: BudgetId) -> Vec<u8> {
        let budget = &self.0[id.0];
        let names = budget.numbers.join(" ");
        let totals = budget.totals.iter().flatten().flat_map(ExactSum::to_bytes);
        let length = (names.len() as u64).to_le_bytes();
        length
            .into_iter()
            .chain(names.into_bytes())
            .chain(totals)
            .collect()
    }

    /// Decodes the result of [`Budgets::save`]; the number of levels may differ.
    pub(super) fn load(&mut self, id: BudgetId, bytes: &[u8]) -> Result<(), String> {
        let budget = &mut self.0[id.0];
        let cut = || "it is truncated".to_string();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = u64::from_le_bytes(*length) as usize;
        let (names, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let (names, own) = (String::from_utf8_lossy(names), budget.numbers.join(" "));
        if names != own {
            return Err(format!(
                "it has the numbers {names}, this program's has {own}"
            ));
        }
        let totals = rest.chunks(ExactSum::BYTES).map(ExactSum::from_bytes);
        let totals: Vec<ExactSum> = totals.collect::<Option<_>>().ok_or_else(cut)?;
        let numbers = budget.numbers.len();
        if totals.is_empty() != (numbers == 0) || !totals.len().is_multiple_of(numbers.max(1)) {
            return Err(cut());
        }
        let levels = totals.chunks(numbers.max(1)).map(<[ExactSum]>::to_vec);
        let (nothing, least) = (vec![ExactSum::default(); numbers], budget.own.len());
        budget.totals = levels.collect();
        let held = budget.totals.len();
        budget.totals.resize(held.max(least), nothing);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BudgetId, Budgets};

    fn accounts(numbers: &[&str]) -> Budgets {
        let mut accounts = Budgets::default();
        assert_eq!(accounts.open("cooling", numbers, 2), BudgetId(0));
        accounts
    }

    #[test]
    fn totals_are_restored_exactly_and_only_with_equal_names() {
        let (id, mut before) = (BudgetId(0), accounts(&["radiated", "heated"]));
        for x in [0.1, 1e20, -1e20, 3e-30] {
            before.0[0].totals[1][1].add(x);
        }
        let bytes = before.save(id);
        let mut after = accounts(&["radiated", "heated"]);
        assert_eq!(after.load(id, &bytes), Ok(()));
        assert_eq!(after.0[0].totals, before.0[0].totals);
        let of = |after: &Budgets, n| [0, 1].map(|level| after.total_of(id, n, level));
        assert_eq!((after.total(id, 1), of(&after, 1)), (0.1, [0.0, 0.1]));
        let why = accounts(&["radiated", "lost"]).load(id, &bytes);
        assert!(why.unwrap_err().contains("radiated heated"));
        for cut in [0, 7, 20, 8 + "radiated heated".len(), bytes.len() - 1] {
            assert!(after.load(id, &bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn budgets_survive_a_change_of_levels() {
        let id = BudgetId(0);
        let of_levels = |levels| {
            let mut accounts = Budgets::default();
            accounts.open("cooling", &["radiated"], levels);
            accounts
        };
        let mut before = of_levels(3);
        for (level, x) in [0.1, 1e20, -3e-30].into_iter().enumerate() {
            before.0[0].totals[level][0].add(x);
        }
        for levels in [1, 2, 5] {
            let mut after = of_levels(levels);
            assert_eq!(after.load(id, &before.save(id)), Ok(()));
            assert_eq!(after.total(id, 0), before.total(id, 0));
            assert_eq!(after.total_of(id, 0, 0), 0.1);
            let values = after.values(id);
            assert_eq!(values.len(), after.names(id).len());
            assert_eq!(values[..2], [before.total(id, 0), 0.1]);
        }
    }
}
