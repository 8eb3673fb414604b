//! Conserved totals, summed in an order that does not depend on threads or rows.

use super::device::DeviceTopology;
use super::pool::{Element, Field, Pool, Storage};
use crate::error::Error;
use crate::mesh::Topology;
use crate::ranks::{Ranks, RanksError};
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;
use rayon::prelude::*;

/// Per component, the sum over all leaf cells of value times cell volume, in double precision.
///
/// Within a patch eight lanes are summed side by side; the patches of a level are summed pairwise in Hilbert order.
pub(super) fn totals<F: Field>(world: &World) -> Result<Vec<f64>, Error> {
    let pool = world.resource::<Pool<F>>();
    let topology = world.resource::<Topology>();
    let ranks = world.resource::<Ranks>();
    let mut totals = vec![0.0; pool.components()];
    for level in 0..=topology.finest() {
        let volume = topology.domain.cell_volume(level);
        let sums = match &pool.storage {
            Storage::Single(_) => sum_level::<F, f32>(pool, topology, ranks, level)?,
            Storage::Double(_) => sum_level::<F, f64>(pool, topology, ranks, level)?,
            Storage::Device(device) => {
                let tables = world.resource::<DeviceTopology>();
                let bank = pool.current(level);
                if topology.is_shared() {
                    let sums = device.patch_sums(tables, level, bank)?;
                    over_ranks(&sums, pool.components(), ranks)?
                } else {
                    device.level_sums(tables, level, bank)?
                }
            }
        };
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total += volume * sum;
        }
    }
    Ok(totals)
}

/// Per component, the sum over the leaf cells of `level` on all ranks.
fn sum_level<F: Field, R: Element>(
    pool: &Pool<F>,
    topology: &Topology,
    ranks: &Ranks,
    level: usize,
) -> Result<Vec<f64>, RanksError> {
    let components = pool.components();
    let rows = topology.rows(level);
    let values = pool.present::<R>(level);
    let mut sums = vec![0.0; rows.len() * components];
    sums.par_chunks_mut(components)
        .zip(rows)
        .for_each(|(sums, &row)| {
            if topology.is_leaf(row) {
                for (sum, component) in sums.iter_mut().zip(values.row(row).chunks_exact(CELLS)) {
                    *sum = sum_cells(component);
                }
            }
        });
    over_ranks(&sums, components, ranks)
}

/// Sums what the ranks have, `[patch][component]`, by halves of the whole level's patches.
fn over_ranks(sums: &[f64], components: usize, ranks: &Ranks) -> Result<Vec<f64>, RanksError> {
    let count = sums.len() / components;
    if ranks.are_alone() {
        let sum = |c| pairwise(sums, c, components, 0, count);
        return Ok((0..components).map(sum).collect());
    }
    let communicator = ranks.communicator();
    let counts = communicator.all_gather(&(count as u64).to_le_bytes())?;
    let mut ends = Vec::with_capacity(counts.len());
    for count in &counts {
        let count: u64 = bytemuck::pod_read_unaligned(count);
        ends.push(ends.last().copied().unwrap_or(0) + count as usize);
    }
    let (rank, total) = (ranks.rank(), ends.last().copied().unwrap_or(0));
    let first = ends[rank] - count;
    let mut nodes = Vec::new();
    halve(&ends, 0, total, &mut |owner, from, to| {
        if owner == rank {
            let node = |c| pairwise(sums, c, components, from - first, to - first);
            nodes.extend((0..components).map(node));
        }
        vec![]
    });
    let gathered = communicator.all_gather(bytemuck::cast_slice(&nodes))?;
    let of_ranks = gathered
        .iter()
        .map(|bytes| bytemuck::pod_collect_to_vec(bytes));
    let mut of_ranks: Vec<_> = of_ranks.map(|nodes: Vec<f64>| nodes.into_iter()).collect();
    let sums = halve(&ends, 0, total, &mut |owner, _, _| {
        of_ranks[owner].by_ref().take(components).collect()
    });
    // a level without patches adds nothing
    let empty = vec![0.0; components];
    Ok(if total == 0 { empty } else { sums })
}

/// Sums patches `from..to` of a level by halves, down to nodes that one rank has whole: `node` gives their sums. Rank `r` has
/// the patches before `ends[r]` that no earlier one has.
fn halve(
    ends: &[usize],
    from: usize,
    to: usize,
    node: &mut impl FnMut(usize, usize, usize) -> Vec<f64>,
) -> Vec<f64> {
    if from == to {
        return Vec::new();
    }
    let owner = ends.partition_point(|&end| end <= from);
    if to <= ends[owner] {
        return node(owner, from, to);
    }
    let middle = from + (to - from) / 2;
    let low = halve(ends, from, middle, node);
    let high = halve(ends, middle, to, node);
    low.iter().zip(high).map(|(a, b)| a + b).collect()
}

fn sum_cells<R: Element>(values: &[R]) -> f64 {
    let mut lanes = [0.0; 8];
    for chunk in values.chunks_exact(8) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value.to_f64();
        }
    }
    ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
        + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
}

/// Sum of component `c` of the patches `from..to`, by halves.
pub(super) fn pairwise(sums: &[f64], c: usize, components: usize, from: usize, to: usize) -> f64 {
    match to - from {
        0 => 0.0,
        1 => sums[from * components + c],
        n => {
            let middle = from + n / 2;
            pairwise(sums, c, components, from, middle) + pairwise(sums, c, components, middle, to)
        }
    }
}
