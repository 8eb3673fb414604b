//! The acceleration by the potential in the cells of every level, for whoever falls freely.

use super::beyond::ExteriorPotential;
use super::border::Unknowns;
use super::grids::{Equation, Solver, each};
use super::kick::{REACH, fall, slopes};
use super::systems::Gravity;
use crate::fields::{Acceleration, Matter, OwnPotential, OwnPotentialAsked, Potential};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Comm;
use nestar_engine::data::LevelRows;
use nestar_engine::step::{AlignedLevels, SystemOptions, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, Accelerate};
use std::ops::RangeInclusive;

/// Enters the systems, behind those that find the potential.
pub(super) fn register(sim: &mut Engine) {
    register_for::<Potential>(sim);
    if sim.world.contains_resource::<OwnPotentialAsked>() {
        register_for::<OwnPotential>(sim);
    }
}

fn register_for<P: Unknowns>(sim: &mut Engine) {
    exchanges::<P>(sim.system_in(Ready::Recompute, ready::<P>));
    exchanges::<P>(sim.system_in(Advance::Couple, after_step::<P>));
    exchanges::<P>(sim.system_in(Aligned::Solve, align::<P>));
}

fn exchanges<P: Unknowns>(mut system: SystemOptions) {
    system.manages_own_halo::<P>().manages_own_halo::<Matter>();
}

/// What the systems work on.
#[derive(SystemParam)]
struct Falling<'w, 's, P: Unknowns> {
    rows: LevelRows<'w, 's>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, Equation>,
    beyond: Res<'w, ExteriorPotential<P>>,
    solver: Res<'w, Solver>,
    potential: Write<'w, 's, P, REACH>,
    matter: Write<'w, 's, Matter, REACH>,
    acceleration: Write<'w, 's, Acceleration>,
    ranks: Comm<'w>,
}

impl<P: Unknowns> Falling<'_, '_, P> {
    /// What the slopes see of the equation where finer levels are beside: the own potential of a level knows none.
    fn equation(&self) -> Equation {
        match P::USES_TAU {
            true => *self.equation,
            false => Equation {
                coefficient: 0.0,
                mean: 0.0,
            },
        }
    }

    /// Adds the acceleration on a level by its present potential.
    fn add(&mut self, level: usize) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        self.matter.refresh_on(&mut self.ranks, level)?;
        let equation = self.equation();
        let potential = self.potential.get_on(level, REACH)?;
        let matter = self.matter.get_on(level, REACH)?;
        let out = self.acceleration.change_on(level);
        let (first, fourth) = (
            if P::USES_TAU { 0 } else { 3 },
            self.gravity.config.order == 4,
        );
        if let Some(kernels) = &self.solver.kernels {
            let given = (&*self.gravity, &*self.beyond, equation);
            let given = Accelerate {
                fall: fall(&potential, &matter, given, kernels.words()),
                out: out.device().bank(out.banks()[0]).into(),
                components: out.components() as i32,
                first: first as i32,
            };
            let rows = given.fall.count as usize;
            kernels
                .accelerate
                .count_work(rows * CELLS, rows * CELLS * 8 * 4);
            return kernels.launch(&kernels.accelerate, rows, &given);
        }
        in_precision!(out.precision(), R => {
            let slopes = slopes::<R, P>(&potential, &matter, (&self.beyond, equation));
            let rows = out.present::<R>();
            // SAFETY: distinct rows.
            each(out.rows(), |row| unsafe { gravity::accelerate(&slopes, &rows, row, (first, fourth)) });
        });
        Ok(())
    }

    fn add_on(&mut self, mut levels: RangeInclusive<usize>) -> Result<(), Error> {
        levels.try_for_each(|level| self.add(level))
    }
}

/// At the end of the step of a level.
fn after_step<P: Unknowns>(mut falling: Falling<P>) -> Result<(), Error> {
    let level = falling.rows.level();
    falling.add(level)
}

/// On all levels that stand at one time: some of their patches may be new.
fn align<P: Unknowns>(mut falling: Falling<P>, aligned: Res<AlignedLevels>) -> Result<(), Error> {
    falling.add_on(aligned.coarsest..=aligned.finest.max(aligned.coarsest))
}

/// Before the first step, once the potential of all levels is known.
fn ready<P: Unknowns>(mut falling: Falling<P>) -> Result<(), Error> {
    let finest = falling.rows.finest();
    match falling.rows.is_estimate() || falling.rows.level() < finest {
        true => Ok(()),
        false => falling.add_on(0..=finest),
    }
}
