//! Phases of a level step, and the sets to which plugins add systems.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use std::ops::RangeInclusive;

/// Phases of a run with their own schedules; the driver runs them recursively over levels.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Fills new patches from the initial condition.
    Initialise,
    /// Completes a hierarchy that was built or restored, coarsest level first: computes what snapshots do not
    /// store. It must not change what they store, so that a restart does not affect the results.
    Ready,
    /// Proposes time steps of a level.
    Limit,
    /// Advances the split sources of a level by half a step, before and after `Advance` (Strang 1968). The
    /// level's clock gives the interval. A rejected step does not undo the first half: the smaller step waits
    /// until it has reached the time of the sources.
    Split,
    /// Advances a level by one step.
    Advance,
    /// Synchronises a level with the finer one that has reached its time.
    Synchronise,
    /// Flags cells of a level for refinement.
    Flag,
    /// Changes the patches of the next finer level.
    Regrid,
    /// Works on all levels that are synchronised at one time: a level and all finer ones. It runs once per
    /// time, after synchronisation and regrid, but not before the first step, where `Ready` runs.
    Aligned,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 9] = [
        Self::Initialise,
        Self::Ready,
        Self::Limit,
        Self::Split,
        Self::Advance,
        Self::Synchronise,
        Self::Flag,
        Self::Regrid,
        Self::Aligned,
    ];
    /// Number of phases.
    pub const COUNT: usize = Self::ALL.len();
}

/// Range of synchronised levels on which systems of `Aligned` work: the finest ones.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignedLevels {
    /// The coarsest of them.
    pub coarsest: usize,
    /// The finest level that has patches.
    pub finest: usize,
}

impl AlignedLevels {
    /// Returns the levels, coarsest first.
    #[must_use]
    pub fn levels(self) -> RangeInclusive<usize> {
        self.coarsest..=self.finest
    }
}

/// A set of systems of one phase.
pub trait StepSet: SystemSet + Copy {
    /// The phase that the set belongs to.
    fn phase(self) -> Phase;
}

/// Sets of the phase `Synchronise`, in order; the engine adds systems for fields that request them.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronise {
    /// Restriction: averages of children.
    Restrict,
    /// Flux correction at coarse-fine faces.
    Correct,
}

impl StepSet for Synchronise {
    fn phase(self) -> Phase {
        Phase::Synchronise
    }
}
