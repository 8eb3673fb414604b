//! Reductions of cell functions over a level, with the same bits for any number of threads and on a device; sums that
//! sub-cycled functions return.

use super::cell_args::{CellJob, CellMark, CellReader, CellValue};
use super::columns::{ColumnSums, sum_columns};
use super::criteria::CriteriaList;
use super::field_spec::Element;
use super::function_inputs::{FunctionInputs, InputList};
use super::level::{LevelRows, LevelView};
use super::pool::{Field, Pool, gather_block};
use super::quantities::{CellCube, Loops};
use super::storage::with_storage;
use super::store::MeshContext;
use nestar_device::CellFn;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{Topology, parallel};
use nestar_kernels::CELLS;
use nestar_kernels::criteria::{CellFlags, LIST_BLOCK, LIST_GHOSTS, buffer_sectors};
use nestar_kernels::mesh::columns::COLUMNS;
use nestar_kernels::mesh::exact_sum::ExactSum;
use nestar_kernels::mesh::fluxes::FACE;
use nestar_kernels::mesh::order::{order_key, sum_of_lanes, value_of_key};
use std::ops::Range;

impl<F: Field> Pool<F> {
    /// Returns the smallest value of `M` in the cells of the level on this rank, including covered cells.
    /// NaN if any value is NaN, infinity without cells. A fault of a device stops the run after the schedule.
    ///
    /// # Panics
    /// If the function reads more components than the fields have, or neighbouring cells together with derived inputs.
    pub fn reduce<M: CellValue>(
        &self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        parameters: &M::Parameters,
    ) -> f64 {
        let key = self.largest_key::<M>(&rows.view(), inputs.list(), true, parameters);
        let key = rows.checked(key, 0);
        self.check_gather_fault::<M>(rows);
        -value_of_key(key)
    }

    /// Returns the largest order key of a value, or of its negative, on a level of this rank.
    pub fn largest_key<M: CellValue>(
        &self,
        level: &LevelView,
        inputs: InputList,
        negate: bool,
        parameters: &M::Parameters,
    ) -> Result<u64, DeviceError> {
        let job = CellJob::<M>::new(*level, inputs, parameters);
        job.check(self);
        let nothing = order_key(f64::NEG_INFINITY);
        let found = with_storage!(&self.storage,
            <R> => self.keys::<M, R>(&job, negate),
            _ => self.launcher().largest(&job, negate)?);
        Ok(found.max(nothing))
    }

    fn keys<M: CellFn<Result<R> = R>, R: Loops>(&self, job: &CellJob<M>, negate: bool) -> u64 {
        let reader = CellReader::<M, R>::new(self, job);
        let rows = job.level.rows();
        let of_row = |n: usize| {
            let mut largest = 0;
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(rows[n], &mut scratch[0], |_, value| {
                let value = value.to_f64();
                largest = order_key(if negate { -value } else { value }).max(largest);
            });
            largest
        };
        parallel::max_of_indices(rows.len(), of_row)
    }

    /// Returns the sum over the cells of each patch of the level on this rank; 0 for refined patches.
    pub fn patch_sums<M: CellValue>(
        &self,
        level: &LevelView,
        inputs: InputList,
        parameters: &M::Parameters,
    ) -> Result<Vec<f64>, DeviceError> {
        let job = CellJob::<M>::new(*level, inputs, parameters);
        job.check(self);
        with_storage!(&self.storage,
            <R> => Ok(self.sums::<M, R>(&job)),
            _ => self.launcher().sums(&job))
    }

