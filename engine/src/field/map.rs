//! Cell-wise maps: a `#[device]` function applied to every cell of a level, where the pool lives.

use super::device::DeviceTopology;
use super::pool::{Element, Field, Pool, Storage};
use crate::field::FaultBox;
use crate::mesh::{LevelClock, Topology};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::MapFn;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::cell::CellState;
use rayon::prelude::*;

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
}

/// A map that field `F` can apply: `fn f<R: Real>(state: F::Cell<R>, p1: R, …) -> F::Cell<R>`, marked `#[device]`.
pub trait CellMap<F: Field>:
    MapFn<State<f32> = F::Cell<f32>> + MapFn<State<f64> = F::Cell<f64>>
{
}

impl<F: Field, M> CellMap<F> for M where
    M: MapFn<State<f32> = F::Cell<f32>> + MapFn<State<f64> = F::Cell<f64>>
{
}

impl<F: Field> Pool<F> {
    /// Applies `M` with the given parameters to every cell of the level at hand, covered ones included, where the pool lives.
    /// What goes wrong on a device stops the run behind the schedule.
    ///
    /// # Panics
    /// If the number of parameters is not the function's.
    pub fn map_cells<M: CellMap<F>>(&mut self, rows: &LevelRows, parameters: &[f64]) {
        assert_eq!(
            parameters.len(),
            M::PARAMETERS,
            "parameters of {}",
            M::ITEM.name
        );
        let level = rows.level();
        let bank = self.current(level);
        match (&mut self.storage, &rows.tables) {
            (Storage::Single(_), _) => {
                self.map_rows(level, rows.rows(), parameters, M::call::<f32>);
            }
            (Storage::Double(_), _) => {
                self.map_rows(level, rows.rows(), parameters, M::call::<f64>);
            }
            (Storage::Device(device), Some(tables)) => {
                let mapped = device.map(tables, level, bank, M::ITEM, parameters);
                rows.faults.check(mapped);
            }
            (Storage::Device(_), None) => panic!("a pool on a device needs its topology there"),
        }
        self.touch(rows.rows());
    }

    fn map_rows<R: Element>(
        &self,
        level: usize,
        rows: &[u32],
        parameters: &[f64],
        map: impl Fn(F::Cell<R>, &[R]) -> F::Cell<R> + Sync,
    ) {
        let present = self.present::<R>(level);
        let mut values = [R::lit(0.0); 8];
        for (value, &p) in values.iter_mut().zip(parameters) {
            *value = R::lit(p);
        }
        let values = &values[..parameters.len()];
        rows.par_iter().for_each(|&row| {
            // SAFETY: the rows are distinct.
            let row = unsafe { present.row_mut(row) };
            for cell in 0..CELLS {
                map(F::Cell::<R>::read(row, cell), values).write(row, cell);
            }
        });
    }
}
