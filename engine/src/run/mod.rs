//! Runs: root steps from an initial or restored state to the end, with snapshots and diagnostics.

mod attached;
mod captures;
mod changes;
mod counts;
mod course;
mod derived;
pub mod diagnostics;
mod directory;
mod drain;
pub mod files;
mod fit;
mod headers;
mod items;
mod layout;
mod load;
pub mod lock;
mod observed;
mod options;
pub mod output;
mod parts;
pub mod provenance;
pub mod restart;
mod same;
mod series;
mod shares;
mod sink;
mod state;
mod totals;
mod votes;

pub use options::{Observer, Progress, RunOptions, RunSummary, Silent};
pub use provenance::BuildInfo;

use crate::comm::Ranks;
use crate::mesh::Levels;
use crate::step::agreement::on_first_rank;
use crate::step::memory::{MemoryGuard, Shortage};
use crate::step::{Engine, Error, Remarks, RunCounters, StepReport};
use course::{RunEnd, RunRecorder};
use diagnostics::Diagnostics;
use observed::Observations;
use output::Output;
use provenance::Roster;
use restart::Restored;
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Engine {
    /// Runs to the end of the simulation or until asked to stop. Collective: all ranks pass the same options,
    /// except for `stop` and the observer. The first rank owns the run's directory and reports notes; all
    /// ranks write snapshots.
    ///
    /// # Errors
    /// Any [`Error`]; the latest complete snapshot stays usable. After a lack of memory the run continues
    /// from it with the bits of a run with enough memory. Errors in the run's directory are errors of all
    /// ranks. If a rank fails within a step, the other ranks wait until they are ended
    /// (`Communicator::abort`, `Launch::conclude`).
    pub fn run(&mut self, mut options: RunOptions) -> Result<RunSummary, Error> {
        self.finish_setup()?;
        same::require(self, &options)?;
        let directory = options.output.clone();
        let directory = directory.unwrap_or_else(|| self.settings.output.directory.clone().into());
        let directory = lock::named(&directory)?;
        let roster = Roster::gather(self)?;
        let ranks = self.world.resource::<Ranks>().clone();
        let _lock = directory::take(&ranks, &roster, &directory)?;
        let prepared = self.prepare(&directory, &mut options);
        options.observer.started();
        let restored = prepared?;
        let restored = restored.as_ref().filter(|restored| !restored.is_new_run);
        let mut output = Output::new(self, &directory, &options.build, &roster, restored)?;
        let mut diagnostics = Diagnostics::open(self, &directory, restored)?;
        let observations = Observations::open(self, &directory, restored)?;
        let notes = [diagnostics.note(), observations.note()];
        self.tell(notes.into_iter().flatten(), &mut options);
        if restored.is_none() && self.settings.output.initial {
            output.snapshot(self, &diagnostics)?;
        }
        let begin = self.world.resource::<Levels>().time(0);
        let mut course = RunRecorder {
            output: &mut output,
            diagnostics: &mut diagnostics,
            observations,
            begin,
            start: Instant::now(),
            in_process: roster.in_process,
        };
        let start = course.start;
        let updates = self.world.resource::<RunCounters>().cell_updates;
        let ending = self.steps(&mut options, &mut course, restored.is_none());
        let ending = ending.map_err(|error| captures::keep(self, &directory, error))?;
        self.conclude(&ending, &mut output, &diagnostics)?;
        let interrupted = ending == RunEnd::Interrupted;
        Ok(self.summary(directory, updates, start, interrupted))
    }

    /// Reports the remarks of plugins and `notes` to the observer.
    fn tell(&self, notes: impl Iterator<Item = String>, options: &mut RunOptions) {
        let remarks = self.world.resource::<Remarks>().0.iter().cloned();
        for note in remarks.chain(notes) {
            options.observer.note(&note);
        }
    }

    /// Writes the last snapshot if requested and waits for it.
    fn conclude(
        &self,
        ending: &RunEnd,
        output: &mut Output,
        diagnostics: &Diagnostics,
    ) -> Result<(), Error> {
        let wanted = match ending {
            RunEnd::Done => self.settings.output.last,
            RunEnd::Interrupted => true,
            RunEnd::OutOfMemory(shortage) => shortage.is_at_root_step_end(),
        };
        if wanted && !output.is_current(self) {
            output.snapshot(self, diagnostics)?;
        }
        output.settle()?;
        match ending {
            RunEnd::OutOfMemory(shortage) => Err(Error::Memory(Shortage {
                resumable: output.has_snapshots(),
                ..shortage.clone()
            })),
            _ => Ok(()),
        }
    }

    /// Summarises the run since `start`, when `updates` cells had been updated.
    fn summary(
        &self,
        directory: PathBuf,
        updates: u64,
        start: Instant,
        interrupted: bool,
    ) -> RunSummary {
        let clock = self.world.resource::<Levels>().clock(0);
        RunSummary {
            directory,
            time: clock.time,
            step: clock.steps,
            cell_updates: self.world.resource::<RunCounters>().cell_updates - updates,
            wall: start.elapsed().as_secs_f64(),
            interrupted,
        }
    }

    /// Restores or initialises the state, and moves files of an earlier run away.
    fn prepare(
        &mut self,
        directory: &Path,
        options: &mut RunOptions,
    ) -> Result<Option<Restored>, Error> {
        let ranks = self.world.resource::<Ranks>().clone();
        let mut note = |text: &str| {
            if ranks.rank() == 0 {
                options.observer.note(text);
            }
        };
        if options.resume {
            if let Some(restored) = restart::restore(self, directory)? {
                tell_of(&restored, "continues", note);
                return Ok(Some(restored));
            }
            let place = directory.display();
            note(&format!(
                "no snapshot in {place}: starts from the beginning"
            ));
        }
        // move an earlier run only when this one can start
        let restored = restart::start(self)?;
        match &restored {
            Some(restored) => tell_of(restored, "starts", &mut note),
            None => self.initialise()?,
        }
        let moved = on_first_rank(&ranks, || directory::set_aside(directory))?;
        if let Some(moved) = moved.flatten() {
            note(&format!("an earlier run was moved to {}", moved.display()));
        }
        Ok(restored)
    }

    /// Takes one root step, at most to `until`, without writing files. For programs that step a simulation
    /// themselves; call [`Engine::finish_setup`] and [`Engine::initialise`] first.
    ///
    /// # Errors
    /// A step stays unphysical after all retries; requested patches do not fit into memory; the audit finds
    /// an inconsistency.
    pub fn root_step(&mut self, until: f64) -> Result<StepReport, Error> {
        // a caller that continues after a lack of memory continues without the regrid
        self.driver.run_pending_regrid(&mut self.world)?;
        let before = self.world.resource_mut::<MemoryGuard>().shortage.take();
        let report = self.driver.root_step(&mut self.world, until)?;
        let shortage = self.world.resource_mut::<MemoryGuard>().shortage.take();
        let shortage = shortage.or(before);
        shortage.map_or(Ok(report), |shortage| Err(Error::Memory(shortage)))
    }
}

/// Reports the origin of a state and the settings that differ from it.
fn tell_of(restored: &Restored, does: &str, mut note: impl FnMut(&str)) {
    note(&format!("{does} from {}", restored.path.display()));
    for change in &restored.changes {
        note(&format!(
            "note: this setting differs from the snapshot: {change}"
        ));
    }
}
