//! Parallel accumulation: each task owns a contiguous range of the sums and buffers contributions to other
//! ranges.

use super::block::PatchPart;
use nestar_kernels::CELLS;
use rayon::prelude::*;

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
    let shares = split(sums, &firsts).into_par_iter().zip(work);
    let kept = shares.map(|((first, own), work)| {
        let mut share = ThreadSums {
            first,
            own,
            firsts: &firsts,
            others: vec![Vec::new(); firsts.len()],
        };
        add(work, &mut share);
        share.others
    });
    let kept: Vec<Vec<Vec<(usize, u64)>>> = kept.collect();
    let shares = split(sums, &firsts).into_par_iter().enumerate();
    shares.for_each(|(n, (first, own))| {
        for (cell, mass) in kept.iter().flat_map(|others| &others[n]) {
            own[cell - first * CELLS] += mass;
        }
    });
}
