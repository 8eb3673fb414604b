//! Phases other than the level steps; they cost nothing without systems.

use super::driver::{Driver, StepInterval, StepVerdict};
use super::{AlignedLevels, Error, Phase};
use crate::mesh::{Levels, Topology};
use bevy_ecs::prelude::*;

impl Driver {
    /// Runs `Ready` on every level, coarsest first, after the hierarchy is built or restored.
    ///
    /// # Errors
    /// A system has reported a fault.
    pub fn run_ready(&mut self, world: &mut World) -> Result<(), Error> {
        if self.schedules.is_empty(Phase::Ready) {
            return Ok(());
        }
        let mut levels = 0..=world.resource::<Topology>().finest();
        levels.try_for_each(|level| self.run_phase(world, Phase::Ready, level, 0.0))
    }

    /// Advances the split sources of `level` to `end`, unless they have reached it already, as after a
    /// rejected longer step.
    fn split(&mut self, world: &mut World, level: usize, end: f64) -> Result<(), Error> {
        let begin = world.resource::<Levels>().clock(level).split;
        if end <= begin || self.schedules.is_empty(Phase::Split) {
            return Ok(());
        }
        let dt = end - begin;
        self.run_until(world, Phase::Split, level, StepInterval { begin, dt, end })?;
        world.resource_mut::<Levels>().split(level, end);
        Ok(())
    }

    /// Tries a step of `level` with Strang splitting: half of the split sources before and half after.
    /// Returns `true` if it is accepted.
    pub(super) fn attempt(
        &mut self,
        world: &mut World,
        level: usize,
        step: StepInterval,
    ) -> Result<bool, Error> {
        self.split(world, level, step.begin + 0.5 * step.dt)?;
        let mut verdict = world.resource_mut::<StepVerdict>();
        (verdict.rejected, verdict.capture) = (None, None);
        self.run_until(world, Phase::Advance, level, step)?;
        let stands = world.resource::<StepVerdict>().rejected.is_none();
        if stands {
            self.split(world, level, step.end)?;
        }
        Ok(stands)
    }

    /// Runs `Aligned` on `level` and all finer levels, which are synchronised.
    pub(super) fn align(&mut self, world: &mut World, level: usize) -> Result<(), Error> {
        if self.schedules.is_empty(Phase::Aligned) {
            return Ok(());
        }
        let finest = world.resource::<Topology>().finest();
        *world.resource_mut::<AlignedLevels>() = AlignedLevels {
            coarsest: level,
            finest,
        };
        self.run_phase(world, Phase::Aligned, level, 0.0)
    }
}