    fn sums<M: CellFn<Result<R> = R>, R: Loops>(&self, job: &CellJob<M>) -> Vec<f64> {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            if !job.level.topology.is_leaf(row) {
                return 0.0;
            }
            let mut lanes = [0.0; 8];
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(row, &mut scratch[0], |cell, value| {
                lanes[cell % 8] += value.to_f64();
            });
            sum_of_lanes(lanes)
        };
        parallel::map(job.level.rows(), of_row)
    }

    /// Returns, for each patch of the level, a bit mask of nearby patches to refine.
    /// These are the patches among the 27 around it within `buffer` cells (0 to 8) of a cell marked by `M`. A fault of
    /// a device stops the run after the schedule.
    ///
    /// # Panics
    /// As [`Pool::reduce`].
    pub fn mark<M: CellMark>(
        &self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        buffer: usize,
        parameters: &M::Parameters,
    ) -> Vec<u32> {
        let inputs = inputs.list();
        let job = CellJob::<M>::new(rows.view(), inputs, parameters);
        job.check(self);
        let marked = with_storage!(&self.storage,
            <R> => self.sectors::<M, R>(&job, buffer),
            _ => rows.checked(self.launcher().sectors(&job, buffer), Vec::new()));
        self.check_gather_fault::<M>(rows);
        marked
    }

    fn sectors<M: CellFn<Result<R> = bool>, R: Loops>(
        &self,
        job: &CellJob<M>,
        buffer: usize,
    ) -> Vec<u32> {
        let reader = CellReader::<M, R>::new(self, job);
        let of_row = |&row: &u32| {
            let mut flags = CellFlags::NONE;
            let mut scratch = self.typed::<R>().cell_scratch.get();
            reader.each(row, &mut scratch[0], |cell, marked| {
                flags.0[cell / FACE] |= u64::from(marked) << (cell % FACE);
            });
            buffer_sectors(&flags, buffer)
        };
        parallel::map(job.level.rows(), of_row)
    }

    /// Reports a fault of a boundary rule on a device.
    pub(super) fn check_gather_fault<M: CellFn>(&self, rows: &LevelRows) {
        if M::REACH > 0 {
            rows.check_gathered(&self.storage);
        }
    }

    /// As [`Pool::mark`] for cells marked by any criterion of a list. A formula that is not a number stops the run
    /// after the schedule.
    ///
    /// # Panics
    /// If a function reads a component that the field does not have.
    #[must_use]
    pub fn mark_by_list(&self, rows: &LevelRows, buffer: usize, marks: &CriteriaList) -> Vec<u32> {
        if marks.list.is_empty() {
            return Vec::new();
        }
        with_storage!(&self.storage,
        <R> => self.sectors_by_list::<R>(rows, buffer, marks),
        _ => {
            let found = self.launcher().sectors_by_list(&rows.view(), buffer, marks);
            let (sectors, fault) = rows.checked(found, (Vec::new(), None));
            fault.into_iter().for_each(|message| rows.faults().report(|| message));
            sectors
        })
    }

    fn sectors_by_list<R: Loops>(
        &self,
        rows: &LevelRows,
        buffer: usize,
        marks: &CriteriaList,
    ) -> Vec<u32> {
        let (view, typed) = (rows.view(), self.typed::<R>());
        let (topology, level) = (view.topology, rows.level());
        let geometry = &view.geometry();
        let present = self.present::<R>(level);
        let around = || self.ghosts::<R>(topology, level, LIST_GHOSTS);
        let around = (!marks.stored.is_empty()).then(around);
        let of_row = |&row: &u32| {
            let mut scratch = typed.cell_scratch.get();
            let [block, stored] = &mut *scratch;
            let own = CellCube::of_patch(present.row(row), topology.index(row), geometry);
            if let Some(around) = &around {
                let shape = [self.components(), LIST_GHOSTS];
                gather_block(
                    around,
                    row,
                    u32::MAX,
                    shape,
                    block,
                    &mut typed.gather_scratch.get(),
                );
                let values = &block[..];
                marks.store_quantities(&own.with_ghosts(values), stored);
            }
            let values = &stored[..];
            let stored = CellCube {
                values,
                stride: LIST_BLOCK,
                ..own
            };
            buffer_sectors(&marks.flags(&own, &stored, rows.faults()), buffer)
        };
        parallel::map(view.rows(), of_row)
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

/// Sums the leaf cells in ranges of the patches of a level on this rank, `[node][component]`, in double precision.
///
/// Within a patch, eight lanes are summed in parallel. The patches of a range are summed pairwise in Hilbert order.
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

/// [`node_sums`] for a pool on the host.
fn sum_nodes<F: Field, R: Element>(
    pool: &Pool<F>,
    topology: &Topology,
    level: usize,
    nodes: &[Range<usize>],
) -> Vec<f64> {
    let components = pool.components();
    let rows = topology.rows(level);
    let values = pool.present::<R>(level);
    let rules = pool.spec.states.as_ref().map(R::states);
    let remainder = rules.and_then(|rules| rules.remainder);
    let mut sums = vec![0.0; rows.len() * components];
    parallel::for_each_chunk(&mut sums, components, 1, |n, sums| {
        if topology.is_leaf(rows[n]) {
            let values = values.row(rows[n]);
            let of_cells = remainder.map(|remainder| {
                let mut row = values.to_vec();
                remainder(&mut row, CELLS);
                row
            });
            let of_cells = of_cells.as_deref().unwrap_or_default();
            for (c, sum) in sums.iter_mut().enumerate() {
                let component = c * CELLS..(c + 1) * CELLS;
                // rows of other shapes have no totals
                let of_component = values.get(component.clone()).unwrap_or_default();
                *sum = sum_cells(of_component, of_cells.get(component));
            }
        }
    });
    let sum = |node: &Range<usize>, c| pairwise(&sums, c, components, node.start, node.end);
    let of_node = |node| (0..components).map(move |c| sum(node, c));
    nodes.iter().flat_map(of_node).collect()
}

/// Sums the values of a component in all cells of a patch, and their remainders, if there are any.
fn sum_cells<R: Element>(values: &[R], remainders: Option<&[R]>) -> f64 {
    let mut lanes = [0.0; 8];
    for (cell, value) in values.iter().enumerate() {
        lanes[cell % 8] += value.to_f64();
        if let Some(remainders) = remainders {
            lanes[cell % 8] += remainders[cell].to_f64();
        }
    }
    sum_of_lanes(lanes)
}

/// Sums component `c` of the patches `from..to` pairwise.
pub fn pairwise(sums: &[f64], c: usize, components: usize, from: usize, to: usize) -> f64 {
    match to - from {
        0 => 0.0,
        1 => sums[from * components + c],
        n => {
            let middle = from + n / 2;
            pairwise(sums, c, components, from, middle) + pairwise(sums, c, components, middle, to)
        }
    }
}

/// Number of patches summed by a task.
const PATCHES: usize = 512;

/// Summed numbers and work of a sub-cycled update of a level on this rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellTotals {
    /// The level.
    pub(super) level: usize,
    /// Volume of a cell.
    pub(super) volume: f64,
    /// Number of sums.
    pub(super) count: usize,
    /// Sum over the cells of each patch, `[patch][number]`; 0 for refined patches.
    pub(super) sums: Vec<f64>,
    /// Work per patch; empty if it is not measured.
    pub(super) work: Vec<u32>,
    /// Number of cells called in each round.
    pub(super) cells_per_round: Vec<u64>,
}

