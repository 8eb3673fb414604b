//! Sums of derived inputs over the cells of patches along an axis, with the same bits on the host and on a device.

use super::criteria::DerivedInputs;
use super::pool::{Field, Pool};
use super::quantities::{CellCube, Loops};
use super::storage::with_storage;
use super::level::LevelView;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::parallel;
use nestar_kernels::mesh::columns::{COLUMNS, column_cell};
use nestar_kernels::{CELLS, PATCH};

/// Sums along an axis in some patches of a level.
pub struct ColumnSums<'a> {
    /// Quantities of a cell.
    pub quantities: &'a DerivedInputs,
    /// `true` if the other quantities are multiplied by the last one.
    pub weighted: bool,
    /// The axis.
    pub axis: usize,
    /// Rows of the patches.
    pub rows: &'a [u32],
    /// Factors of the cells of each patch, by their place along the axis.
    pub factors: &'a [[f64; PATCH]],
}

/// Adds the columns of a patch along `axis`, `[quantity][64]`, from the quantities `values`, `[quantity][512]`. See [`ColumnSums`].
pub fn sum_columns(
    values: impl Fn(usize) -> f64,
    axis: usize,
    factors: &[f64; PATCH],
    weighted: bool,
    sums: &mut [f64],
) {
    let quantities = sums.len() / COLUMNS;
    sums.fill(0.0);
    for (n, &factor) in factors.iter().enumerate().filter(|(_, f)| **f != 0.0) {
        for column in 0..COLUMNS {
            let cell = column_cell(axis as i32, column as i32, n as i32) as usize;
            let weight = match weighted {
                true => values(CELLS * (quantities - 1) + cell) * factor,
                false => factor,
            };
            for q in 0..quantities {
                let term = match weighted && q + 1 == quantities {
                    true => weight,
                    false => values(CELLS * q + cell) * weight,
                };
                sums[COLUMNS * q + column] += term;
            }
        }
    }
}

/// Computes the sums in the columns of each patch, `[row][quantity][64]`, in double precision.
pub(super) fn column_sums<F: Field>(
    pool: &Pool<F>,
    level: &LevelView,
    wanted: &ColumnSums,
    sums: &mut Vec<f64>,
) -> Result<(), DeviceError> {
    sums.resize(wanted.rows.len() * wanted.quantities.count() * COLUMNS, 0.0);
    with_storage!(&pool.storage,
        <R> => sums_on_host::<F, R>(pool, level, wanted, sums),
        _ => pool.launcher().column_sums(level, wanted, sums)?);
    Ok(())
}

fn sums_on_host<F: Field, R: Loops>(
    pool: &Pool<F>,
    level: &LevelView,
    wanted: &ColumnSums,
    sums: &mut [f64],
) {
    let present = pool.present::<R>(level.clock.level);
    let geometry = level.geometry();
    let width = wanted.quantities.count() * COLUMNS;
    parallel::for_each_chunk(sums, width, 1, |n, sums| {
        let row = wanted.rows[n];
        let patch = level.topology.index(row);
        let own = CellCube::of_patch(present.row(row), patch, &geometry);
        let mut made = pool.typed::<R>().cell_scratch.get();
        let made = &mut made[0];
        wanted.quantities.fill(&own, made);
        let value = |at: usize| made[at].to_f64();
        sum_columns(
            value,
            wanted.axis,
            &wanted.factors[n],
            wanted.weighted,
            sums,
        );
    });
}
