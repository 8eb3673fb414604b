//! The root level with one cell a patch: each rank gathers it and solves for its corrections exactly, so that all have the same bits.

use super::grids::{Correction, Solver};
use super::root_fft::Bottom;
use nestar_device::{Address, Lane, Real};
use nestar_engine::comm::{Comm, Ranks};
use nestar_engine::step::Write;
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::device::CoarsestLevelParameters;

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
        (solver, others): (&Solver, &Comm),
    ) -> Result<(), Error> {
        let view = one.own_on(0);
        if let Some(kernels) = &solver.kernels {
            let (place, pool) = (view.place(), view.device());
            let tables = place.on_device();
            let rhs = CoarsestLevelParameters {
                rows: tables.rows(0).into(),
                index: tables.index().into(),
                values: pool.bank(1).into(),
                count: view.rows().len() as i32,
                cells: [0; 3],
                pairs: Address::NONE,
                whole: Address::NONE,
            };
            kernels
                .bottom
                .solve(self.bottom, others, rhs, pool.bank(0).into())?;
        } else {
            let [nx, ny, _] = self.bottom.cells();
            let place = |row: &u32| {
                let [x, y, z] = view.index(*row).map(|i| i as usize);
                x + nx * (y + ny * z)
            };
            let places: Vec<usize> = view.rows().iter().map(place).collect();
            in_precision!(view.precision(), R => {
                let (rhs, values) = (view.scratch::<R>(0), view.present::<R>());
                let own: Vec<f64> = view.rows().iter().map(|&row| rhs.get(row, 0).to_f64()).collect();
                let found = self.bottom.solve(self.all(&places, &own)?);
                for (&row, place) in view.rows().iter().zip(places) {
                    // SAFETY: nobody else uses the corrections.
                    unsafe { values.set(row, 0, R::lit(found[place])) };
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
        if self.ranks.is_single() {
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
