//! The systems of self-gravity.

use super::border::Unknowns;
use super::change::Added;
use super::columns::Residuals;
use super::composite::{Root, RootMethods};
use super::config::{Coupling, Effort, GravityConfig};
use super::faults;
use super::grids::Grids;
use bevy_ecs::prelude::*;
use nestar_engine::Error;
use nestar_engine::comm::Ranks;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::AlignedLevels;
use std::ops::RangeInclusive;

/// What the plugin knows.
#[derive(Resource)]
pub(super) struct Gravity {
    pub config: GravityConfig,
    /// How a level is solved at each of its steps.
    pub effort: Effort,
    pub periodic: bool,
    pub root: RootMethods,
}

/// Cycles that solve a level where nothing is known of its potential.
const COLD: usize = 8;

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

impl<P: Unknowns> Grids<'_, '_, P> {
    /// The step of a level stands.
    pub(super) fn commit(&mut self, level: usize) -> Result<(), Error> {
        if level == 0 {
            self.beyond.commit();
        }
        Ok(self.potential.commit()?)
    }

    /// Solves a level at the end of its step, after [`Grids::commit`].
    pub(super) fn solve_in_step(
        &mut self,
        (clock, levels): (&LevelClock, &Levels),
        (gravity, ranks): (&Gravity, &Ranks),
    ) -> Result<(), Error> {
        let level = clock.level;
        let Some(below) = level.checked_sub(1) else {
            return self.solve_root_in_step(&gravity.root(ranks));
        };
        // the coarser level has taken its step: so much of it is this one
        let whole = levels.clock(below).dt;
        self.add_change(level, &Added::Step(clock.dt / whole))?;
        let Effort { cycles, sweeps } = gravity.effort;
        (0..cycles).try_for_each(|_| self.cycle(level, sweeps, None))
    }

    /// Solves a level before the first step, unless its potential was restored.
    pub(super) fn begin(
        &mut self,
        level: usize,
        (gravity, ranks): (&Gravity, &Ranks),
    ) -> Result<(), Error> {
        let sweeps = gravity.config.sweeps_aligned;
        match (level, self.beyond.solved) {
            (0, true) => self.restore_beyond(),
            (_, true) => Ok(()),
            (0, false) => self.solve_root_cold(&gravity.root(ranks), COLD),
            (_, false) => (0..COLD).try_for_each(|_| self.cycle(level, sweeps, None)),
        }
    }
}

/// The potential at the end of the step of a level.
pub(super) fn solve(
    mut grids: Grids,
    gravity: Res<Gravity>,
    ranks: Res<Ranks>,
    clock: Res<LevelClock>,
    levels: Res<Levels>,
) -> Result<(), Error> {
    grids.commit(clock.level)?;
    grids.solve_in_step((&clock, &levels), (&gravity, &ranks))
}

/// The potential of all levels that stand at one time.
pub(super) fn align(
    mut grids: Grids,
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
            grids.clear_lag(*range.end())?;
        }
        grids.composite_cycle(&range, sweeps, &gravity.root(&ranks))?;
        grids.renew_lag(&range)?;
    }
    match aligned.coarsest {
        0 => measure(&mut grids, &mut residuals),
        _ => Ok(()),
    }
}

/// How well the equation is solved on all levels.
fn measure(grids: &mut Grids, residuals: &mut Residuals) -> Result<(), Error> {
    let finest = grids.rows.finest();
    for (level, residual) in residuals.0.iter_mut().enumerate() {
        *residual = if level <= finest {
            grids.residual(level)?
        } else {
            0.0
        };
        if !residual.is_finite() {
            let (matter, potential) = (&grids.matter, &grids.potential);
            let matter = |level| matter.own_on(level);
            return faults::report(&grids.rows, matter, |level| potential.own_on(level));
        }
    }
    Ok(())
}

/// Before the first step: the potential, unless it was restored; what follows from it.
pub(super) fn ready(
    mut grids: Grids,
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
    let solved = grids.beyond.solved;
    grids.begin(level, (&gravity, &ranks))?;
    if level < finest {
        return Ok(());
    }
    let all: RangeInclusive<usize> = 0..=finest;
    if gravity.two_way() {
        if !solved {
            let mut cycles = 0..gravity.config.initial_cycles;
            cycles.try_for_each(|_| grids.composite_cycle(&all, sweeps, &root))?;
        }
        grids.renew_lag(&all)?;
    }
    grids.beyond.solved = true;
    measure(&mut grids, &mut residuals)
}
