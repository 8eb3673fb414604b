//! Sums over cells of all ranks in an order that does not depend on the number of ranks.

use super::{Ranks, RanksError};
use crate::data::operators::MendedOnHost;
use crate::data::pairwise;
use crate::data::{MeshContext, StoreRef, Stores};
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::parameters::RepairedCells;
use std::ops::Range;

/// Returns the volume integral of each component of `field` over all leaf cells, in double precision. Collective.
///
/// The patches of a level are summed pairwise in Hilbert order.
///
/// # Errors
/// The device or another rank has failed.
pub fn totals(world: &World, field: &StoreRef) -> Result<Vec<f64>, RanksError> {
    let topology = world.resource::<Topology>();
    let ranks = world.resource::<Ranks>();
    let components = field.of(world).spec().components.len();
    let mut totals = vec![0.0; components];
    for level in 0..=topology.finest() {
        let volume = topology.domain.cell_volume(level);
        let halves = PairwiseTree::of(topology.rows(level).len(), components, ranks)?;
        let own = field
            .of(world)
            .node_sums(&MeshContext::of(world), level, &halves.own_nodes())?;
        for (total, sum) in totals.iter_mut().zip(halves.join(own, ranks)?) {
            *total += volume * sum;
        }
    }
    Ok(totals)
}

/// Sums one number per patch of a level over all ranks, pairwise in Hilbert order. Collective.
pub(super) fn pairwise_sum(of_patches: &[f64], ranks: &Ranks) -> Result<f64, RanksError> {
    let halves = PairwiseTree::of(of_patches.len(), 1, ranks)?;
    let nodes = halves.own_nodes();
    let sum = |node: &Range<usize>| pairwise(of_patches, 0, 1, node.start, node.end);
    let sums = halves.join(nodes.iter().map(sum).collect(), ranks)?;
    Ok(sums.first().copied().unwrap_or(0.0))
}

/// Returns the number of unphysical cells repaired between levels since the start of the run, summed over all ranks.
/// Collective.
///
/// Round-off in averages and flux corrections makes such cells. Waits for the device.
///
/// # Errors
/// The device or another rank has failed.
pub fn cells_repaired_between_levels(world: &World) -> Result<RepairedCells, RanksError> {
    let mut mended = world.resource::<MendedOnHost>().0;
    for field in &world.resource::<Stores>().all() {
        let on_device = field.of(world).mended_on_device()?;
        mended.averages += on_device.averages;
        mended.corrections += on_device.corrections;
    }
    let ranks = world.resource::<Ranks>();
    Ok(RepairedCells {
        averages: ranks.sum(mended.averages)?,
        corrections: ranks.sum(mended.corrections)?,
    })
}

/// Binary tree over the patches of a level for pairwise summation. Its shape does not depend on the number of ranks.
struct PairwiseTree {
    components: usize,
    rank: usize,
    /// By rank: one past its last patch in the order of the whole level.
    ends: Vec<usize>,
}

impl PairwiseTree {
    /// Creates the tree of a level of which this rank has `count` patches.
    fn of(count: usize, components: usize, ranks: &Ranks) -> Result<Self, RanksError> {
        let mut halves = Self {
            components,
            rank: ranks.rank(),
            ends: vec![count],
        };
        if !ranks.is_single() {
            let counts = ranks
                .communicator()
                .all_gather(&(count as u64).to_le_bytes())?;
            let mut end = 0;
            let mut ends = |count: &Vec<u8>| {
                end += bytemuck::pod_read_unaligned::<u64>(count) as usize;
                end
            };
            halves.ends = counts.iter().map(&mut ends).collect();
        }
        Ok(halves)
    }

    fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the largest nodes that consist of own patches only, as ranges of own patches in order.
    ///
    /// There are at most two for every level of the tree.
    fn own_nodes(&self) -> Vec<Range<usize>> {
        let before = self.rank.checked_sub(1).map_or(0, |rank| self.ends[rank]);
        let mut nodes = Vec::new();
        self.halve(0, self.count(), &mut |owner, from, to| {
            if owner == self.rank {
                nodes.push(from - before..to - before);
            }
            Vec::new()
        });
        nodes
    }

    /// Returns the sums of the level from those of all nodes; `own` has those of this rank, `[node][component]`.
    fn join(&self, own: Vec<f64>, ranks: &Ranks) -> Result<Vec<f64>, RanksError> {
        if self.count() == 0 {
            return Ok(vec![0.0; self.components]);
        }
        if ranks.is_single() {
            return Ok(own);
        }
        let of_ranks = ranks
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        let nodes = |bytes: &Vec<u8>| bytemuck::pod_collect_to_vec::<u8, f64>(bytes).into_iter();
        let mut of_ranks: Vec<_> = of_ranks.iter().map(nodes).collect();
        Ok(self.halve(0, self.count(), &mut |owner, _, _| {
            of_ranks[owner].by_ref().take(self.components).collect()
        }))
    }

    /// Sums patches `from..to` recursively, down to nodes owned by one rank, whose sums `node` returns.
    fn halve(
        &self,
        from: usize,
        to: usize,
        node: &mut impl FnMut(usize, usize, usize) -> Vec<f64>,
    ) -> Vec<f64> {
        if from == to {
            return Vec::new();
        }
        let owner = self.ends.partition_point(|&end| end <= from);
        if to <= self.ends[owner] {
            return node(owner, from, to);
        }
        let middle = from + (to - from) / 2;
        let low = self.halve(from, middle, node);
        let high = self.halve(middle, to, node);
        low.iter().zip(high).map(|(a, b)| a + b).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{PairwiseTree, pairwise};
    use crate::comm::{Ranks, ThreadRank};

    /// Values whose sum depends on the order of summation.
    fn values(count: usize) -> Vec<f64> {
        (0..2 * count)
            .map(|n| 1.0 / (n as f64 + 0.3) + 1e-3)
            .collect()
    }

    fn on_ranks(counts: &[usize]) -> Vec<Vec<u64>> {
        let all = values(counts.iter().sum());
        std::thread::scope(|scope| {
            let mut before = 0;
            let mut started = Vec::new();
            for (ranks, &count) in ThreadRank::connect(counts.len()).into_iter().zip(counts) {
                let own = &all[2 * before..2 * (before + count)];
                before += count;
                started.push(scope.spawn(move || {
                    let ranks = Ranks::new(ranks);
                    let halves = PairwiseTree::of(count, 2, &ranks).unwrap();
                    let nodes = halves.own_nodes();
                    let sum = |node: &std::ops::Range<usize>| {
                        [0, 1].map(|c| pairwise(own, c, 2, node.start, node.end))
                    };
                    let sums = halves.join(nodes.iter().flat_map(sum).collect(), &ranks);
                    let sums = sums.unwrap();
                    sums.into_iter().map(f64::to_bits).collect()
                }));
            }
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_sum_in_the_order_of_one() {
        for counts in [
            vec![1, 0],
            vec![5, 11, 3],
            vec![0, 0, 64, 1],
            vec![7; 8],
            vec![100, 1, 0, 333, 2],
        ] {
            let count = counts.iter().sum();
            let all = values(count);
            let expected = [0, 1].map(|c| pairwise(&all, c, 2, 0, count).to_bits());
            for sums in on_ranks(&counts) {
                assert_eq!(sums, expected, "{counts:?}");
            }
            let backwards = all.iter().rev().step_by(2).sum::<f64>();
            assert!(
                count < 400 || backwards.to_bits() != expected[1],
                "a weak test"
            );
        }
        assert_eq!(on_ranks(&[0, 0]), vec![vec![0; 2]; 2]);
    }
}
