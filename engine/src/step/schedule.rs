//! The schedules of a level step, and the sets that plugins add their systems to.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{
    IntoScheduleConfigs, LogLevel, ScheduleBuildSettings, ScheduleLabel, SingleThreadedExecutor,
};
use bevy_ecs::system::ScheduleSystem;

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

/// The systems that one call added to a set. Batches of a set run in the order in which they were added, so that plugins
/// that touch the same pool have a well-defined order without knowing each other.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
struct Batch {
    phase: Phase,
    set: String,
    number: usize,
}

/// The schedules of all phases.
pub struct Schedules {
    schedules: [Schedule; Phase::COUNT],
    batches: Vec<Batch>,
}

impl Default for Schedules {
    fn default() -> Self {
        Self {
            schedules: Phase::ALL.map(new_schedule),
            batches: Vec::new(),
        }
    }
}

/// Single-threaded, with ambiguous order as an error: parallelism lives inside systems.
fn new_schedule(phase: Phase) -> Schedule {
    let mut schedule = Schedule::new(phase);
    schedule.set_executor(SingleThreadedExecutor::new());
    schedule.set_build_settings(ScheduleBuildSettings {
        ambiguity_detection: LogLevel::Error,
        hierarchy_detection: LogLevel::Error,
        ..ScheduleBuildSettings::default()
    });
    schedule
}

impl Schedules {
    /// The schedule of `phase`.
    pub fn get(&mut self, phase: Phase) -> &mut Schedule {
        &mut self.schedules[phase as usize]
    }

    /// Whether no system belongs to `phase`.
    #[must_use]
    pub fn is_empty(&self, phase: Phase) -> bool {
        self.schedules[phase as usize].systems_len() == 0
    }

    /// Adds systems to a set, behind those that were added to it before.
    pub fn add<S: StepSet, M>(
        &mut self,
        set: S,
        systems: impl IntoScheduleConfigs<ScheduleSystem, M>,
    ) {
        let name = format!("{set:?}");
        let phase = set.phase();
        let earlier = self
            .batches
            .iter()
            .filter(|b| b.phase == phase && b.set == name)
            .max_by_key(|b| b.number);
        let batch = Batch {
            phase,
            set: name,
            number: earlier.map_or(0, |b| b.number + 1),
        };
        let earlier = earlier.cloned();
        let schedule = &mut self.schedules[phase as usize];
        schedule.add_systems(systems.in_set(batch.clone()));
        schedule.configure_sets(batch.clone().in_set(set));
        if let Some(earlier) = earlier {
            schedule.configure_sets(batch.clone().after(earlier));
        }
        self.batches.push(batch);
    }

    /// Builds all schedules, so that a wrong order is found before the run.
    ///
    /// # Errors
    /// The systems whose order is ambiguous or contradictory, by name.
    pub fn build(&mut self, world: &mut World) -> Result<(), String> {
        for phase in Phase::ALL {
            self.get(phase).initialize(world).map_err(|e| {
                format!("the systems of the phase {phase:?} have no well-defined order: {e}")
            })?;
        }
        Ok(())
    }

    /// Names of the systems of `phase` in the order in which they run.
    #[must_use]
    pub fn systems(&self, phase: Phase) -> Vec<String> {
        let names = self.schedules[phase as usize].systems().map(|systems| {
            systems
                .map(|(_, system)| system.name().to_string())
                .collect::<Vec<_>>()
        });
        names.unwrap_or_default()
    }
}
