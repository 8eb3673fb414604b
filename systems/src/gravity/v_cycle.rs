//! Multigrid V-cycle on one level: grids of 8^3, 4^3, 2^3 and 1 cells per patch, with many sweeps on the last.

use super::config::OVER_RELAXATION;
use super::kernels::{GravityKernels, blocks};
use super::level_solver::{
    DeviceSolver, LevelSolver, PotentialField, for_each_row, row_list, weights,
};
use super::root_level::CoarsestSolve;
use nestar_device::math::sin;
use nestar_device::{Address, Lane, Number};
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{Element, Field};
use nestar_engine::step::{FieldView, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::coarse::{self, CoarseGrid, mirror};
use nestar_kernels::multigrid::device;
use std::f64::consts::PI;

/// Number of patches up to which one launch solves for the corrections faster than many.
const MAX_ROWS_IN_ONE_LAUNCH: usize = 4096;
/// Least number of sweeps on one cell per patch.
const MIN_SWEEPS: usize = 5;

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Performs one V-cycle of a level with `sweeps` sweeps before and after the coarser grids; `coarsest` solves the
    /// grid with one cell per patch of the root level.
    pub(super) fn cycle(
        &mut self,
        level: usize,
        sweeps: usize,
        coarsest: Option<&CoarsestSolve>,
    ) -> Result<(), Error> {
        self.smooth(level, sweeps)?;
        self.restrict_residual(level)?;
        let small = !self.is_distributed() && self.own_rows(level).len() <= MAX_ROWS_IN_ONE_LAUNCH;
        match &self.solver.kernels {
            Some(kernels) if small && coarsest.is_none() => {
                self.solve_corrections_in_one_launch(level, sweeps, kernels)?;
            }
            _ => self.solve_corrections(level, sweeps, coarsest)?,
        }
        let Self {
            coarse_4,
            potential,
            ranks,
            solver,
            ..
        } = self;
        let mut at = CycleContext {
            level,
            ranks,
            solver,
        };
        prolong::<8, _, _, 2>(coarse_4, potential, &mut at)?;
        self.smooth(level, sweeps)
    }

    /// Solves for the corrections of a level approximately.
    fn solve_corrections(
        &mut self,
        level: usize,
        sweeps: usize,
        coarsest: Option<&CoarsestSolve>,
    ) -> Result<(), Error> {
        let coarsest_sweeps = CoarsestSweeps::of(self.rows.view_of(level).topology.count(level));
        let Self {
            coarse_4,
            coarse_2,
            coarse_1,
            ranks,
            solver,
            ..
        } = self;
        let mut at = CycleContext {
            level,
            ranks,
            solver,
        };
        smooth::<4, _>(coarse_4, &mut at, 2 * sweeps, OVER_RELAXATION)?;
        restrict::<4, _, _>(coarse_4, coarse_2, &mut at)?;
        smooth::<2, _>(coarse_2, &mut at, 2 * sweeps, OVER_RELAXATION)?;
        restrict::<2, _, _>(coarse_2, coarse_1, &mut at)?;
        match coarsest {
            Some(coarsest) => coarsest.solve(coarse_1, at.solver, at.ranks)?,
            None => smooth::<1, _>(
                coarse_1,
                &mut at,
                2 * coarsest_sweeps.sweeps,
                coarsest_sweeps.omega,
            )?,
        }
        prolong::<2, _, _, 1>(coarse_1, coarse_2, &mut at)?;
        smooth::<2, _>(coarse_2, &mut at, 2 * sweeps, OVER_RELAXATION)?;
        prolong::<4, _, _, 1>(coarse_2, coarse_4, &mut at)?;
        smooth::<4, _>(coarse_4, &mut at, 2 * sweeps, OVER_RELAXATION)
    }

    /// Solves for the corrections in one launch, on a device that does not share the level with other ranks.
    fn solve_corrections_in_one_launch(
        &self,
        level: usize,
        sweeps: usize,
        kernels: &GravityKernels,
    ) -> Result<(), Error> {
        let coarsest_sweeps = CoarsestSweeps::of(self.rows.view_of(level).topology.count(level));
        let (coarse_2, coarse_1) = (self.coarse_2.own_on(level), self.coarse_1.own_on(level));
        let mirrored = self.solver.mirrored;
        let bank = |pool: &DevicePool, n| Address::<Number>::from(pool.bank(n));
        kernels.coarse_cycle(&device::CoarseCycleParameters {
            coarse_4: device::CoarseGridParameters {
                residual: bank(coarse_2.device(), 1),
                correction: bank(coarse_2.device(), 0),
                ..on_device::<4, _>(&self.coarse_4.own_on(level), mirrored)
            },
            coarse_2: device::CoarseGridParameters {
                residual: bank(coarse_1.device(), 1),
                correction: bank(coarse_1.device(), 0),
                ..on_device::<2, _>(&coarse_2, mirrored)
            },
            coarse_1: device::CoarseGridParameters {
                omega: coarsest_sweeps.omega,
                ..on_device::<1, _>(&coarse_1, mirrored)
            },
            relaxations: 2 * sweeps as i32,
            coarse_1_relaxations: 2 * coarsest_sweeps.sweeps as i32,
        })
    }
}

