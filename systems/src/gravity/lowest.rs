//! The root level with one cell a patch: each rank gathers it and solves for its corrections exactly, so that all have the same bits.

use super::grids::{Correction, Solver};
use super::root::Bottom;
use nestar_device::{Address, Lane, Number, Real};
use nestar_engine::ranks::Ranks;
use nestar_engine::step::{View, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::device::Numbers;

/// What solves for them.
pub(super) struct Lowest<'a> {
    pub bottom: &'a Bottom,
    pub ranks: &'a Ranks,
}

impl Lowest<'_> {
    /// Sets the corrections of the root level to what makes up for their right-hand side. All ranks call it.
    pub fn solve(
        &self,
        one: &mut Write<'_, '_, Correction<1>, 1>,
        solver: &Solver,
    ) -> Result<(), Error> {
        let view = one.own_on(0);
        let [nx, ny, _] = self.bottom.cells();
        let place = |row: &u32| {
            let [x, y, z] = view.index(*row).map(|i| i as usize);
            x + nx * (y + ny * z)
        };
        let places: Vec<usize> = view.rows().iter().map(place).collect();
        let found = self.bottom.solve(self.all(&places, &rhs(&view, solver)?)?);
        let own: Vec<f64> = places.iter().map(|&place| found[place]).collect();
        if let Some(kernels) = &solver.kernels {
            kernels.root.scatter(&numbers(&view, 0), &own)?;
        } else {
            in_precision!(view.precision(), R => {
                let values = view.present::<R>();
                for (&row, value) in view.rows().iter().zip(own) {
                    // SAFETY: nobody else uses the corrections.
                    unsafe { values.set(row, 0, R::lit(value)) };
                }
            });
        }
        one.change_on(0);
        Ok(())
    }

    /// The values of all ranks by place.
    fn all(&self, places: &[usize], own: &[f64]) -> Result<Vec<f64>, Error> {
        let pairs = places.iter().zip(own);
        let mut all = vec![0.0; self.bottom.cells().iter().product()];
        if self.ranks.are_alone() {
            pairs.for_each(|(&place, &value)| all[place] = value);
            return Ok(all);
        }
        let message: Vec<f64> = pairs.flat_map(|(&n, value)| [n as f64, *value]).collect();
        let communicator = self.ranks.communicator();
        for bytes in communicator.all_gather(bytemuck::cast_slice(&message))? {
            let numbers: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
            for [place, value] in numbers.as_chunks().0 {
                all[*place as usize] = *value;
            }
        }
        Ok(all)
    }
}

/// The right-hand side in the own rows.
fn rhs(view: &View<Correction<1>>, solver: &Solver) -> Result<Vec<f64>, Error> {
    if let Some(kernels) = &solver.kernels {
        return kernels.root.gather(&numbers(view, 1));
    }
    Ok(in_precision!(view.precision(), R => {
        let rhs = view.scratch::<R>(0);
        view.rows().iter().map(|&row| rhs.get(row, 0).to_f64()).collect()
    }))
}

/// Own rows in a bank on the device.
fn numbers(view: &View<Correction<1>>, bank: usize) -> Numbers<Number> {
    Numbers {
        rows: view.place().on_device().rows(0).into(),
        count: view.rows().len() as i32,
        values: view.device().bank(bank).into(),
        numbers: Address::NONE,
    }
}
