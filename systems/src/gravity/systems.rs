//! Systems of self-gravity: the density of all matter, and the solutions in steps and on aligned levels.

use super::config::{Coupling, CycleSettings, GravityConfig};
use super::diagnostics::{Residuals, report_non_finite};
use super::fine_correction::CoarseUpdate;
use super::level_solver::{DeviceSolver, LevelSolver, PoissonEquation, PotentialField};
use super::root_level::{Root, RootMethods, RootSums};
use crate::fields::{self, Gas, Matter};
use crate::order::{Advance, Aligned, Ready};
use crate::register::{GravitySources, MatterSources, prepare_update};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Real, device};
use nestar_engine::comm::Ranks;
use nestar_engine::data::LevelRows;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error};
use std::ops::RangeInclusive;

/// Settings of the plugin and the solver of the root level.
#[derive(Resource)]
pub(super) struct Gravity {
    pub config: GravityConfig,
    /// Settings for the steps of a level.
    pub cycle_settings: CycleSettings,
    pub root: RootMethods,
}

/// Number of cycles that solve a finer level without an initial guess.
const INITIAL_CYCLES: usize = 8;

impl Gravity {
    pub fn two_way(&self) -> bool {
        self.config.coupling == Coupling::TwoWay
    }

    pub fn root<'a>(&'a self, ranks: &'a Ranks) -> Root<'a> {
        Root {
            solver: &self.root,
            ranks,
        }
    }
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Accepts the step of a level.
    pub(super) fn commit(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 {
            self.exterior_potential.commit();
        }
        Ok(self.potential.commit()?)
    }

    /// Solves a level at the end of its step, after [`LevelSolver::commit`].
    pub(super) fn solve_in_step(
        &mut self,
        clock: &LevelClock,
        levels: &Levels,
        gravity: &Gravity,
        ranks: &Ranks,
    ) -> Result<(), Error> {
        let level = clock.level;
        let Some(below) = level.checked_sub(1) else {
            return self.solve_root_in_step(&gravity.root(ranks));
        };
        // fraction of the step of the coarser level, which has been taken
        let whole = levels.clock(below).dt;
        self.add_change(level, &CoarseUpdate::Step(clock.dt / whole))?;
        let CycleSettings { cycles, sweeps } = gravity.cycle_settings;
        (0..cycles).try_for_each(|_| self.cycle(level, sweeps, None))
    }

    /// Solves a level at the end of its step from the present potential.
    pub(super) fn solve_again(
        &mut self,
        level: usize,
        cycles: usize,
        gravity: &Gravity,
        ranks: &Ranks,
    ) -> Result<(), Error> {
        match level {
            0 => self.solve_root(&gravity.root(ranks), 0),
            _ => {
                let sweeps = gravity.cycle_settings.sweeps;
                (0..cycles).try_for_each(|_| self.cycle(level, sweeps, None))
            }
        }
    }

    /// Solves an aligned level without the fine-grid correction, as in a step after a change of the patches that determine its
    /// source or its border.
    pub(super) fn solve_aligned(
        &mut self,
        level: usize,
        levels: &Levels,
        gravity: &Gravity,
        ranks: &Ranks,
    ) -> Result<(), Error> {
        let cycles = if has_changed(level, levels) {
            gravity.cycle_settings.cycles
        } else {
            1
        };
        let is_known = std::mem::replace(&mut self.exterior_potential.solved, true);
        let (root, sweeps) = (gravity.root(ranks), gravity.config.sweeps_aligned);
        match level {
            0 if is_known => self.solve_root(&root, 0),
            0 => self.solve_root_initially(&root),
            _ => (0..cycles).try_for_each(|_| self.cycle(level, sweeps, None)),
        }
    }

    /// Solves a level before the first step, unless its potential was restored.
    pub(super) fn solve_initially(
        &mut self,
        level: usize,
        gravity: &Gravity,
        ranks: &Ranks,
    ) -> Result<(), Error> {
        let sweeps = gravity.config.sweeps_aligned;
        match (level, self.exterior_potential.solved) {
            (0, true) => self.restore_beyond(),
            (_, true) => Ok(()),
            (0, false) => self.solve_root_initially(&gravity.root(ranks)),
            (_, false) => (0..INITIAL_CYCLES).try_for_each(|_| self.cycle(level, sweeps, None)),
        }
    }
}

/// Returns `true` if the patches that determine the source or the border of a level have just changed.
pub(super) fn has_changed(level: usize, levels: &Levels) -> bool {
    let is_fresh = |level: usize| levels.clock(level).since_regrid == 0;
    is_fresh(level) || (level > 0 && is_fresh(level - 1))
}

/// Solves for the potential at the end of the step of a level.
pub(super) fn solve_potential(
    mut grids: LevelSolver,
    gravity: Res<Gravity>,
    ranks: Res<Ranks>,
    clock: Res<LevelClock>,
    levels: Res<Levels>,
) -> Result<(), Error> {
    grids.commit(clock.level)?;
    grids.solve_in_step(&clock, &levels, &gravity, &ranks)
}