/// Sweeps of successive over-relaxation on the grid with one cell per patch. With them a cycle converges as fast on wide levels as on
/// small ones.
pub(super) struct CoarsestSweeps {
    pub sweeps: usize,
    omega: f64,
}

impl CoarsestSweeps {
    /// Returns the settings for a number of patches.
    pub fn of(patches: usize) -> Self {
        let across = (1..).find(|n: &usize| n.pow(3) >= patches).unwrap_or(1);
        Self {
            sweeps: MIN_SWEEPS.max((2 * across).div_ceil(3)),
            omega: 2.0 / (1.0 + sin(PI / (across + 1) as f64)),
        }
    }
}

/// Level and solver of the corrections.
struct CycleContext<'a, 'w> {
    level: usize,
    ranks: &'a mut Comm<'w>,
    solver: &'a DeviceSolver,
}

/// Relaxes a grid `times` times, alternating between the two colours.
fn smooth<const N: usize, F: Field>(
    field: &mut Write<'_, '_, F, 1>,
    at: &mut CycleContext,
    times: usize,
    omega: f64,
) -> Result<(), Error> {
    // splitting smaller grids does not pay
    let parts = N == 4 && at.solver.kernels.is_some();
    (0..times).try_for_each(|n| {
        let split = field.begin_refresh(at.ranks, at.level)?.filter(|_| parts);
        if let Some(split) = &split {
            let view = field.interior(at.level, split);
            relax::<N, F>(&view, at.solver, n % 2, omega, Some(&split.interior))?;
        }
        field.finish_refresh(at.ranks, at.level)?;
        let (view, border) = (
            field.get_on(at.level, 1)?,
            split.as_ref().map(|split| &split.boundary),
        );
        relax::<N, F>(&view, at.solver, n % 2, omega, border)?;
        field.change_on(at.level);
        Ok(())
    })
}

/// Relaxes one colour of some rows of a grid, or of all.
fn relax<const N: usize, F: Field>(
    view: &FieldView<F>,
    solver: &DeviceSolver,
    colour: usize,
    omega: f64,
    some: Option<&RowList>,
) -> Result<(), Error> {
    if let Some(kernels) = &solver.kernels {
        let all = on_device::<N, _>(view, solver.mirrored);
        let (rows, count) = some.map_or((all.rows, all.count), row_list);
        let parameters = device::CoarseGridParameters {
            colour: colour as i32,
            omega,
            rows,
            count,
            ..all
        };
        // rows of one cell are all visited
        let items = count as usize * if N == 1 { 1 } else { N * N * N };
        return kernels.launch(
            &kernels.relax_coarse[grid_number::<N>() - 1],
            blocks(items),
            &parameters,
        );
    }
    in_precision!(view.precision(), R => {
        let grid = on_host::<N, _, R>(view, solver.mirrored);
        // SAFETY: one colour of distinct rows.
        for_each_row(view.rows(), |row| unsafe {
            coarse::relax::<R, N>(&grid, row, colour, R::lit(omega));
        });
    });
    Ok(())
}