impl CellTotals {
    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// Returns the number of sums.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the sums over the leaf cells of each patch, `[patch][number]`, in row order and without the cell volume.
    #[must_use]
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Returns the work per patch in row order; empty if the function does not measure it.
    #[must_use]
    pub fn work(&self) -> &[u32] {
        &self.work
    }

    /// Returns the number of cells on this rank called in each round: the lengths of the queue.
    #[must_use]
    pub fn cells_per_round(&self) -> &[u64] {
        &self.cells_per_round
    }

    /// Returns the integrals over the leaf cells of this rank. They are exact, so that sums over ranks do not depend on
    /// their order.
    #[must_use]
    pub fn integrals(&self) -> Vec<ExactSum> {
        let nothing = || vec![ExactSum::default(); self.count];
        if self.count == 0 {
            return nothing();
        }
        let patches: Vec<&[f64]> = self.sums.chunks(PATCHES * self.count).collect();
        let of_part = |part: &&[f64]| {
            let mut integrals = nothing();
            for sums in part.chunks_exact(self.count) {
                for (integral, sum) in integrals.iter_mut().zip(sums) {
                    integral.add(self.volume * sum);
                }
            }
            integrals
        };
        let mut all = nothing();
        for part in parallel::map(&patches, of_part) {
            for (all, part) in all.iter_mut().zip(&part) {
                all.merge(part);
            }
        }
        all
    }

    /// Appends the totals of the next patches.
    pub(super) fn append(&mut self, other: Self) {
        self.sums.extend(other.sums);
        self.work.extend(other.work);
        if self.cells_per_round.len() < other.cells_per_round.len() {
            self.cells_per_round.resize(other.cells_per_round.len(), 0);
        }
        for (all, cells) in self.cells_per_round.iter_mut().zip(other.cells_per_round) {
            *all += cells;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reduce::CellTotals;

    #[test]
    fn integrals_are_those_of_any_parts() {
        let tally = |patches: std::ops::Range<usize>| CellTotals {
            volume: 0.125,
            count: 2,
            sums: patches
                .flat_map(|n| [1.0 / (n as f64 + 0.3), -1e-20 * n as f64])
                .collect(),
            ..CellTotals::default()
        };
        let all = tally(0..10_000).integrals();
        let mut parts = tally(0..17).integrals();
        for (sum, part) in parts.iter_mut().zip(tally(17..10_000).integrals()) {
            sum.merge(&part);
        }
        assert_eq!(all, parts);
        assert!((all[1].value() / (-0.125e-20 * 49_995_000.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn queues_add_up() {
        let totals = |cells: &[u64]| CellTotals {
            cells_per_round: cells.to_vec(),
            ..CellTotals::default()
        };
        let mut all = totals(&[512, 3]);
        all.append(totals(&[1024, 10, 1]));
        assert_eq!(all.cells_per_round(), [1536, 13, 1]);
    }
}
