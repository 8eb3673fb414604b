//! The recursion over levels: who takes a step when.

use super::config::TimeSettings;
use super::limits::{ChosenStep, LevelSteps, clipped, synchronised};
use super::memory::MemoryGuard;
use super::{Budgets, Error, Phase, RunCounters, Schedules, Settings, StepLimits, check_faults};
use crate::comm::{self, Ranks};
use crate::data::ParticleKinds;
use crate::mesh::{CELLS, LevelClock, Levels, RefineRequests, Topology, audit};
use bevy_ecs::prelude::*;
use std::time::Instant;

/// Whether the step being tried stands; where several ranks share a run, on all of them alike. Systems before the verdict write to the next bank only, so that a rejected step
/// leaves no trace.
#[derive(Resource, Clone, Debug, Default)]
pub struct StepVerdict {
    /// Why the step has to be taken again with a smaller length.
    pub rejected: Option<String>,
    /// Whether no smaller step is tried after this one: who rejects it then may leave a capture.
    pub last: bool,
    /// The [text](super::Capture::text) of what helps to find out why, for a file of the run; on all ranks alike.
    pub capture: Option<String>,
}

/// Run condition of everything behind the verdict.
#[must_use]
pub fn step_accepted(verdict: Res<StepVerdict>) -> bool {
    verdict.rejected.is_none()
}

/// What a root step did.
#[derive(Clone, Copy, Debug)]
pub struct StepReport {
    /// Length of the root step.
    pub dt: f64,
    /// What set it.
    pub limiter: &'static str,
}

/// From when to when systems work on a level.
#[derive(Clone, Copy)]
pub(super) struct StepInterval {
    pub begin: f64,
    pub dt: f64,
    /// Exactly the time that is met, where one is.
    pub end: f64,
}

/// Settings of the recursion.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// Steps and their limits.
    pub time: TimeSettings,
    /// Steps between two regrids, per level.
    pub regrid_interval: Vec<u32>,
    /// Whether every regrid is followed by a check of the hierarchy.
    pub audit: bool,
}

/// Advances the hierarchy.
pub struct Driver {
    /// The schedules of the phases.
    pub schedules: Schedules,
    /// Settings.
    pub settings: DriverSettings,
    /// Under `halved` and `shared`: the length of the level steps of the present root step.
    dictated: Option<(f64, &'static str)>,
}

impl Driver {
    /// A driver for the given schedules.
    #[must_use]
    pub fn new(schedules: Schedules, settings: DriverSettings) -> Self {
        Self {
            schedules,
            settings,
            dictated: None,
        }
    }

    /// Runs the schedule of `phase` for `level`, timed.
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
        let start = Instant::now();
        let StepInterval { begin, dt, end } = step;
        let cell_width = world.resource::<Topology>().domain.cell_width(level);
        let step = world.resource::<Levels>().clock(level).steps;
        *world.resource_mut::<LevelClock>() = LevelClock {
            level,
            step,
            time: begin,
            dt,
            end,
            cell_width,
        };
        self.schedules.get(phase).run(world);
        let mut met = check_faults(world);
        // a mistake in the deck is told once; where ranks may wait for this one already, it goes and they are told why
        if matches!(phase, Phase::Initialise | Phase::Ready) && !self.schedules.exchanges(phase) {
            met = super::agreement::agreed(world.resource::<Ranks>(), met);
        }
        met?;
        world.resource_mut::<RunCounters>().seconds[phase as usize] +=
            start.elapsed().as_secs_f64();
        Ok(())
    }

    /// One step of the root level, and of all finer levels up to its end, but not beyond `until`.
    ///
    /// # Errors
    /// Where a step stays unphysical after all retries, or no finite step length is proposed.
    pub fn root_step(&mut self, world: &mut World, until: f64) -> Result<StepReport, Error> {
        self.share_root(world)?;
        self.dictated = self.dictate(world, until)?;
        let chosen = self.choose(world, 0, until)?;
        let taken = self.step(world, 0, until, chosen)?;
        Budgets::reduce(world)?;
        // a regrid that memory forbids is still to come
        if world.resource::<MemoryGuard>().shortage.is_none() {
            self.align(world, 0)?;
        }
        Ok(StepReport {
            dt: taken.dt,
            limiter: taken.limiter,
        })
    }

