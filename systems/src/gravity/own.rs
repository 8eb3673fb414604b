//! A second potential of levels that have finer ones, without what those add to the equation: for matter beside coarse-fine faces.
//!
//! Such matter stands in cells of two widths. The potential of all levels together has what these differ by, next to the matter itself,
//! which it pulls. The border of a level is far from its finer levels and comes from the potential of all levels: one that came from
//! coarser levels alone would have the matter in the middle of one of their cells.

use super::copy::When;
use super::grids::Grids;
use super::systems::Gravity;
use super::{beyond, potential, relaxes};
use crate::fields::OwnPotential;
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Ranks;
use nestar_engine::data::FieldSpec;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::AlignedLevels;
use nestar_engine::{Engine, Error};

/// Snapshots keep it: it is what cycles have come to, which a restart could not find again to the last bit.
fn spec() -> FieldSpec {
    let mut spec = potential();
    spec.components[0].name = "own_potential".into();
    spec.components[0].long_name = "gravitational potential without what finer levels add".into();
    spec.banks = spec.time_levels;
    spec
}

/// Enters the field and the systems, behind those of the potential itself.
pub(super) fn register(sim: &mut Engine, periodic: bool) -> Result<(), Error> {
    sim.register_field::<OwnPotential>(spec())?;
    sim.register_state("own_gravity", beyond::<OwnPotential>(sim, periodic))?;
    relaxes::<OwnPotential>(sim.system_in(Ready::Recompute, ready));
    relaxes::<OwnPotential>(sim.system_in(Advance::Potential, solve));
    relaxes::<OwnPotential>(sim.system_in(Aligned::Solve, align));
    Ok(())
}

/// What the systems work on.
#[derive(SystemParam)]
struct Own<'w, 's> {
    grids: Grids<'w, 's, OwnPotential>,
    gravity: Res<'w, Gravity>,
    ranks: Res<'w, Ranks>,
}

impl Own<'_, '_> {
    /// Whether finer levels add to the equation of a level: elsewhere the potential itself is what is wanted.
    fn differs(&self, level: usize) -> bool {
        self.gravity.two_way() && level < self.grids.rows.finest()
    }

    /// Takes over the potential of a level.
    fn take(&mut self, level: usize) -> Result<(), Error> {
        let grids = &mut self.grids;
        let stored = &*grids.coarser;
        grids.copy(&stored.potential.own_on(level), When::Present)?;
        grids.potential.change_on(level);
        match level {
            0 => {
                let kernels = grids.solver.kernels.as_ref();
                grids.beyond.take(&grids.ranks, &stored.beyond, kernels)
            }
            _ => Ok(()),
        }
    }
}

/// The potential at the end of the step of a level.
fn solve(mut own: Own, clock: Res<LevelClock>, levels: Res<Levels>) -> Result<(), Error> {
    own.grids.commit(clock.level)?;
    if !own.differs(clock.level) {
        // where finer levels come into being now it is what they have not changed
        return own.take(clock.level);
    }
    let how = (&*own.gravity, &*own.ranks);
    own.grids.solve_in_step((&clock, &levels), how)
}

/// The potential where levels stand at one time.
fn align(mut own: Own, aligned: Res<AlignedLevels>) -> Result<(), Error> {
    let coarsest = aligned.coarsest;
    for level in coarsest..=aligned.finest.max(coarsest) {
        if !own.differs(level) {
            own.take(level)?;
        } else if level > coarsest {
            // the coarser level has learnt what this one adds to it
            let sweeps = own.gravity.config.sweeps_aligned;
            own.grids.cycle(level, sweeps, None)?;
        }
    }
    Ok(())
}

/// Before the first step: the potential, unless it was restored.
fn ready(mut own: Own, clock: Res<LevelClock>) -> Result<(), Error> {
    let finest = own.grids.rows.finest();
    // borders want the potential of all levels together, which comes last
    if own.grids.rows.is_estimate() || clock.level < finest {
        return Ok(());
    }
    for level in 0..=finest {
        if own.differs(level) {
            let how = (&*own.gravity, &*own.ranks);
            own.grids.begin(level, how)?;
        } else {
            own.take(level)?;
        }
    }
    own.grids.beyond.solved = true;
    Ok(())
}
