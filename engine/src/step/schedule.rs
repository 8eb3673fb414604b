//! The phases of a level step, and the sets that plugins add their systems to.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use std::ops::RangeInclusive;

/// The parts of a run that have a schedule of their own; the driver recurses between them.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Fills new patches from the initial condition.
    Initialise,
    /// Completes a hierarchy that was made or restored, level by level from the coarsest: fills what snapshots do not keep. What
    /// they keep it leaves alone, so that a run goes on after a restart as it would have without one.
    Ready,
    /// Proposes the time step of a level.
    Limit,
    /// Advances the split sources of a level by half a step, once before and once after `Advance`, while the clock of the level
    /// says from when to when (Strang 1968). Sources change the state that the step begins with: they are not taken back where
    /// the step is rejected, but the smaller step then finds them ahead and waits for its own time to pass theirs.
    Split,
    /// Advances a level by one step.
    Advance,
    /// Brings a level into line with the finer one that has reached its time.
    Synchronise,
    /// Says which cells of a level want refinement.
    Flag,
    /// Changes the patches of the next finer level.
    Regrid,
    /// Works on all levels that stand at one time, once for each such time: a level, all finer ones, and no coarser one. They are
    /// synchronised and regridded. Not before the first step, where `Ready` runs.
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
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
}

/// The levels that systems of `Aligned` work on: the finest ones, which have all reached one time.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignedLevels {
    /// The coarsest of them.
    pub coarsest: usize,
    /// The finest level that has patches.
    pub finest: usize,
}

impl AlignedLevels {
    /// The levels, coarsest first.
    #[must_use]
    pub fn levels(self) -> RangeInclusive<usize> {
        self.coarsest..=self.finest
    }
}

/// A set of one phase; the order of a phase's sets stands in one place.
pub trait StepSet: SystemSet + Copy {
    /// The phase that the set belongs to.
    fn phase(self) -> Phase;
}

/// Sets of the phase `Synchronise`, in order; the engine adds systems to them for fields whose declaration asks for it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronise {
    /// Averages of children.
    Restrict,
    /// Corrections at coarse-fine faces.
    Correct,
}

impl StepSet for Synchronise {
    fn phase(self) -> Phase {
        Phase::Synchronise
    }
}
