//! Recursive time stepping over levels.

use super::config::{TOO_MANY_STEPS, TimeSettings};
use super::error::agreed;
use super::limits::{ChosenStep, LevelSteps, clipped_step, synchronised_step};
use super::memory::MemoryGuard;
use super::{
    Activity, AlignedLevels, Budgets, Error, Phase, Remarks, RunCounters, Schedules, Settings,
    StepLimits, check_faults,
};
use bevy_ecs::prelude::*;
use nestar_engine_comm::{self as comm, Ranks};
use nestar_engine_data::ParticleKinds;
use nestar_engine_data::patches::take_refinement_flags;
use nestar_engine_mesh::{AuditError, CELLS, LevelClock, Levels, Topology, audit};

/// Holds whether the tentative step was accepted; identical on all ranks. Systems before the verdict write
/// only to the next bank, so a rejected step changes nothing.
#[derive(Resource, Clone, Debug, Default)]
pub struct StepVerdict {
    /// Why the step must be retried with a smaller length.
    pub rejected: Option<String>,
    /// `true` if no retry follows; a system that rejects this step may leave a capture.
    pub last: bool,
    /// [Text](super::Capture::text) of a capture for a file of the run; identical on all ranks.
    pub capture: Option<String>,
}

/// Run condition of all systems after the verdict: the step was accepted.
#[must_use]
pub fn step_accepted(verdict: Res<StepVerdict>) -> bool {
    verdict.rejected.is_none()
}

/// Reports the length of a root step and what limited it.
#[derive(Clone, Copy, Debug)]
pub struct StepReport {
    /// Length of the root step.
    pub dt: f64,
    /// Limit that set the length.
    pub limiter: &'static str,
}

/// Time interval in which systems advance a level.
#[derive(Clone, Copy)]
pub(super) struct StepInterval {
    pub begin: f64,
    pub dt: f64,
    /// End of the interval; exactly the synchronisation time if the step ends there.
    pub end: f64,
}

/// Settings of the time-step recursion.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// Time steps and their limits.
    pub time: TimeSettings,
    /// Steps between two regrids, per level.
    pub regrid_interval: Vec<u32>,
    /// Check the hierarchy after every regrid.
    pub audit: bool,
}

/// Advances the hierarchy by recursive root steps.
pub struct Driver {
    /// The schedules of the phases.
    pub schedules: Schedules,
    /// Settings.
    pub settings: DriverSettings,
    /// For `halved` and `shared`: root-step length and its limit, prescribed for the current root step.
    prescribed: Option<(f64, &'static str)>,
    /// Steps in which the run may not come to its end.
    endless: EndlessSteps,
}

/// Number of consecutive steps of a level after which their length counts as lasting.
const LASTING: u32 = 20;

/// Counts steps that are too short to reach the end of the run.
#[derive(Clone, Debug, Default)]
struct EndlessSteps {
    /// Number of consecutive steps, by level.
    count: Vec<u32>,
    /// A remark was made.
    is_told: bool,
}

impl EndlessSteps {
    /// Counts a step of a level, or resets its count. Returns `true` if such steps last.
    fn lasts(&mut self, level: usize, is_short: bool) -> bool {
        self.count.resize(self.count.len().max(level + 1), 0);
        let count = &mut self.count[level];
        *count = if is_short { *count + 1 } else { 0 };
        *count >= LASTING
    }
}

impl Driver {
    /// Creates a driver for the given schedules.
    #[must_use]
    pub fn new(schedules: Schedules, settings: DriverSettings) -> Self {
        Self {
            schedules,
            settings,
            prescribed: None,
            endless: EndlessSteps::default(),
        }
    }

    /// Runs the schedule of `phase` for `level`.
    ///
    /// # Errors
    /// A fault that a system has set.
    pub fn run_phase(
        &mut self,
        world: &mut World,
        phase: Phase,
        level: usize,
        dt: f64,
    ) -> Result<(), Error> {
        let begin = world.resource::<Levels>().time(level);
        let end = begin + dt;
        self.run_until(world, phase, level, StepInterval { begin, dt, end })
    }

