//! Loop over root steps, with the output between them.

use super::diagnostics::{Diagnostics, resident_bytes};
use super::observed::Observations;
use super::output::Output;
use super::{Progress, RunOptions};
use crate::comm::Ranks;
use crate::mesh::{Levels, Topology};
use crate::step::config::OutOfMemory;
use crate::step::memory::{MemoryGuard, Shortage, shortage};
use crate::step::{Engine, Error, RunCounters, StepReport};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Reasons to leave the loop over root steps.
#[derive(PartialEq)]
pub(super) enum RunEnd {
    /// The end of the simulation.
    Done,
    /// A stop request.
    Interrupted,
    /// Patches that do not fit into memory.
    OutOfMemory(Shortage),
}

/// Holds the output files of a run and its starting point.
pub(super) struct RunRecorder<'a> {
    pub output: &'a mut Output,
    pub diagnostics: &'a mut Diagnostics,
    pub observations: Observations,
    /// Simulation time at which this process started.
    pub begin: f64,
    pub start: Instant,
    /// Number of ranks in this process.
    pub in_process: u64,
}

impl RunRecorder<'_> {
    /// Writes the diagnostics row of the starting state. Collective; write errors are reported with the next
    /// flags.
    pub fn begin(&mut self, sim: &mut Engine) -> Result<(), Error> {
        let report = StepReport {
            dt: 0.0,
            limiter: "initial",
        };
        let progress = sim.progress(&report, 0.0, self);
        self.diagnose(sim, &progress)
    }

    /// Writes the rows of a root step. Collective; write errors are reported with the next flags.
    fn row(&mut self, sim: &mut Engine, progress: &Progress) -> Result<(), Error> {
        self.diagnose(sim, progress)?;
        let observed = self.observations.append(sim, progress)?;
        self.output.note(observed);
        Ok(())
    }

    fn diagnose(&mut self, sim: &mut Engine, progress: &Progress) -> Result<(), Error> {
        // ranks in threads of one process share its memory
        let own = resident_bytes() / self.in_process.max(1);
        let memory = sim.world.resource::<Ranks>().sum(own)?;
        let seconds = self.output.seconds();
        let row = self.diagnostics.row(sim, progress, memory, seconds)?;
        let appended = self.diagnostics.append(&row);
        self.output.note(appended);
        Ok(())
    }
}

impl Engine {
    /// Takes root steps until the run ends; `begins` is `true` for a new run. Ranks exchange their flags once
    /// per root step, so that they take the same decisions.
    pub(super) fn steps(
        &mut self,
        options: &mut RunOptions,
        course: &mut RunRecorder,
        begins: bool,
    ) -> Result<RunEnd, Error> {
        let end = self.settings.time.end;
        let most = self.settings.time.max_steps;
        let (mut told, mut stepped) = (false, false);
        self.driver.run_pending_regrid(&mut self.world)?;
        if begins {
            course.begin(self)?;
        }
        let mut patches = self.world.resource::<Topology>().patches();
        loop {
            let votes = course
                .output
                .exchange_flags(options.stop.load(Ordering::Relaxed))?;
            if let Some(shortage) = self.world.resource::<MemoryGuard>().shortage.clone() {
                return Ok(RunEnd::OutOfMemory(shortage));
            }
            let now = self.world.resource::<Topology>().patches();
            let before = std::mem::replace(&mut patches, now);
            if stepped {
                self.keep(options, course, votes.due, before)?;
            }
            self.tell_of_cap(options, &mut told);
            let clock = self.world.resource::<Levels>().clock(0);
            if clock.time >= end || (most > 0 && clock.steps >= most) {
                return Ok(RunEnd::Done);
            }
            if votes.stop {
                return Ok(RunEnd::Interrupted);
            }
            let step_start = Instant::now();
            let before = self.world.resource::<RunCounters>().cell_updates;
            let until = course.output.until(end);
            let report = self.driver.root_step(&mut self.world, until)?;
            let seconds = step_start.elapsed().as_secs_f64();
            let updates = self.world.resource::<RunCounters>().cell_updates - before;
            let progress = self.progress(&report, updates as f64 / seconds, course);
            course.row(self, &progress)?;
            options.observer.step(&progress);
            stepped = true;
        }
    }

    /// Writes a snapshot after a root step if one is due, if the latest one was removed, or if memory is
    /// nearly exhausted. `before` is the number of patches one root step earlier.
    fn keep(
        &self,
        options: &mut RunOptions,
        course: &mut RunRecorder,
        due: bool,
        before: usize,
    ) -> Result<(), Error> {
        if let Some(path) = course.output.removed() {
            let path = path.display();
            let note = format!("note: the latest snapshot {path} was removed: writes another");
            options.observer.note(&note);
        }
        let due = due || course.output.is_due(self);
        if due || self.memory_is_tight(before)? && !course.output.is_current(self) {
            course.output.snapshot(self, course.diagnostics)?;
        }
        Ok(())
    }

    /// Returns `true` if memory may forbid a regrid within the next root step, judged by the growth since
    /// `before` patches. The present state is then saved, because the next one would differ from that of a
    /// run with more memory. Collective.
    fn memory_is_tight(&self, before: usize) -> Result<bool, Error> {
        let patches = self.world.resource::<Topology>().patches();
        let stops = self.settings.run.out_of_memory == OutOfMemory::Stop;
        if !stops || patches <= before {
            return Ok(false);
        }
        let foreseen = patches + 2 * (patches - before);
        Ok(shortage(&self.world, foreseen, 1)?.is_some())
    }

    /// Reports once, on the first rank, that memory prevents refinement.
    fn tell_of_cap(&self, options: &mut RunOptions, told: &mut bool) {
        let guard = self.world.resource::<MemoryGuard>();
        let first = self.world.resource::<Ranks>().rank() == 0;
        if let Some(cap) = guard.first_cap.as_ref().filter(|_| first && !*told) {
            *told = true;
            let note = format!(
                "note: goes on with the patches that fit: {}",
                cap.description()
            );
            options.observer.note(&note);
        }
    }

    fn progress(&self, report: &StepReport, rate: f64, course: &RunRecorder) -> Progress {
        let clock = self.world.resource::<Levels>().clock(0);
        let topology = self.world.resource::<Topology>();
        Progress {
            step: clock.steps,
            time: clock.time,
            end: self.settings.time.end,
            begin: course.begin,
            dt: report.dt,
            limiter: report.limiter,
            patches: (0..=self.settings.mesh.max_level)
                .map(|level| topology.count(level))
                .collect(),
            capped: self.world.resource::<MemoryGuard>().capped,
            rate,
            wall: course.start.elapsed().as_secs_f64(),
        }
    }
}
