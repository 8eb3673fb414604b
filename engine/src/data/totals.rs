//! Sums over the cells of patches, in an order that does not depend on threads or rows.

use super::element::Element;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::store::MeshContext;
use crate::device::DeviceError;
use crate::mesh::Topology;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::order::sum_of_lanes;
use rayon::prelude::*;
use std::ops::Range;

/// Sums of the leaf cells of stretches of a level's own patches, `[node][component]`, in double precision.
///
/// Within a patch eight lanes are summed side by side; the patches of a stretch are summed pairwise in Hilbert order.
pub(super) fn node_sums<F: Field>(
    pool: &Pool<F>,
    around: &MeshContext,
    level: usize,
    nodes: &[Range<usize>],
) -> Result<Vec<f64>, DeviceError> {
    let topology = around.topology;
    with_storage!(&pool.storage,
        <R> => Ok(sum_nodes::<F, R>(pool, topology, level, nodes)),
        device => device.node_sums(around.on_device(), level, pool.current(level), nodes))
}

/// [`node_sums`] of a pool on the host.
fn sum_nodes<F: Field, R: Element>(
    pool: &Pool<F>,
    topology: &Topology,
    level: usize,
    nodes: &[Range<usize>],
) -> Vec<f64> {
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
    let sum = |node: &Range<usize>, c| pairwise(&sums, c, components, node.start, node.end);
    let of_node = |node| (0..components).map(move |c| sum(node, c));
    nodes.iter().flat_map(of_node).collect()
}

fn sum_cells<R: Element>(values: &[R]) -> f64 {
    let mut lanes = [0.0; 8];
    for chunk in values.chunks_exact(8) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value.to_f64();
        }
    }
    sum_of_lanes(lanes)
}

/// Sum of component `c` of the patches `from..to`, by halves.
pub(crate) fn pairwise(sums: &[f64], c: usize, components: usize, from: usize, to: usize) -> f64 {
    match to - from {
        0 => 0.0,
        1 => sums[from * components + c],
        n => {
            let middle = from + n / 2;
            pairwise(sums, c, components, from, middle) + pairwise(sums, c, components, middle, to)
        }
    }
}
