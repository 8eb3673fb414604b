//! A multigrid cycle on one level: 8^3, 4^3, 2^3 and 1 cells a patch, and many sweeps over the last.

use super::border::Unknowns;
use super::grids::{Grids, Solver, each, listed, weights};
use super::kernels::{Kernels, blocks};
use super::lowest::Lowest;
use nestar_device::math::sin;
use nestar_device::{Address, Lane, Number};
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{Element, Field};
use nestar_engine::step::{FieldView, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::coarse::{self, CoarseGrid, mirror};
use nestar_kernels::multigrid::device;
use std::f64::consts::PI;

/// Patches whose corrections one block of a device finds faster than many launches do.
const ROWS_OF_A_BLOCK: usize = 128;
/// Sweeps over one cell a patch that suffice up to 16 patches across.
const FEWEST: usize = 8;

impl<P: Unknowns> Grids<'_, '_, P> {
    /// One cycle of a level, with so many sweeps before and after the coarser grids; of the root level one cell a patch is solved for by
    /// `lowest`.
    pub(super) fn cycle(
        &mut self,
        level: usize,
        sweeps: usize,
        lowest: Option<&Lowest>,
    ) -> Result<(), Error> {
        self.smooth(level, sweeps)?;
        self.restrict_residual(level)?;
        let small = !self.shares() && self.own_rows(level).len() <= ROWS_OF_A_BLOCK;
        match &self.solver.kernels {
            Some(kernels) if small && lowest.is_none() => {
                self.correct_at_once(level, sweeps, kernels)?;
            }
            _ => self.correct(level, sweeps, lowest)?,
        }
        let Self {
            four,
            potential,
            ranks,
            solver,
            ..
        } = self;
        let mut at = At {
            level,
            ranks,
            solver,
        };
        prolong::<8, _, _, 2>(four, potential, &mut at)?;
        self.smooth(level, sweeps)
    }

    /// Solves for the corrections of a level approximately.
    fn correct(
        &mut self,
        level: usize,
        sweeps: usize,
        lowest: Option<&Lowest>,
    ) -> Result<(), Error> {
        let bottom = Sweeps::of(self.rows.view_of(level).topology.count(level));
        let Self {
            four,
            two,
            one,
            ranks,
            solver,
            ..
        } = self;
        let mut at = At {
            level,
            ranks,
            solver,
        };
        smooth::<4, _>(four, &mut at, 2 * sweeps, 1.0)?;
        restrict::<4, _, _>(four, two, &mut at)?;
        smooth::<2, _>(two, &mut at, 2 * sweeps, 1.0)?;
        restrict::<2, _, _>(two, one, &mut at)?;
        match lowest {
            Some(lowest) => lowest.solve(one, (at.solver, at.ranks))?,
            None => smooth::<1, _>(one, &mut at, 2 * bottom.sweeps, bottom.omega)?,
        }
        prolong::<2, _, _, 1>(one, two, &mut at)?;
        smooth::<2, _>(two, &mut at, 2 * sweeps, 1.0)?;
        prolong::<4, _, _, 1>(two, four, &mut at)?;
        smooth::<4, _>(four, &mut at, 2 * sweeps, 1.0)
    }

    /// The same on a device that shares the level with no other, in one launch.
    fn correct_at_once(&self, level: usize, sweeps: usize, kernels: &Kernels) -> Result<(), Error> {
        let bottom = Sweeps::of(self.rows.view_of(level).topology.count(level));
        let (two, one) = (self.two.own_on(level), self.one.own_on(level));
        let bank = |pool: &DevicePool, n| Address::<Number>::from(pool.bank(n));
        kernels.correct(&device::CoarseCycleParameters {
            four: device::CoarseGridParameters {
                residual: bank(two.device(), 1),
                correction: bank(two.device(), 0),
                ..on_device::<4, _>(&self.four.own_on(level))
            },
            two: device::CoarseGridParameters {
                residual: bank(one.device(), 1),
                correction: bank(one.device(), 0),
                ..on_device::<2, _>(&two)
            },
            one: device::CoarseGridParameters {
                omega: bottom.omega,
                ..on_device::<1, _>(&one)
            },
            relaxations: 2 * sweeps as i32,
            relaxations_of_one: 2 * bottom.sweeps as i32,
        })
    }
}

/// How one cell a patch is solved for: plain sweeps where the level is small, over-relaxed ones where it is wide.
pub(super) struct Sweeps {
    pub sweeps: usize,
    omega: f64,
}

impl Sweeps {
    /// Of a level of so many patches.
    pub fn of(patches: usize) -> Self {
        let across = (1..).find(|n: &usize| n.pow(3) >= patches).unwrap_or(1);
        let sweeps = FEWEST.max(across / 2);
        let omega = match sweeps > FEWEST {
            true => 2.0 / (1.0 + sin(PI / across as f64)),
            false => 1.0,
        };
        Self { sweeps, omega }
    }
}

/// Where the corrections of a level are worked on.
struct At<'a, 'w> {
    level: usize,
    ranks: &'a mut Comm<'w>,
    solver: &'a Solver,
}

/// Relaxes a grid so many times, one colour after the other.
fn smooth<const N: usize, F: Field>(
    field: &mut Write<'_, '_, F, 1>,
    at: &mut At,
    times: usize,
    omega: f64,
) -> Result<(), Error> {
    // parts of smaller grids take as long as the whole
    let parts = N == 4 && at.solver.kernels.is_some();
    (0..times).try_for_each(|n| {
        let split = field
            .begin_refresh_on(at.ranks, at.level)?
            .filter(|_| parts);
        if let Some(split) = &split {
            let view = field.interior_on(at.level, split);
            relax::<N, F>(&view, at.solver, (n % 2, omega), Some(&split.interior))?;
        }
        field.finish_refresh_on(at.ranks, at.level)?;
        let (view, border) = (
            field.get_on(at.level, 1)?,
            split.as_ref().map(|split| &split.boundary),
        );
        relax::<N, F>(&view, at.solver, (n % 2, omega), border)?;
        field.change_on(at.level);
        Ok(())
    })
}

/// Relaxes one colour of some rows of a grid, or of all.
fn relax<const N: usize, F: Field>(
    view: &FieldView<F>,
    solver: &Solver,
    (colour, omega): (usize, f64),
    some: Option<&RowList>,
) -> Result<(), Error> {
    if let Some(kernels) = &solver.kernels {
        let all = on_device::<N, _>(view);
        let (rows, count) = some.map_or((all.rows, all.count), listed);
        let given = device::CoarseGridParameters {
            colour: colour as i32,
            omega,
            rows,
            count,
            ..all
        };
        // of rows of one cell all are looked at
        let items = count as usize * if N == 1 { 1 } else { N * N * N };
        return kernels.launch(
            &kernels.relax_coarse[place::<N>() - 1],
            blocks(items),
            &given,
        );
    }
    in_precision!(view.precision(), R => {
        let grid = on_host::<N, _, R>(view);
        // SAFETY: one colour of distinct rows.
        each(view.rows(), |row| unsafe {
            coarse::relax::<R, N>(&grid, row, colour, R::lit(omega));
        });
    });
    Ok(())
}

/// Fills the right-hand side of the next coarser grid with what this one is short of.
fn restrict<const N: usize, F: Field, G: Field>(
    field: &mut Write<'_, '_, F, 1>,
    to: &mut Write<'_, '_, G, 1>,
    at: &mut At,
) -> Result<(), Error> {
    field.refresh_on(at.ranks, at.level)?;
    let (view, out) = (field.get_on(at.level, 1)?, to.own_on(at.level));
    if let Some(kernels) = &at.solver.kernels {
        let given = device::CoarseGridParameters {
            residual: out.device().bank(1).into(),
            correction: out.device().bank(0).into(),
            ..on_device::<N, _>(&view)
        };
        let cells = view.rows().len() * (N / 2).pow(3);
        kernels.launch(
            &kernels.restrict_coarse[place::<N>() - 1],
            blocks(cells),
            &given,
        )?;
    } else {
        in_precision!(field.precision(), R => {
            let (grid, rhs, values) = (on_host::<N, _, R>(&view), out.scratch::<R>(0), out.present::<R>());
            // SAFETY: distinct rows.
            each(view.rows(), |row| unsafe {
                coarse::restrict_residual::<R, N>(&grid, row, &rhs, &values);
            });
        });
    }
    to.change_on(at.level);
    Ok(())
}

/// Adds the corrections of a grid to the next finer one, of `N`^3 cells a row.
fn prolong<const N: usize, F: Field, G: Field, const D: usize>(
    field: &mut Write<'_, '_, F, 1>,
    to: &mut Write<'_, '_, G, D>,
    at: &mut At,
) -> Result<(), Error> {
    field.refresh_on(at.ranks, at.level)?;
    let (view, out) = (field.get_on(at.level, 1)?, to.own_on(at.level));
    if let Some(kernels) = &at.solver.kernels {
        let given = device::ProlongCorrectionParameters {
            grid: match N {
                8 => on_device::<4, _>(&view),
                4 => on_device::<2, _>(&view),
                _ => on_device::<1, _>(&view),
            },
            to: out.device().bank(out.banks()[0]).into(),
        };
        let rows = view.rows().len();
        let blocks = if N == 8 {
            rows
        } else {
            blocks(rows * N * N * N)
        };
        kernels.launch(&kernels.prolong[place::<N>()], blocks, &given)?;
    } else {
        in_precision!(field.precision(), R => {
            let grid = match N {
                8 => on_host::<4, _, R>(&view),
                4 => on_host::<2, _, R>(&view),
                _ => on_host::<1, _, R>(&view),
            };
            let out = out.present::<R>();
            // SAFETY: distinct rows.
            each(view.rows(), |row| unsafe { coarse::prolong::<R, N>(&grid, row, &out) });
        });
    }
    to.change_on(at.level);
    Ok(())
}

/// The number of a grid of `N`^3 cells a row among those of a level: 8, 4, 2, 1.
const fn place<const N: usize>() -> usize {
    3 - N.ilog2() as usize
}

/// Cells of a level that one of a grid is as wide as.
fn times<const N: usize>() -> f64 {
    8.0 / N as f64
}

/// Cells of a level by which corrections reach beyond its border until they vanish: see [`mirror`].
fn reach<F: Field>(view: &FieldView<F>) -> f64 {
    if view.level() == 0 { 0.5 } else { 1.0 }
}

fn on_host<'a, const N: usize, F: Field, R: Element>(view: &FieldView<'a, F>) -> CoarseGrid<'a, R> {
    let topology = view.place().topology;
    CoarseGrid {
        neighbours: topology.neighbour_table(),
        index: topology.index_table(),
        values: view.present::<R>(),
        rhs: view.scratch::<R>(0),
        weights: weights(view.place().clock.cell_width, times::<N>()).map(R::lit),
        mirror: R::lit(mirror(times::<N>(), reach(view))),
    }
}

fn on_device<const N: usize, F: Field>(
    view: &FieldView<'_, F>,
) -> device::CoarseGridParameters<Number> {
    let (place, pool) = (view.place(), view.device());
    let tables = place.on_device();
    device::CoarseGridParameters {
        rows: tables.rows(view.level()).into(),
        neighbours: tables.neighbours().into(),
        index: tables.index().into(),
        values: pool.bank(0).into(),
        rhs: pool.bank(1).into(),
        residual: Address::NONE,
        correction: Address::NONE,
        count: view.rows().len() as i32,
        colour: 0,
        weights: weights(place.clock.cell_width, times::<N>()),
        mirror: mirror(times::<N>(), reach(view)),
        omega: 1.0,
    }
}