    /// Runs the schedule of `phase` for a step of `level`.
    pub(super) fn run_until(
        &mut self,
        world: &mut World,
        phase: Phase,
        level: usize,
        step: StepInterval,
    ) -> Result<(), Error> {
        world.resource::<Activity>().begin_phase(phase, level);
        let StepInterval { begin, dt, end } = step;
        let cell_width = world.resource::<Topology>().domain.cell_width(level);
        let levels = world.resource::<Levels>();
        let (step, numbers) = (levels.clock(level).steps, levels.numbers_at(begin));
        let middle = levels.numbers_at(begin + 0.5 * dt);
        *world.resource_mut::<LevelClock>() = LevelClock {
            level,
            step,
            time: begin,
            dt,
            end,
            cell_width,
            numbers,
            middle,
        };
        self.schedules.get(phase).run(world);
        let mut met = check_faults(world);
        // report a mistake in the deck once; a phase with exchanges may leave other ranks waiting, so it
        // fails at once
        if matches!(phase, Phase::Initialise | Phase::Ready)
            && !self.schedules.exchanges(world, phase)
        {
            met = agreed(world.resource::<Ranks>(), met);
        }
        world.resource::<Activity>().end_phase(phase);
        met
    }

    /// Advances the root level by one step, and all finer levels to its end, at most to `until`.
    ///
    /// # Errors
    /// A step stays unphysical after all retries, or no finite step length is proposed.
    pub fn root_step(&mut self, world: &mut World, until: f64) -> Result<StepReport, Error> {
        self.rebalance_root_grid(world)?;
        self.prescribed = self.prescribe_root_step(world, until)?;
        let chosen = self.choose_step(world, 0, until)?;
        let taken = self.step(world, 0, until, chosen)?;
        Budgets::reduce(world)?;
        // a regrid that memory forbids is still pending
        if world.resource::<MemoryGuard>().shortage.is_none() {
            self.align(world, 0)?;
        }
        Ok(StepReport {
            dt: taken.dt,
            limiter: taken.limiter,
        })
    }

    /// Repartitions the root grid if it is unbalanced, at every regrid interval (a uniform mesh at every root
    /// step).
    fn rebalance_root_grid(&self, world: &mut World) -> Result<(), Error> {
        let interval = self.settings.regrid_interval.first().copied().unwrap_or(1);
        let step = world.resource::<Levels>().clock(0).steps;
        if !step.is_multiple_of(u64::from(interval.max(1))) {
            return Ok(());
        }
        let imbalance = world.resource::<Settings>().run.imbalance;
        let has_moved = comm::regrid::rebalance_root(world, imbalance)?;
        agreed(world.resource::<Ranks>(), check_faults(world))?;
        if has_moved {
            comm::particle_entities::update_entities(world)?;
        }
        Ok(())
    }

    /// Runs the root regrid that a lack of memory postponed before the restored snapshot was written. Memory
    /// may forbid it again.
    ///
    /// # Errors
    /// As [`Driver::root_step`].
    pub fn run_pending_regrid(&mut self, world: &mut World) -> Result<(), Error> {
        if !self.regrid_is_due(world, 0) {
            return Ok(());
        }
        let dt = world.resource::<Levels>().clock(0).dt;
        match self.regrid(world, 0, dt)? {
            true => self.align(world, 0),
            false => Ok(()),
        }
    }

    fn advance(&mut self, world: &mut World, level: usize, until: f64) -> Result<(), Error> {
        while world.resource::<Levels>().time(level) < until {
            let chosen = self.choose_step(world, level, until)?;
            self.step(world, level, until, chosen)?;
            // a level that has reached the coarser level's time is aligned together with it
            if world.resource::<Levels>().time(level) < until {
                self.align(world, level)?;
            }
        }
        Ok(())
    }

    /// Advances `level` by one step, then finer levels to its end; returns the step taken.
    fn step(
        &mut self,
        world: &mut World,
        level: usize,
        until: f64,
        chosen: ChosenStep,
    ) -> Result<ChosenStep, Error> {
        let (taken, end) = self.try_step(world, level, until, chosen)?;
        let topology = world.resource::<Topology>();
        let (updated, work) = (topology.count(level) * CELLS, topology.work(level));
        let mut counters = world.resource_mut::<RunCounters>();
        counters.cell_updates += updated as u64;
        counters.work.add(work);
        counters.level_steps += 1;
        world.resource_mut::<Levels>().advance(level, taken.dt, end);
        self.audit_shared_values(world, level)?;
        if world.resource::<Topology>().count(level + 1) > 0 {
            self.advance(world, level + 1, end)?;
            self.run_phase(world, Phase::Synchronise, level, taken.dt)?;
        }
        if self.regrid_is_due(world, level) {
            self.regrid(world, level, taken.dt)?;
        }
        Ok(taken)
    }