/// Restricts the residual to the right-hand side of the next coarser grid.
fn restrict<const N: usize, F: Field, G: Field>(
    field: &mut Write<'_, '_, F, 1>,
    to: &mut Write<'_, '_, G, 1>,
    at: &mut CycleContext,
) -> Result<(), Error> {
    field.refresh_on(at.ranks, at.level)?;
    let mirrored = at.solver.mirrored;
    let (view, out) = (field.get_on(at.level, 1)?, to.own_on(at.level));
    if let Some(kernels) = &at.solver.kernels {
        let parameters = device::CoarseGridParameters {
            residual: out.device().bank(1).into(),
            correction: out.device().bank(0).into(),
            ..on_device::<N, _>(&view, mirrored)
        };
        let cells = view.rows().len() * (N / 2).pow(3);
        kernels.launch(
            &kernels.restrict_coarse[grid_number::<N>() - 1],
            blocks(cells),
            &parameters,
        )?;
    } else {
        in_precision!(field.precision(), R => {
            let (grid, rhs, values) = (on_host::<N, _, R>(&view, mirrored), out.scratch::<R>(0), out.present::<R>());
            // SAFETY: distinct rows.
            for_each_row(view.rows(), |row| unsafe {
                coarse::restrict_residual::<R, N>(&grid, row, &rhs, &values);
            });
        });
    }
    to.change_on(at.level);
    Ok(())
}

/// Prolongs the corrections of a grid to the next finer one, with `N`^3 cells per row.
fn prolong<const N: usize, F: Field, G: Field, const D: usize>(
    field: &mut Write<'_, '_, F, 1>,
    to: &mut Write<'_, '_, G, D>,
    at: &mut CycleContext,
) -> Result<(), Error> {
    field.refresh_on(at.ranks, at.level)?;
    let mirrored = at.solver.mirrored;
    let (view, out) = (field.get_on(at.level, 1)?, to.own_on(at.level));
    if let Some(kernels) = &at.solver.kernels {
        let parameters = device::ProlongCorrectionParameters {
            grid: match N {
                8 => on_device::<4, _>(&view, mirrored),
                4 => on_device::<2, _>(&view, mirrored),
                _ => on_device::<1, _>(&view, mirrored),
            },
            to: out.device().bank(out.banks()[0]).into(),
        };
        let rows = view.rows().len();
        let blocks = if N == 8 {
            rows
        } else {
            blocks(rows * N * N * N)
        };
        kernels.launch(&kernels.prolong[grid_number::<N>()], blocks, &parameters)?;
    } else {
        in_precision!(field.precision(), R => {
            let grid = match N {
                8 => on_host::<4, _, R>(&view, mirrored),
                4 => on_host::<2, _, R>(&view, mirrored),
                _ => on_host::<1, _, R>(&view, mirrored),
            };
            let out = out.present::<R>();
            // SAFETY: distinct rows.
            for_each_row(view.rows(), |row| unsafe { coarse::prolong::<R, N>(&grid, row, &out) });
        });
    }
    to.change_on(at.level);
    Ok(())
}

/// Returns the index of the grid with `N`^3 cells per row: 8, 4, 2, 1.
const fn grid_number<const N: usize>() -> usize {
    3 - N.ilog2() as usize
}

/// Returns the width of a cell of a grid in cells of the level.
fn coarsening<const N: usize>() -> f64 {
    8.0 / N as f64
}

/// Returns the distance outside the boundary at which corrections vanish, in cells of the level: see [`mirror`].
fn zero_distance<F: Field>(view: &FieldView<F>) -> f64 {
    if view.level() == 0 { 0.5 } else { 1.0 }
}

/// Returns the number of patches of a view's level along the axes.
fn patches<F: Field>(view: &FieldView<F>) -> [i32; 3] {
    let domain = &view.place().topology.domain;
    domain.cells(view.level()).map(|cells| cells / PATCH as i32)
}

fn on_host<'a, const N: usize, F: Field, R: Element>(
    view: &FieldView<'a, F>,
    mirrored: i32,
) -> CoarseGrid<'a, R> {
    let topology = view.place().topology;
    CoarseGrid {
        neighbours: topology.neighbour_table(),
        index: topology.index_table(),
        values: view.present::<R>(),
        rhs: view.scratch::<R>(0),
        weights: weights(view.place().clock.cell_width, coarsening::<N>()).map(R::lit),
        mirror: R::lit(mirror(coarsening::<N>(), zero_distance(view))),
        mirrored,
        patches: patches(view),
    }
}

fn on_device<const N: usize, F: Field>(
    view: &FieldView<'_, F>,
    mirrored: i32,
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
        weights: weights(place.clock.cell_width, coarsening::<N>()),
        mirror: mirror(coarsening::<N>(), zero_distance(view)),
        mirrored,
        patches: patches(view),
        omega: OVER_RELAXATION,
    }
}
