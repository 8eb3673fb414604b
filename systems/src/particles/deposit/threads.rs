//! Deposits in parallel: each task owns a contiguous range of the sums and buffers contributions to other ranges.

use super::super::species::{PatchParticles, count};
use super::Deposit;
use super::cloud_block::PatchPart;
use nestar_engine::mesh::parallel;
use nestar_kernels::CELLS;

/// Range of the sums owned by one task.
pub struct ThreadSums<'a> {
    /// First slot.
    first: usize,
    /// Sums `[slot][cell]`.
    own: &'a mut [u64],
    /// First slots of all ranges.
    firsts: &'a [usize],
    /// Buffered contributions to other ranges: global cell index and mass.
    others: Vec<Vec<(usize, u64)>>,
}

impl ThreadSums<'_> {
    /// Adds the part of a block to the cells of a slot.
    #[inline(always)]
    pub fn add(&mut self, slot: usize, part: &PatchPart) {
        let cells = slot.checked_sub(self.first).map(|own| own * CELLS);
        let own = cells.and_then(|cells| self.own.get_mut(cells..)?.first_chunk_mut());
        if let Some(own) = own {
            return part.add_to(own);
        }
        let other = self.firsts.partition_point(|first| *first <= slot) - 1;
        for (first, line) in part.lines() {
            let cells = (slot * CELLS + first..).zip(line.iter().copied());
            self.others[other].extend(cells.filter(|(_, mass)| *mass > 0));
        }
    }
}

/// Splits the sums, `[slot][cell]`, at the given slots.
fn split<'a>(mut sums: &'a mut [u64], firsts: &[usize]) -> Vec<(usize, &'a mut [u64])> {
    let mut shares = Vec::with_capacity(firsts.len());
    for (n, &first) in firsts.iter().enumerate() {
        let slots = firsts.get(n + 1).map(|next| next - first);
        let cells = slots.map_or(sums.len(), |slots| slots * CELLS);
        let (own, rest) = std::mem::take(&mut sums).split_at_mut(cells);
        shares.push((first, own));
        sums = rest;
    }
    shares
}

/// Runs all tasks in parallel, each with the range of sums that begins with its slot. Slots ascend from 0.
pub fn add_all<W: Send>(
    sums: &mut [u64],
    tasks: Vec<(usize, W)>,
    add: impl Fn(W, &mut ThreadSums) + Sync,
) {
    let (firsts, work): (Vec<usize>, Vec<W>) = tasks.into_iter().unzip();
    let shares = split(sums, &firsts).into_iter().zip(work);
    let mut shares: Vec<_> = shares.map(|(share, work)| (share, Some(work))).collect();
    let kept = parallel::map_mut(&mut shares, |_, ((first, own), work)| {
        let mut share = ThreadSums {
            first: *first,
            own,
            firsts: &firsts,
            others: vec![Vec::new(); firsts.len()],
        };
        work.take()
            .into_iter()
            .for_each(|work| add(work, &mut share));
        share.others
    });
    parallel::for_each_mut(&mut split(sums, &firsts), |n, (first, own)| {
        for (cell, mass) in kept.iter().flat_map(|others| &others[n]) {
            own[cell - *first * CELLS] = own[cell - *first * CELLS].wrapping_add(*mass);
        }
    });
}

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