    /// Regrids `level` after a step of length `dt`. Returns `false` if memory forbids it; the regrid stays
    /// due.
    fn regrid(&mut self, world: &mut World, level: usize, dt: f64) -> Result<bool, Error> {
        self.flag(world, level)?;
        self.run_phase(world, Phase::Regrid, level, dt)?;
        if world.resource::<MemoryGuard>().shortage.is_some() {
            return Ok(false);
        }
        world.resource_mut::<Levels>().regridded(level);
        world.resource_mut::<RunCounters>().regrids += 1;
        if self.settings.audit {
            audit(world.resource::<Topology>())?;
            world.resource::<ParticleKinds>().audit(world)?;
            self.audit_shared_values(world, level + 1)?;
        }
        Ok(true)
    }

    /// Checks that patches of `level` agree on the values on faces and edges that they share, if `run.audit` is
    /// set.
    fn audit_shared_values(&self, world: &mut World, level: usize) -> Result<(), Error> {
        if !self.settings.audit {
            return Ok(());
        }
        match comm::shared_values::unequal_shared_values(world, level)? {
            Some(why) => Err(AuditError(why).into()),
            None => Ok(()),
        }
    }

    /// Advances `level`, retrying with smaller steps while the result is unphysical. Returns the accepted
    /// step and its end time.
    fn try_step(
        &mut self,
        world: &mut World,
        level: usize,
        until: f64,
        chosen: ChosenStep,
    ) -> Result<(ChosenStep, f64), Error> {
        let time = world.resource::<Levels>().time(level);
        let mut step = chosen;
        for n in 0..=self.settings.time.retries {
            world.resource_mut::<StepVerdict>().last = n == self.settings.time.retries;
            let end = if step.meets { until } else { time + step.dt };
            if end <= time {
                let limit = (step.limiter, step.dt);
                return Err(self.unusable_step(world, level, limit, None));
            }
            let (begin, dt) = (time, step.dt);
            if self.attempt(world, level, StepInterval { begin, dt, end })? {
                return Ok((step, end));
            }
            world.resource_mut::<RunCounters>().retried_steps += 1;
            let dt = step.dt * self.settings.time.retry_factor;
            step = ChosenStep {
                dt,
                limiter: "retry",
                meets: false,
            };
        }
        let why = world.resource_mut::<StepVerdict>().rejected.take();
        let (retries, why) = (self.settings.time.retries, why.unwrap_or_default());
        Err(Error::Unphysical {
            level,
            time,
            retries,
            why,
        })
    }

    /// Runs the criteria of `level` and takes their refinement requests.
    ///
    /// # Errors
    /// A criterion has reported a fault.
    pub fn flag(&mut self, world: &mut World, level: usize) -> Result<(), Error> {
        self.run_phase(world, Phase::Flag, level, 0.0)?;
        take_refinement_flags(world);
        Ok(())
    }

    fn regrid_is_due(&self, world: &World, level: usize) -> bool {
        level < world.resource::<Topology>().max_level
            && world.resource::<MemoryGuard>().shortage.is_none()
            && world.resource::<Levels>().clock(level).since_regrid
                >= self.settings.regrid_interval[level]
    }

    /// Returns the smallest step limit proposed for `level` on any rank.
    pub(super) fn limit(
        &mut self,
        world: &mut World,
        level: usize,
    ) -> Result<(&'static str, f64), Error> {
        world.resource_mut::<StepLimits>().clear();
        self.run_phase(world, Phase::Limit, level, 0.0)?;
        if self.settings.time.max_step.is_finite() {
            world
                .resource_mut::<StepLimits>()
                .propose("max_step", self.settings.time.max_step);
        }
        let ranks = world.resource::<Ranks>().clone();
        world.resource_mut::<StepLimits>().agree(&ranks)?;
        match world.resource::<StepLimits>().smallest() {
            Some((name, dt)) if dt > 0.0 => Ok((name, dt)),
            Some(limit) => Err(self.unusable_step(world, level, limit, None)),
            None => Ok(("none", f64::INFINITY)),
        }
    }

