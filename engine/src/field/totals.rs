//! Conserved totals, summed in an order that does not depend on threads or rows.

use super::device::DeviceTopology;
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use nestar_kernels::CELLS;
use rayon::prelude::*;

/// Per component, the sum over all leaf cells of value times cell volume, in double precision.
///
/// Within a patch eight lanes are summed side by side; the patches of a level are summed pairwise in Hilbert order.
pub(super) fn totals<F: Field>(world: &World) -> Result<Vec<f64>, DeviceError> {
    let pool = world.resource::<Pool<F>>();
    let topology = world.resource::<Topology>();
    match &pool.storage {
        Storage::Single(_) => Ok(sum_levels::<F, f32>(pool, topology)),
        Storage::Double(_) => Ok(sum_levels::<F, f64>(pool, topology)),
        Storage::Device(device) => {
            let tables = world.resource::<DeviceTopology>();
            let mut totals = vec![0.0; pool.components()];
            for level in 0..=topology.finest() {
                let volume = topology.domain.cell_volume(level);
                let sums = device.level_sums(tables, level, pool.current(level))?;
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total += volume * sum;
                }
            }
            Ok(totals)
        }
    }
}

fn sum_levels<F: Field, R: Element>(pool: &Pool<F>, topology: &Topology) -> Vec<f64> {
    let components = pool.components();
    let mut totals = vec![0.0; components];
    for level in 0..=topology.finest() {
        let rows = topology.rows(level);
        let values = pool.present::<R>(level);
        let mut sums = vec![0.0; rows.len() * components];
        sums.par_chunks_mut(components)
            .zip(rows)
            .for_each(|(sums, &row)| {
                if topology.is_leaf(row) {
                    for (sum, component) in sums.iter_mut().zip(values.row(row).chunks_exact(CELLS))
                    {
                        *sum = sum_cells(component);
                    }
                }
            });
        let volume = topology.domain.cell_volume(level);
        for (c, total) in totals.iter_mut().enumerate() {
            *total += volume * pairwise(&sums, c, components, 0, rows.len());
        }
    }
    totals
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
