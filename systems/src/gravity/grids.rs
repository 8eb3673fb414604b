//! The operations of the solver on the unknowns of a level, wherever they live: loops over rows on the host, kernels on a device.

use super::beyond::ExteriorPotential;
use super::border::Unknowns;
use super::kernels::Kernels;
use crate::fields::{Matter, Potential};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{StaticSystemParam, SystemParam};
use nestar_device::{Address, Number};
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::device::DeviceView;
use nestar_engine::data::{Element, Field, LevelRows};
use nestar_engine::step::{FieldView, Read, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::GhostView;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::exterior::Exterior;
use nestar_kernels::multigrid::level::{self, LevelGrid};
use nestar_kernels::multigrid::source::PoissonSource;
use rayon::prelude::*;

/// What the finer level adds to the right-hand side of a level.
pub struct Lag;

impl Field for Lag {
    const NAME: &'static str = "poisson_lag";
}

/// By how much the unknowns of the finer level change along x, y, z in covered cells: where several ranks share the hierarchy.
pub struct Differences;

impl Field for Differences {
    const NAME: &'static str = "poisson_differences";
}

/// Energy that gas is due: what its mass fluxes have done in a step, less what the first kick gave.
pub struct Due;

impl Field for Due {
    const NAME: &'static str = "gravity_due";
}

/// Corrections of a level in rows of `N`^3 cells; their right-hand side in the working space.
pub struct Correction<const N: usize>;

impl Field for Correction<4> {
    const NAME: &'static str = "poisson_correction_4";
}
impl Field for Correction<2> {
    const NAME: &'static str = "poisson_correction_2";
}
impl Field for Correction<1> {
    const NAME: &'static str = "poisson_correction_1";
}

/// The right-hand side of the equation: coefficient * (density - mean).
#[derive(Resource, Clone, Copy)]
pub(super) struct Equation {
    /// 4 pi G.
    pub coefficient: f64,
    /// The mean density of a periodic domain, which does not feel it; else 0.
    pub mean: f64,
}

impl Equation {
    /// On the host, by the density `matter` of a level.
    pub fn on_host<'a, R: Element, F: Field>(
        self,
        matter: &FieldView<'a, F>,
    ) -> PoissonSource<'a, R> {
        PoissonSource {
            density: matter.present::<R>(),
            coefficient: R::lit(self.coefficient),
            mean: R::lit(self.mean),
        }
    }

    /// On a device.
    pub fn on_device<F: Field>(self, matter: &FieldView<F>) -> device::SourceParameters<Number> {
        device::SourceParameters {
            density: matter.device().bank(matter.banks()[0]).into(),
            coefficient: self.coefficient,
            mean: self.mean,
        }
    }
}

/// What solves the equation on a device, if the fields live there.
#[derive(Resource)]
pub struct Solver {
    pub(super) kernels: Option<Kernels>,
}

/// The fields of the solver, as a system's parameter.
#[derive(SystemParam)]
pub struct Grids<'w, 's, P: Unknowns = Potential> {
    /// The level at hand, or the one visited.
    pub rows: LevelRows<'w, 's>,
    /// The unknowns.
    pub potential: Write<'w, 's, P, 2>,
    /// The density.
    pub matter: Read<'w, 's, Matter>,
    /// What the right-hand side is made of besides.
    pub(super) equation: Res<'w, Equation>,
    /// What finer levels add to the right-hand side of [`Unknowns::USES_TAU`].
    pub tau: Write<'w, 's, Lag>,
    pub(super) differences: Write<'w, 's, Differences, 1>,
    pub(super) four: Write<'w, 's, Correction<4>, 1>,
    pub(super) two: Write<'w, 's, Correction<2>, 1>,
    pub(super) one: Write<'w, 's, Correction<1>, 1>,
    /// The other ranks.
    pub ranks: Comm<'w>,
    pub(super) solver: Res<'w, Solver>,
    pub(super) beyond: ResMut<'w, ExteriorPotential<P>>,
    /// Where borders come from, unless it is the unknowns themselves.
    pub(super) coarser: StaticSystemParam<'w, 's, <P as Unknowns>::Coarser>,
}

/// 1 / width^2 along the axes, of cells so many times as wide as given.
pub(super) fn weights(width: [f64; 3], times: f64) -> [f64; 3] {
    width.map(|w| 1.0 / ((w * times) * (w * times)))
}

