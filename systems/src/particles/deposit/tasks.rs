//! Groups patches into tasks of similar cost.

use super::super::species::{PatchParticles, count};
use super::Deposit;

/// Patches with their rows that lie in one patch of the level of the deposit.
pub type PatchGroup<'a> = &'a mut [(u32, PatchParticles)];

impl Deposit<'_> {
    /// Distributes groups of patches of level `host` to a few tasks per thread, each with the first slot of
    /// its sums.
    pub(super) fn tasks<'b>(
        &self,
        host: usize,
        groups: Vec<PatchGroup<'b>>,
    ) -> Vec<(usize, Vec<PatchGroup<'b>>)> {
        let number =
            |group: &PatchGroup| -> usize { group.iter().map(|(_, patch)| count(patch)).sum() };
        let all: usize = groups.iter().map(number).sum();
        let most = all / (4 * rayon::current_num_threads()) + 1;
        let (mut tasks, mut first, mut taken) = (vec![(0, Vec::new())], 0, 0);
        for group in groups {
            if taken >= most {
                let index = self.topology.index(group[0].0);
                let index = index.map(|i| i >> (host - self.level));
                let row = self.topology.find(self.level, index);
                first = first.max(row.and_then(|row| self.slot(row)).unwrap_or(first));
                tasks.push((first, Vec::new()));
                taken = 0;
            }
            taken += number(&group);
            if let Some((_, own)) = tasks.last_mut() {
                own.push(group);
            }
        }
        tasks
    }

    /// Groups consecutive patches of level `host` in one patch of this level, with a limited number of
    /// particles per group.
    pub(super) fn groups<'b>(
        &self,
        host: usize,
        mut patches: &'b mut [(u32, PatchParticles)],
    ) -> Vec<PatchGroup<'b>> {
        let finer = host - self.level;
        let above = |row: u32| self.topology.index(row).map(|i| i >> finer);
        let mut groups = Vec::new();
        while let Some((row, patch)) = patches.first() {
            let (index, mut number, mut length) = (above(*row), count(patch), 1);
            while let Some((row, patch)) = patches.get(length)
                && above(*row) == index
                && number < 1 << 14
            {
                (number, length) = (number + count(patch), length + 1);
            }
            let (group, rest) = patches.split_at_mut(length);
            groups.push(group);
            patches = rest;
        }
        groups
    }
}
