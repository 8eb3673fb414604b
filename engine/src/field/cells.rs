//! Functions of one cell on the cells of a level, where the pools live: maps, reductions and marks.
//!
//! A function is a `#[device]` function as [`CellFn`] describes it. It may read several fields, of which the first is the pool
//! that the skeleton is called on; the others follow in the order of the function's tuple.

use super::device::DeviceTopology;
use super::faults::FaultBox;
use super::pool::{Element, Field, Pool, Storage};
use crate::device::DeviceError;
use crate::mesh::{LevelClock, Topology};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{CellFn, CellState, Precise};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::block::{LevelGeometry, cell_place};
use rayon::prelude::*;

/// Fields that a function may read beside the first.
const OTHERS: usize = 3;

/// The rows of the level at hand, as a system's parameter.
#[derive(SystemParam)]
pub struct LevelRows<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    tables: Option<Res<'w, DeviceTopology>>,
    faults: Res<'w, FaultBox>,
}

impl LevelRows<'_> {
    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.clock.level
    }

    /// Its rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        self.topology.rows(self.clock.level)
    }

    /// The level with its clock.
    #[must_use]
    pub fn view(&self) -> LevelView<'_> {
        LevelView {
            topology: &self.topology,
            clock: *self.clock,
            tables: self.tables.as_deref(),
        }
    }

    /// The value; an error of the device stops the run after the schedule.
    pub(super) fn checked<T>(&self, result: Result<T, DeviceError>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.faults.check(Err(error));
            otherwise
        })
    }
}

/// A level at a time: what a skeleton needs beside the fields.
#[derive(Clone, Copy)]
pub struct LevelView<'a> {
    /// The hierarchy.
    pub topology: &'a Topology,
    /// Level and time.
    pub clock: LevelClock,
    /// The hierarchy's tables where fields live on a device.
    pub tables: Option<&'a DeviceTopology>,
}

impl LevelView<'_> {
    /// Its rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        self.topology.rows(self.clock.level)
    }

    /// What the places of its cells are made of.
    pub(super) fn geometry(&self) -> LevelGeometry {
        let domain = &self.topology.domain;
        LevelGeometry {
            left: domain.left_edge,
            right: domain.right_edge,
            cells: domain.cells(self.clock.level),
            level: self.clock.level as i32,
            width: self.clock.cell_width,
            time: self.clock.time,
            dt: self.clock.dt,
        }
    }
}

/// A field whose present state functions of a cell may read: every [`Pool`].
pub trait CellSource: Sync {
    /// The values.
    fn values(&self) -> &Storage;
    /// Bank with the present state of `level`.
    fn present_bank(&self, level: usize) -> usize;
    /// Number of components.
    fn count(&self) -> usize;
}

impl<F: Field> CellSource for Pool<F> {
    fn values(&self) -> &Storage {
        &self.storage
    }

    fn present_bank(&self, level: usize) -> usize {
        self.current(level)
    }

    fn count(&self) -> usize {
        self.components()
    }
}

/// A function whose result a map writes: a state of the first field.
pub trait CellMap:
    CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

impl<M> CellMap for M where
    M: CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

/// A function that gives a number.
pub trait CellValue: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

impl<M> CellValue for M where M: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

/// A function that says yes or no.
pub trait CellMark: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

impl<M> CellMark for M where M: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

/// What a function reads on the host.
pub(super) struct Reader<'a, R> {
    pub own: Rows<'a, R>,
    others: [Option<Rows<'a, R>>; OTHERS],
    geometry: LevelGeometry,
    index: &'a [[i32; 3]],
}

impl<'a, R: Element> Reader<'a, R> {
    pub fn new(
        own: &'a dyn CellSource,
        others: &[&'a dyn CellSource],
        level: &LevelView<'a>,
    ) -> Self {
        let rows = |source: &'a dyn CellSource| {
            let typed = R::typed(source.values()).expect("all fields have one precision and place");
            typed.bank(source.present_bank(level.clock.level))
        };
        Self {
            own: rows(own),
            others: std::array::from_fn(|n| others.get(n).map(|source| rows(*source))),
            geometry: level.geometry(),
            index: level.topology.index_table(),
        }
    }

    /// The values of a row in the other fields.
    pub fn others(&self, row: u32) -> [&'a [R]; OTHERS] {
        self.others
            .each_ref()
            .map(|rows| rows.as_ref().map_or(&[][..], |rows| rows.row(row)))
    }

    /// The function's result in a cell of a row.
    #[inline(always)]
    pub fn call<M: CellFn>(
        &self,
        row: u32,
        own: &[R],
        others: &[&[R]; OTHERS],
        cell: usize,
        given: &<M::Parameters as Precise>::In<R>,
    ) -> M::Result<R> {
        let mut get = |field: usize, component: usize| {
            let values = if field == 0 { own } else { others[field - 1] };
            values[component * CELLS + cell]
        };
        let state = M::State::<R>::read(&mut get, 0, 0);
        let index = self.index[row as usize];
        M::call(
            state,
            &cell_place(&self.geometry, index, cell as i32),
            given,
        )
    }
}

/// Whether a function fits to fields.
pub(super) fn check<M: CellFn>(own: &dyn CellSource, others: &[&dyn CellSource]) {
    let wanted = M::State::<f64>::COMPONENTS;
    for (field, wanted) in wanted.into_iter().enumerate() {
        let source = field.checked_sub(1).map_or(Some(&own), |n| others.get(n));
        let there = source.map_or(0, |source| source.count());
        assert!(
            wanted <= there,
            "{} reads {wanted} components of field {field}, which has {there}",
            M::ITEM.name
        );
    }
}

impl<F: Field> Pool<F> {
    /// Applies `M` to every cell of the level at hand, covered ones included, where the pool lives. What goes wrong on a
    /// device stops the run after the schedule. All ranks call it, also without rows.
    ///
    /// # Panics
    /// If the function reads more components than the field has.
    pub fn map_cells<M: CellMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        self.map_with::<M>(rows, &[], parameters);
    }

    /// As [`Pool::map_cells`] for a function that reads the present states of other fields too.
    ///
    /// # Panics
    /// As [`Pool::map_cells`]; if a field lives elsewhere or has the other precision.
    pub fn map_with<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        check::<M>(self, others);
        let level = rows.view();
        match &self.storage {
            Storage::Single(_) => self.map_rows::<M, f32>(&level, others, parameters),
            Storage::Double(_) => self.map_rows::<M, f64>(&level, others, parameters),
            Storage::Device(_) => {
                let mapped = self.map_on_device::<M>(&level, others, parameters);
                rows.checked(mapped, ());
            }
        }
        self.touch(level.clock.level, level.rows());
    }

    fn map_rows<M: CellFn<Result<R>: CellState<R>>, R: Element>(
        &self,
        level: &LevelView,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        let reader = Reader::<R>::new(self, others, level);
        let given = parameters.precise::<R>();
        level.rows().par_iter().for_each(|&row| {
            // SAFETY: the pool is borrowed alone, and the rows are distinct.
            let own = unsafe { reader.own.row_mut(row) };
            let others = reader.others(row);
            for cell in 0..CELLS {
                let result = reader.call::<M>(row, own, &others, cell, &given);
                result.write(&mut |_, c, value| own[c * CELLS + cell] = value, 0, 0);
            }
        });
    }
}
