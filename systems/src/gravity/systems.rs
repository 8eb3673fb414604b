//! The systems of self-gravity.

use super::columns::Residuals;
use super::composite::Root;
use super::config::{Coupling, GravityConfig};
use super::cycle::Sweeps;
use super::grids::{Added, Grids, Matter};
use super::root::RootSolver;
use crate::fields::Gas;
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::ranks::Ranks;
use nestar_engine::step::{AlignedLevels, PluginState, Read, View};
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::hydro::Conserved;
use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// What the plugin knows.
#[derive(Resource)]
pub(super) struct Gravity {
    pub config: GravityConfig,
    pub periodic: bool,
    pub root: RootSolver,
}

/// Cycles that solve a level where nothing is known of its potential.
const COLD: usize = 8;

impl Gravity {
    fn coefficient(&self) -> f64 {
        4.0 * PI * self.config.constant
    }

    fn two_way(&self) -> bool {
        self.config.coupling == Coupling::TwoWay
    }

    fn aligned(&self) -> Sweeps {
        let sweeps = self.config.sweeps_aligned;
        Sweeps {
            before: sweeps,
            after: sweeps,
        }
    }
}

/// Whether the potential has been solved for: a snapshot without it is solved anew.
#[derive(Resource, Default)]
pub(super) struct Solved(pub bool);

impl PluginState for Solved {
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        vec![u8::from(self.0)]
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0 = bytes == [1];
        Ok(())
    }
}

/// The mean of the right-hand side, which a periodic box does not feel.
#[derive(Resource, Default)]
pub(super) struct Mean(f64);

/// The right-hand side of the Poisson equation in a cell.
#[device]
fn source<R: Real>(gas: Conserved<R>, coefficient: R, mean: R) -> R {
    coefficient * gas.density - mean
}

/// Fills the right-hand side of a level.
fn fill(
    grids: &mut Grids,
    gas: &Read<Gas>,
    gravity: &Gravity,
    (mean, ranks): (&mut Mean, &Ranks),
    level: usize,
) -> Result<(), Error> {
    grids.rows.visit(level);
    let set = |grids: &mut Grids, mean: f64| {
        let parameters = [gravity.coefficient(), mean];
        grids
            .matter
            .map_of::<source, _, 0>(&grids.rows, gas, &[], &parameters);
    };
    if gravity.periodic && level == 0 {
        set(grids, 0.0);
        mean.0 = mean_of(&grids.matter.own_on(0), ranks)?;
    }
    set(grids, mean.0);
    Ok(())
}

/// The mean over the root level, the same on any number of ranks: the means of patches are summed by place.
fn mean_of(matter: &View<Matter>, ranks: &Ranks) -> Result<f64, Error> {
    let rows = matter.rows();
    let sums: Vec<f64> = in_precision!(matter.precision(), R => {
        let values = matter.host::<R>(rows)?;
        values.chunks_exact(CELLS).map(|patch| patch.iter().map(|v| v.to_f64()).sum()).collect()
    });
    let own: Vec<([i32; 3], f64)> = rows
        .iter()
        .map(|&row| matter.index(row))
        .zip(sums)
        .collect();
    let bytes: Vec<u8> = own
        .iter()
        .flat_map(|(index, sum)| {
            let index = index.iter().flat_map(|i| i.to_le_bytes());
            index.chain(sum.to_le_bytes())
        })
        .collect();
    let mut all = Vec::new();
    for bytes in ranks.communicator().all_gather(&bytes)? {
        for patch in bytes.chunks_exact(20) {
            let word = |n: usize| {
                i32::from_le_bytes(patch[4 * n..4 * n + 4].try_into().unwrap_or_default())
            };
            let sum = f64::from_le_bytes(patch[12..].try_into().unwrap_or_default());
            all.push(([word(2), word(1), word(0)], sum));
        }
    }
    all.sort_by_key(|(index, _)| *index);
    let sum: f64 = all.iter().map(|(_, sum)| sum).sum();
    Ok(sum / (all.len() * CELLS) as f64)
}

/// The potential at the end of the step of a level.
pub(super) fn solve(
    mut grids: Grids,
    gas: Read<Gas>,
    gravity: Res<Gravity>,
    mut mean: ResMut<Mean>,
    ranks: Res<Ranks>,
    clock: Res<LevelClock>,
    levels: Res<Levels>,
) -> Result<(), Error> {
    let level = clock.level;
    fill(&mut grids, &gas, &gravity, (&mut mean, &ranks), level)?;
    grids.potential.commit()?;
    let Some(below) = level.checked_sub(1) else {
        let root = Root {
            solver: &gravity.root,
            ranks: &ranks,
        };
        return grids.solve_root(&root);
    };
    // the coarser level has taken its step: so much of it is this one
    let whole = levels.clock(below).dt;
    grids.add_change(level, &Added::Step(clock.dt / whole))?;
    let sweeps = gravity.config.sweeps;
    grids.cycle(
        level,
        Sweeps {
            before: sweeps,
            after: sweeps,
        },
    )
}

/// The potential of all levels that stand at one time.
pub(super) fn align(
    mut grids: Grids,
    gas: Read<Gas>,
    gravity: Res<Gravity>,
    mut mean: ResMut<Mean>,
    ranks: Res<Ranks>,
    aligned: Res<AlignedLevels>,
    levels: Res<Levels>,
    mut residuals: ResMut<Residuals>,
) -> Result<(), Error> {
    let range = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
    for level in range.clone() {
        fill(&mut grids, &gas, &gravity, (&mut mean, &ranks), level)?;
    }
    for level in aligned.coarsest + 1..=aligned.finest {
        let regridded = levels.clock(level - 1).since_regrid == 0;
        if regridded || !gravity.two_way() {
            grids.cycle(level, gravity.aligned())?;
        }
    }
    if gravity.two_way() {
        let root = Root {
            solver: &gravity.root,
            ranks: &ranks,
        };
        grids.composite_cycle(&range, gravity.aligned(), &root)?;
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
    }
    Ok(())
}

/// Before the first step: the potential, unless it was restored; what follows from it.
pub(super) fn ready(
    mut grids: Grids,
    gas: Read<Gas>,
    gravity: Res<Gravity>,
    mut mean: ResMut<Mean>,
    ranks: Res<Ranks>,
    clock: Res<LevelClock>,
    mut solved: ResMut<Solved>,
    mut residuals: ResMut<Residuals>,
) -> Result<(), Error> {
    let (level, finest) = (clock.level, grids.rows.finest());
    if grids.rows.in_parts() {
        return Ok(());
    }
    fill(&mut grids, &gas, &gravity, (&mut mean, &ranks), level)?;
    let root = Root {
        solver: &gravity.root,
        ranks: &ranks,
    };
    if !solved.0 {
        match level {
            0 => grids.solve_root(&root)?,
            _ => (0..COLD).try_for_each(|_| grids.cycle(level, gravity.aligned()))?,
        }
    }
    if level < finest {
        return Ok(());
    }
    let all: RangeInclusive<usize> = 0..=finest;
    if gravity.two_way() {
        if !solved.0 {
            let mut cycles = 0..gravity.config.initial_cycles;
            cycles.try_for_each(|_| grids.composite_cycle(&all, gravity.aligned(), &root))?;
        }
        grids.renew_lag(&all)?;
    }
    solved.0 = true;
    measure(&mut grids, &mut residuals)
}
