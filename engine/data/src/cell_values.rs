//! Reads and writes all components of single cells.

use super::level::LevelRows;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use nestar_device::{Lane, Real};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{Topology, parallel};
use nestar_kernels::{CELLS, PATCH};

/// A cell of a patch of this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellAddress {
    /// Row of the patch.
    pub row: u32,
    /// Number of the cell in the patch, 0 to 511, x fastest.
    pub cell: usize,
}

impl CellAddress {
    /// Returns the address of a cell, given by its index on a level, if it lies in a leaf of this rank.
    #[must_use]
    pub fn in_own_leaf(topology: &Topology, level: usize, cell: [i32; 3]) -> Option<Self> {
        let side = PATCH as i32;
        let row = topology.find(level, cell.map(|i| i.div_euclid(side)))?;
        let is_there = topology.is_owned(row) && topology.is_leaf(row);
        let [i, j, k] = cell.map(|i| i.rem_euclid(side) as usize);
        is_there.then_some(Self {
            row,
            cell: i + PATCH * (j + PATCH * k),
        })
    }

    /// Returns the index of the cell on its level.
    #[must_use]
    pub fn index(&self, topology: &Topology) -> [i32; 3] {
        let within = [
            self.cell % PATCH,
            self.cell / PATCH % PATCH,
            self.cell / (PATCH * PATCH),
        ];
        let patch = topology.index(self.row);
        [0, 1, 2].map(|axis| patch[axis] * PATCH as i32 + within[axis] as i32)
    }
}

impl<F: Field> Pool<F> {
    /// Returns the present states of single cells of a level, `[cell][component]`.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the values are not in cells.
    pub fn cells(&self, level: usize, cells: &[CellAddress]) -> Result<Vec<f64>, DeviceError> {
        self.require_cells();
        with_storage!(&self.storage,
            <R> => {
                let present = self.present::<R>(level);
                let of_cell = |at: &CellAddress| present.row(at.row).iter().skip(at.cell).step_by(CELLS);
                Ok(cells.iter().flat_map(of_cell).map(|x| Real::to_f64(*x)).collect())
            },
            device => device.read_cells(device.bank(self.current(level)), cells))
    }

    /// Sets the present states of distinct cells of a level, `[cell][component]`, rounded to the precision of the field.
    /// Collective, also without cells. Returns the first cell whose state would be unphysical; then nothing changes.
    ///
    /// # Panics
    /// If the values are not in cells, or the lengths differ.
    pub fn set_cells(
        &mut self,
        rows: &LevelRows,
        level: usize,
        cells: &[CellAddress],
        values: &[f64],
    ) -> Option<usize> {
        self.require_cells();
        let components = self.components();
        assert_eq!(
            cells.len() * components,
            values.len(),
            "values of {}",
            F::NAME
        );
        if let Some(unphysical) = self.first_unphysical_of(values) {
            return Some(unphysical);
        }
        let set = with_storage!(&self.storage,
            <R> => {
                let present = self.present::<R>(level);
                for (at, values) in cells.iter().zip(values.chunks_exact(components)) {
                    // SAFETY: nothing else accesses the field.
                    let own = unsafe { present.row_mut(at.row) };
                    let own = own.iter_mut().skip(at.cell).step_by(CELLS);
                    own.zip(values).for_each(|(own, value)| *own = R::lit(*value));
                }
                Ok(())
            },
            device => device.write_cells(device.bank(self.current(level)), cells, values));
        rows.checked(set, ());
        let mut changed: Vec<u32> = cells.iter().map(|at| at.row).collect();
        changed.dedup();
        self.touch(level, &changed);
        None
    }

    fn require_cells(&self) {
        let values = self.components() * CELLS;
        assert_eq!(self.spec.row_values(), values, "values of {}", F::NAME);
    }

    /// Returns the number of the first unphysical state.
    fn first_unphysical_of(&self, values: &[f64]) -> Option<usize> {
        let rules = self.spec.states.as_ref()?;
        crate::in_precision!(self.precision(), R => {
            let states = <R as super::Element>::states(rules);
            let is_physical = |state: &[f64]| {
                let state: Vec<R> = state.iter().map(|x| R::lit(*x)).collect();
                (states.physical)(&state, 1)
            };
            let components = self.components();
            let state = |n: usize| &values[n * components..][..components];
            parallel::first_index(values.len() / components, |n| !is_physical(state(n)))
        })
    }
}