    /// Shares the root grid out anew where its work asks for it, as often as it is regridded; before each root step of a uniform mesh.
    fn share_root(&self, world: &mut World) -> Result<(), Error> {
        let interval = self.settings.regrid_interval.first().copied().unwrap_or(1);
        let step = world.resource::<Levels>().clock(0).steps;
        let alone = world.resource::<Ranks>().is_single();
        if alone || !step.is_multiple_of(u64::from(interval.max(1))) {
            return Ok(());
        }
        let imbalance = world.resource::<Settings>().run.imbalance;
        comm::regrid::rebalance_root(world, imbalance)?;
        Ok(comm::particle_entities::update_entities(world)?)
    }

    /// What memory has forbidden behind the latest root step of the run that a snapshot continues: the regrid of the root level.
    /// Memory may forbid it again.
    ///
    /// # Errors
    /// As [`Driver::root_step`].
    pub(crate) fn run_pending_regrid(&mut self, world: &mut World) -> Result<(), Error> {
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
            let chosen = self.choose(world, level, until)?;
            self.step(world, level, until, chosen)?;
            // a level that has met the coarser one is aligned with it later
            if world.resource::<Levels>().time(level) < until {
                self.align(world, level)?;
            }
        }
        Ok(())
    }

    /// A step of `level` and everything that follows from it; returns what was taken.
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
        if world.resource::<Topology>().count(level + 1) > 0 {
            self.advance(world, level + 1, end)?;
            self.run_phase(world, Phase::Synchronise, level, taken.dt)?;
        }
        if self.regrid_is_due(world, level) {
            self.regrid(world, level, taken.dt)?;
        }
        Ok(taken)
    }

    /// Regrids `level` after a step of length `dt`; false where memory forbids it: it stays due.
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
        }
        Ok(true)
    }

    /// Takes a step of `level`, a smaller one as long as the result is unphysical; returns the step that stands and the time
    /// at its end.
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
                let (name, dt) = (step.limiter, step.dt);
                return Err(Error::StepLimit {
                    level,
                    time,
                    name,
                    dt,
                });
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

    /// Runs the criteria of `level` on a clean slate.
    ///
    /// # Errors
    /// A fault that a criterion has set.
    pub fn flag(&mut self, world: &mut World, level: usize) -> Result<(), Error> {
        world.resource_scope(|world, mut requests: Mut<RefineRequests>| {
            requests.clear(world.resource::<Topology>().rows(level));
        });
        self.run_phase(world, Phase::Flag, level, 0.0)
    }

    fn regrid_is_due(&self, world: &World, level: usize) -> bool {
        level < world.resource::<Topology>().max_level
            && world.resource::<MemoryGuard>().shortage.is_none()
            && world.resource::<Levels>().clock(level).since_regrid
                >= self.settings.regrid_interval[level]
    }

    /// The smallest limit proposed for `level`.
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
            Some((name, dt)) => Err(Error::StepLimit {
                level,
                time: world.resource::<Levels>().time(level),
                name,
                dt,
            }),
            None => Ok(("none", f64::INFINITY)),
        }
    }

    /// Under `halved` and `shared`: the root step that suits all levels.
    fn dictate(
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
        let step = synchronised(root, remaining, None, 0.0, 0.0);
        Ok(Some((step.dt, step.limiter)))
    }

    fn choose(&mut self, world: &mut World, level: usize, until: f64) -> Result<ChosenStep, Error> {
        let remaining = until - world.resource::<Levels>().time(level);
        let limit = self.limit(world, level)?;
        // no step is stretched beyond the longest one allowed
        let stretch = self.settings.time.max_step / limit.1 - 1.0;
        let increase = self.settings.time.increase.min(stretch);
        if let Some((root, limiter)) = self.dictated {
            let parts = match self.settings.time.levels {
                LevelSteps::Halved => f64::from(1u32 << level),
                _ => 1.0,
            };
            let dictated = clipped(limiter, root / parts, remaining);
            // what has changed since the root step began may allow less
            let allowed = synchronised(limit, dictated.dt, None, increase, 0.0);
            return Ok(match allowed.meets {
                true => dictated,
                false => allowed,
            });
        }
        // the finer level is in step with this one: its limit now says better than its latest step, which was cut to meet
        // this level, how long its next one will be
        let finer = match world.resource::<Topology>().count(level + 1) {
            0 => None,
            _ => Some(self.limit(world, level + 1)?.1),
        };
        Ok(synchronised(
            limit,
            remaining,
            finer,
            increase,
            self.settings.time.decrease,
        ))
    }
}