    /// Returns the error of a step that a limit makes too short, with the cell or particle behind the limit. `until` is the time that
    /// such steps do not reach. Collective.
    fn unusable_step(
        &mut self,
        world: &mut World,
        level: usize,
        (name, dt): (&'static str, f64),
        until: Option<f64>,
    ) -> Error {
        let time = world.resource::<Levels>().time(level);
        let ranks = world.resource::<Ranks>().clone();
        world.resource_mut::<StepLimits>().clear();
        world.resource_mut::<StepLimits>().ask_for_places();
        let asked = self.run_phase(world, Phase::Limit, level, 0.0);
        let found = world.resource_mut::<StepLimits>().take_place(name, &ranks);
        match (asked, found) {
            (Err(error), _) => error,
            (_, Err(error)) => error.into(),
            (Ok(()), Ok(place)) => Error::StepLimit {
                level,
                time,
                name,
                dt,
                until,
                place,
            },
        }
    }

    /// Checks that steps of `level` as long as its limit come to an end. Without `time.max_steps` that is the end of the run; in any
    /// case a finer level must come to the time `until` of the coarser one. Collective.
    ///
    /// # Errors
    /// The clock cannot tell steps of this length at the end of the run, or the step of the coarser level has too many of them.
    fn require_an_end(
        &mut self,
        world: &mut World,
        level: usize,
        until: f64,
        limit: (&'static str, f64),
    ) -> Result<(), Error> {
        let (time, dt) = (world.resource::<Levels>().time(level), limit.1);
        let to_coarser = if level > 0 { until - time } else { 0.0 };
        let (end, to_end) = match self.settings.time.max_steps {
            0 => (self.settings.time.end, self.settings.time.end - time),
            _ => (until, 0.0),
        };
        let is_short = to_coarser.max(to_end) / dt > TOO_MANY_STEPS;
        if !self.endless.lasts(level, is_short) {
            return Ok(());
        }
        if to_coarser / dt > TOO_MANY_STEPS {
            return Err(self.unusable_step(world, level, limit, Some(until)));
        }
        if dt < 4.0 * f64::EPSILON * end.abs() {
            return Err(self.unusable_step(world, level, limit, Some(end)));
        }
        if !std::mem::replace(&mut self.endless.is_told, true) {
            let error = self.unusable_step(world, level, limit, Some(end));
            // a rank or device may have failed instead
            if !matches!(error, Error::StepLimit { .. }) {
                return Err(error);
            }
            let remark = format!("warning: {error}");
            world.resource_mut::<Remarks>().0.push(remark);
        }
        Ok(())
    }

    /// For `halved` and `shared`: returns the root step that satisfies the limits of all levels.
    fn prescribe_root_step(
        &mut self,
        world: &mut World,
        until: f64,
    ) -> Result<Option<(f64, &'static str)>, Error> {
        if self.settings.time.levels == LevelSteps::Adaptive {
            return Ok(None);
        }
        let mut root: (&'static str, f64) = ("none", f64::INFINITY);
        for level in 0..=world.resource::<Topology>().finest() {
            let (name, dt) = self.limit(world, level)?;
            let dt = if self.settings.time.levels == LevelSteps::Halved {
                dt * f64::from(1u32 << level)
            } else {
                dt
            };
            if dt < root.1 {
                root = (name, dt);
            }
        }
        let remaining = until - world.resource::<Levels>().time(0);
        let step = synchronised_step(root.0, root.1, remaining, None, 0.0, 0.0);
        Ok(Some((step.dt, step.limiter)))
    }

    fn choose_step(
        &mut self,
        world: &mut World,
        level: usize,
        until: f64,
    ) -> Result<ChosenStep, Error> {
        let remaining = until - world.resource::<Levels>().time(level);
        let (name, longest) = self.limit(world, level)?;
        self.require_an_end(world, level, until, (name, longest))?;
        // no step is longer than `max_step`
        let stretch = self.settings.time.max_step / longest - 1.0;
        let increase = self.settings.time.increase.min(stretch);
        if let Some((root, limiter)) = self.prescribed {
            let parts = match self.settings.time.levels {
                LevelSteps::Halved => f64::from(1u32 << level),
                _ => 1.0,
            };
            let prescribed = clipped_step(limiter, root / parts, remaining);
            // limits may have become smaller since the root step began
            let allowed = synchronised_step(name, longest, prescribed.dt, None, increase, 0.0);
            return Ok(match allowed.meets {
                true => prescribed,
                false => allowed,
            });
        }
        // both levels are synchronised, so the limit of the finer level predicts its next step better than
        // its latest step, which was cut to end here
        let finer = match world.resource::<Topology>().count(level + 1) {
            0 => None,
            _ => Some(self.limit(world, level + 1)?.1),
        };
        Ok(synchronised_step(
            name,
            longest,
            remaining,
            finer,
            increase,
            self.settings.time.decrease,
        ))
    }

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