/// A list of rows for kernels, and its length.
pub(super) fn listed(rows: &RowList) -> (Address<i32>, i32) {
    (rows.device_list.into(), rows.rows.len() as i32)
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// Own rows of a level.
    pub(super) fn own_rows(&self, level: usize) -> &[u32] {
        self.potential.own_on(level).rows()
    }

    /// What the finer level adds to the right-hand side of a level, if it counts.
    pub(super) fn lag_of(&self, level: usize) -> Option<FieldView<'_, Lag>> {
        P::USES_TAU.then(|| self.tau.own_on(level))
    }

    /// Whether several ranks share the hierarchy.
    pub(super) fn shares(&self) -> bool {
        !self.ranks.is_single()
    }

    fn width(&self, level: usize) -> [f64; 3] {
        self.rows.view_of(level).clock.cell_width
    }

    /// A level's equation on the host.
    pub(super) fn host_level<R: Element>(&self, level: usize) -> Result<LevelGrid<'_, R>, Error> {
        let view = self.potential.get_on(level, 1)?;
        Ok(LevelGrid {
            view: self.with_border(level, view.ghosts::<R>())?,
            exterior: self.exterior(level, view.weights_on(0)[1]),
            source: self.equation.on_host(&self.matter.own_on(level)),
            tau: self.lag_of(level).map(|tau| tau.present::<R>()),
            weights: weights(self.width(level), 1.0).map(R::lit),
        })
    }

    /// A level's equation on the device.
    pub(super) fn device_level(
        &self,
        level: usize,
    ) -> Result<device::LevelParameters<Number>, Error> {
        self.device_level_of(level, &self.potential.get_on(level, 1)?)
    }

    /// The same of a view.
    fn device_level_of(
        &self,
        level: usize,
        view: &FieldView<P>,
    ) -> Result<device::LevelParameters<Number>, Error> {
        let (place, four) = (view.place(), self.four.own_on(level));
        Ok(device::LevelParameters {
            view: self.with_border_on_device(level, view.on_device())?,
            exterior: self.exterior_on_device(level, view.weights_on(0)[1]),
            source: self.equation.on_device(&self.matter.own_on(level)),
            tau: self
                .lag_of(level)
                .map_or(Address::NONE, |tau| bank_of(&tau)),
            residual: four.device().bank(1).into(),
            correction: four.device().bank(0).into(),
            rows: place.on_device().rows(level).into(),
            count: view.rows().len() as i32,
            colour: 0,
            weights: weights(self.width(level), 1.0),
        })
    }

    /// Relaxes one colour of a level.
    fn relax(&mut self, level: usize, colour: usize) -> Result<(), Error> {
        let split = self.potential.begin_refresh_on(&mut self.ranks, level)?;
        let split = split.filter(|_| self.solver.kernels.is_some());
        if let Some(split) = &split {
            let view = self.potential.interior_on(level, split);
            self.relax_rows((level, colour), &view, Some(&split.interior))?;
        }
        self.potential.finish_refresh_on(&mut self.ranks, level)?;
        let border = split.as_ref().map(|split| &split.boundary);
        self.relax_rows((level, colour), &self.potential.get_on(level, 1)?, border)?;
        self.potential.change_on(level);
        Ok(())
    }

    /// Relaxes one colour of some rows, or of all.
    fn relax_rows(
        &self,
        (level, colour): (usize, usize),
        view: &FieldView<P>,
        some: Option<&RowList>,
    ) -> Result<(), Error> {
        if let Some(kernels) = &self.solver.kernels {
            let all = self.device_level_of(level, view)?;
            let (rows, count) = some.map_or((all.rows, all.count), listed);
            let given = device::LevelParameters {
                colour: colour as i32,
                rows,
                count,
                ..all
            };
            let rows = count as usize;
            kernels
                .relax
                .count_work(rows * CELLS / 2, rows * CELLS * 16);
            return kernels.launch(&kernels.relax, rows, &given);
        }
        in_precision!(self.potential.precision(), R => {
            let grid = self.host_level::<R>(level)?;
            // SAFETY: one colour of distinct rows.
            each(self.own_rows(level), |row| unsafe { level::relax(&grid, row, colour) });
        });
        Ok(())
    }

    /// Relaxes a level so many times, each time one colour after the other.
    pub(super) fn smooth(&mut self, level: usize, times: usize) -> Result<(), Error> {
        (0..2 * times).try_for_each(|n| self.relax(level, n % 2))
    }

    /// Sets the right-hand side of the corrections in rows of 4^3 cells to the means of what the level is short of.
    pub(super) fn restrict_residual(&mut self, level: usize) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let given = self.device_level(level)?;
            let count = given.count as usize;
            kernels
                .restrict_residual
                .count_work(count * CELLS, count * CELLS * 24);
            kernels.launch(&kernels.restrict_residual, count, &given)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let (grid, four) = (self.host_level::<R>(level)?, self.four.own_on(level));
                let (rhs, values) = (four.scratch::<R>(0), four.present::<R>());
                // SAFETY: distinct rows.
                each(self.own_rows(level), |row| unsafe {
                    level::restrict_residual(&grid, row, &rhs, &values);
                });
            });
        }
        self.four.change_on(level);
        Ok(())
    }

    /// Largest residual of a level's leaves over the largest right-hand side of the level, which covered cells have too: leaves may be all
    /// but empty.
    ///
    /// # Errors
    /// As [`Write::refresh_on`](nestar_engine::step::Write::refresh_on).
    pub fn residual(&mut self, level: usize) -> Result<f64, Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        let [residual, source] = if let Some(kernels) = &self.solver.kernels {
            kernels.largest_residual(self.device_level(level)?)?
        } else {
            in_precision!(self.potential.precision(), R => {
                let grid = self.host_level::<R>(level)?;
                let topology = self.rows.view_of(level).topology;
                let largest = self.own_rows(level).par_iter().map(|&row| {
                    level::largest_residual(&grid, row, topology.is_leaf(row))
                });
                largest.reduce(|| [0.0; 2], |a, b| [0, 1].map(|n| level::larger(a[n], b[n])))
            })
        };
        let [residual, source] = [self.largest(residual)?, self.largest(source)?];
        // also if it is no number
        Ok(if source == 0.0 && residual.is_finite() {
            0.0
        } else {
            residual / source
        })
    }

    /// The largest of all ranks of a number that is not below 0.
    fn largest(&self, value: f64) -> Result<f64, Error> {
        // such numbers are ordered as their bits
        Ok(f64::from_bits(self.ranks.max(value.to_bits())?))
    }
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// A level with its border.
    pub(super) fn with_border<'a, R: Element>(
        &'a self,
        level: usize,
        view: GhostView<'a, R>,
    ) -> Result<GhostView<'a, R>, Error> {
        let Some(coarser) = P::coarser(&self.coarser) else {
            return Ok(view);
        };
        let border = coarser.potential.get_on(level, 1)?.ghosts::<R>();
        Ok(GhostView {
            coarse_old: border.coarse_old,
            coarse_new: border.coarse_new,
            weight: border.weight,
            ..view
        })
    }

    /// The same on a device.
    pub(super) fn with_border_on_device(
        &self,
        level: usize,
        view: DeviceView,
    ) -> Result<DeviceView, Error> {
        let Some(coarser) = P::coarser(&self.coarser) else {
            return Ok(view);
        };
        let border = coarser.potential.get_on(level, 1)?.on_device();
        Ok(DeviceView {
            coarse_old: border.coarse_old,
            coarse_new: border.coarse_new,
            weight: border.weight,
            ..view
        })
    }

    /// What is beyond the domain for a level, by the weight of the newer state of the root level: the border of the root level itself is
    /// that of its unknowns.
    pub(super) fn exterior<R: Element>(&self, level: usize, weight: f64) -> Exterior<'_, R> {
        match P::coarser(&self.coarser) {
            Some(coarser) if level > 0 => coarser.beyond.on_host(weight),
            _ => self.beyond.on_host(weight),
        }
    }

    /// The same on a device.
    pub(super) fn exterior_on_device(
        &self,
        level: usize,
        weight: f64,
    ) -> device::ExteriorParameters<Number> {
        match P::coarser(&self.coarser) {
            Some(coarser) if level > 0 => coarser.beyond.on_device(weight),
            _ => self.beyond.on_device(weight),
        }
    }
}

/// The bank of the potential that a level is kept in.
pub(super) const KEPT: usize = 2;

/// Address of a field's present bank.
pub(super) fn present_bank<F: Field, const D: usize>(
    field: &Write<'_, '_, F, D>,
    level: usize,
) -> Address<Number> {
    bank_of(&field.own_on(level))
}

pub(super) fn bank_of<F: Field>(view: &FieldView<F>) -> Address<Number> {
    view.device().bank(view.banks()[0]).into()
}

/// Calls `work` with each of some rows, in parallel.
pub(super) fn each(rows: &[u32], work: impl Fn(u32) + Sync) {
    rows.par_iter().for_each(|&row| work(row));
}