/// Solves for the potential of all aligned levels.
pub(super) fn solve_aligned_levels(
    mut grids: LevelSolver,
    gravity: Res<Gravity>,
    ranks: Res<Ranks>,
    aligned: Res<AlignedLevels>,
    levels: Res<Levels>,
    mut residuals: ResMut<Residuals>,
) -> Result<(), Error> {
    let sweeps = gravity.config.sweeps_aligned;
    let range = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    for level in aligned.coarsest + 1..=aligned.finest {
        let regridded = levels.clock(level - 1).since_regrid == 0;
        if regridded || !gravity.two_way() {
            grids.cycle(level, sweeps, None)?;
        }
    }
    if gravity.two_way() {
        if levels.clock(*range.end()).since_regrid == 0 {
            grids.clear_tau(*range.end())?;
        }
        grids.composite_cycle(&range, sweeps, &gravity.root(&ranks))?;
        grids.update_tau(&range)?;
    }
    // the root level alone has been measured if it was solved
    let known = (gravity.two_way() && grids.rows.finest() == 0).then_some(grids.solved_root.0);
    match aligned.coarsest {
        0 => measure_residuals(&mut grids, &mut residuals, known),
        _ => Ok(()),
    }
}

/// Measures the residual on all levels. `root` is that of the root level if it is known.
fn measure_residuals(
    grids: &mut LevelSolver,
    residuals: &mut Residuals,
    root: Option<f64>,
) -> Result<(), Error> {
    let finest = grids.rows.finest();
    for (level, residual) in residuals.0.iter_mut().enumerate() {
        *residual = match (level, root) {
            (0, Some(known)) => known,
            _ if level <= finest => grids.residual(level)?,
            _ => 0.0,
        };
        if !residual.is_finite() {
            let (matter, potential) = (&grids.matter, &grids.potential);
            let matter = |level| matter.own_on(level);
            return report_non_finite(&grids.rows, matter, |level| potential.own_on(level));
        }
    }
    Ok(())
}

/// Solves for the potential before the first step, unless it was restored, and computes what follows from it.
pub(super) fn solve_initial_potential(
    mut grids: LevelSolver,
    gravity: Res<Gravity>,
    ranks: Res<Ranks>,
    clock: Res<LevelClock>,
    mut residuals: ResMut<Residuals>,
) -> Result<(), Error> {
    let (level, finest) = (clock.level, grids.rows.finest());
    if grids.rows.is_estimate() {
        return Ok(());
    }
    let (root, sweeps) = (gravity.root(&ranks), gravity.config.sweeps_aligned);
    let solved = grids.exterior_potential.solved;
    grids.solve_initially(level, &gravity, &ranks)?;
    if level < finest {
        return Ok(());
    }
    let all: RangeInclusive<usize> = 0..=finest;
    if gravity.two_way() {
        if !solved {
            let mut cycles = 0..gravity.config.initial_cycles;
            cycles.try_for_each(|_| grids.composite_cycle(&all, sweeps, &root))?;
        }
        grids.update_tau(&all)?;
    }
    grids.exterior_potential.solved = true;
    measure_residuals(&mut grids, &mut residuals, None)
}

/// Registers the gas as the first source of the density, to which an open list of sources adds, and the mean density of
/// a closed domain.
pub(super) fn register_density(sim: &mut Engine, closed: bool) {
    sim.world.insert_resource(MatterSources::default());
    sim.gravity_source("gas", gas_density);
    prepare_update::<(Matter, Gas), density>(sim);
    if closed {
        sim.world.init_resource::<fields::MeanDensity>();
        sim.system_in(Ready::Recompute, compute_initial_mean_density)
            .before(solve_initial_potential);
        sim.system_in(Advance::Potential, compute_mean_density)
            .before(solve_potential);
        sim.system_in(Aligned::Solve, compute_mean_density_of_aligned_levels)
            .before(solve_aligned_levels);
    }
}

/// Density of the gas.
#[device]
fn density<R: Real>(u: (R, R)) -> R {
    let (_, gas) = u;
    gas
}

/// Sets the density to that of the gas; other sources add to it.
fn gas_density(
    In(level): In<usize>,
    mut rows: LevelRows,
    gas: Read<Gas>,
    mut matter: Write<Matter>,
) -> Result<(), Error> {
    rows.visit(level);
    matter.update::<density>(&rows, &gas, &[]);
    Ok(())
}

/// Data of the mean density.
#[derive(SystemParam)]
struct MeanDensity<'w, 's> {
    matter: Read<'w, 's, Matter>,
    solver: Res<'w, DeviceSolver>,
    ranks: Res<'w, Ranks>,
    equation: ResMut<'w, PoissonEquation>,
    mean: ResMut<'w, fields::MeanDensity>,
}

impl MeanDensity<'_, '_> {
    /// Computes the mean density of the root level if that is `level`.
    fn compute(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 {
            let summed = RootSums::plain(self.matter.own_on(level));
            self.equation.mean = summed.mean(&self.ranks, self.solver.kernels.as_ref())?;
            self.mean.0 = self.equation.mean;
        }
        Ok(())
    }
}

/// Computes the mean density before the first step.
fn compute_initial_mean_density(
    mut mean: MeanDensity,
    clock: Res<LevelClock>,
) -> Result<(), Error> {
    mean.compute(clock.level)
}

/// Computes the mean density at the end of a root step.
fn compute_mean_density(mut mean: MeanDensity, clock: Res<LevelClock>) -> Result<(), Error> {
    mean.compute(clock.level)
}

/// Computes the mean density if the root level is aligned.
fn compute_mean_density_of_aligned_levels(
    mut mean: MeanDensity,
    aligned: Res<AlignedLevels>,
) -> Result<(), Error> {
    mean.compute(aligned.coarsest)
}
