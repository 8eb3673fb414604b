//! A run from the initial or a restored state to the end: root steps, snapshots, diagnostics.

mod changes;
pub mod diagnostics;
mod directory;
mod drain;
pub mod files;
mod headers;
mod layout;
pub mod lock;
mod observed;
pub mod output;
mod parts;
pub mod provenance;
pub mod restart;
mod same;
mod series;
mod shares;
mod sink;
mod state;
mod votes;

pub use provenance::BuildInfo;

use crate::mesh::{Levels, Topology};
use crate::ranks::Ranks;
use crate::step::agreement::by_first;
use crate::step::config::OutOfMemory;
use crate::step::memory::{MemoryGuard, Shortage, shortage};
use crate::step::{Engine, Error, RunCounters, StepReport};
use diagnostics::{Diagnostics, resident_bytes};
use observed::Observations;
use output::Output;
use provenance::Roster;
use restart::Restored;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How to run.
pub struct RunOptions {
    /// Directory of the run, in place of the deck's.
    pub output: Option<PathBuf>,
    /// Whether to continue from the latest snapshot in the run's directory.
    pub resume: bool,
    /// Becomes true when the run is asked to stop (a signal); of several ranks one is enough.
    pub stop: Arc<AtomicBool>,
    /// Told of what happens.
    pub observer: Box<dyn Observer>,
    /// The program that runs.
    pub build: BuildInfo,
}

/// Someone who watches a run.
pub trait Observer: Send {
    /// The run's directory is this run's from here on, if it starts.
    fn started(&mut self) {}
    /// A message for people.
    fn note(&mut self, message: &str);
    /// A root step is done.
    fn step(&mut self, progress: &Progress);
}

/// Nobody watches.
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: &Progress) {}
}

/// Where a run stands after a root step.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Root steps since the start.
    pub step: u64,
    /// Simulation time.
    pub time: f64,
    /// Simulation time at which the run ends.
    pub end: f64,
    /// Simulation time at which this process began.
    pub begin: f64,
    /// Length of the root step.
    pub dt: f64,
    /// What set it.
    pub limiter: &'static str,
    /// Patches per level.
    pub patches: Vec<usize>,
    /// Patches that memory kept from being refined so far, every regrid counted.
    pub capped: u64,
    /// Cell updates per wall second, over this root step.
    pub rate: f64,
    /// Wall seconds since this process began to step.
    pub wall: f64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Directory of the run.
    pub directory: PathBuf,
    /// Simulation time reached.
    pub time: f64,
    /// Root steps since the start.
    pub step: u64,
    /// Cell updates by this process.
    pub cell_updates: u64,
    /// Wall seconds of this process, from its first root step to the last byte.
    pub wall: f64,
    /// Whether the run was asked to stop before its end.
    pub interrupted: bool,
}

/// What ended the root steps.
#[derive(PartialEq)]
enum Ending {
    /// The end of the run.
    Done,
    /// A signal.
    Interrupted,
    /// Patches that do not fit into memory.
    OutOfMemory(Shortage),
}

impl Engine {
    /// Runs to the end (or until asked to stop). Of several ranks all call this with the same options, but for `stop`, which any
    /// of them may raise, and their observers; the first keeps the run's directory, and all write snapshots. The first rank
    /// tells notes, all tell steps.
    ///
    /// # Errors
    /// Everything that [`Error`] lists; the latest complete snapshot stays usable. Where memory ends the run, it holds the
    /// present state. What goes wrong in the run's directory is the error of all ranks; where a rank fails in the middle of a
    /// step, the others wait for it until they are ended (`Communicator::abort`, `Launch::conclude`).
    pub fn run(&mut self, mut options: RunOptions) -> Result<RunSummary, Error> {
        self.ready()?;
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
        let restored = restored.as_ref().filter(|restored| !restored.begins);
        let mut output = Output::new(self, &directory, &options.build, &roster, restored)?;
        let mut diagnostics = Diagnostics::open(self, &directory, restored)?;
        let observations = Observations::open(self, &directory, restored)?;
        for note in [diagnostics.note(), observations.note()] {
            note.iter().for_each(|note| options.observer.note(note));
        }
        if restored.is_none() && self.settings.output.initial {
            output.snapshot(self, &diagnostics)?;
        }
        let begin = self.world.resource::<Levels>().time(0);
        let mut course = Course {
            output: &mut output,
            diagnostics: &mut diagnostics,
            observations,
            begin,
            start: Instant::now(),
            in_process: roster.in_process,
        };
        let start = course.start;
        let updates = self.world.resource::<RunCounters>().cell_updates;
        let ending = self.steps(&mut options, &mut course)?;
        self.conclude(&ending, &mut output, &diagnostics)?;
        let interrupted = ending == Ending::Interrupted;
        Ok(self.summary(directory, updates, start, interrupted))
    }

    /// Writes what is to be kept of a run that ends, and waits for it.
    fn conclude(
        &self,
        ending: &Ending,
        output: &mut Output,
        diagnostics: &Diagnostics,
    ) -> Result<(), Error> {
        let wanted = match ending {
            Ending::Done => self.settings.output.last,
            Ending::Interrupted => true,
            Ending::OutOfMemory(shortage) => shortage.ends_a_root_step(),
        };
        if wanted && !output.is_current(self) {
            output.snapshot(self, diagnostics)?;
        }
        output.settle()?;
        match ending {
            Ending::OutOfMemory(shortage) => Err(Error::Memory(Shortage {
                resumable: output.has_snapshots(),
                ..shortage.clone()
            })),
            _ => Ok(()),
        }
    }

    /// What a run came to that began at `start` after `updates` updates of cells.
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

    /// The initial state, or the restored one; what an earlier run left makes room.
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
        // an earlier run makes room only when this one is known to start
        let restored = restart::start(self)?;
        match &restored {
            Some(restored) => tell_of(restored, "starts", &mut note),
            None => self.initialise()?,
        }
        let moved = by_first(&ranks, || directory::set_aside(directory))?;
        if let Some(moved) = moved.flatten() {
            note(&format!("an earlier run was moved to {}", moved.display()));
        }
        Ok(restored)
    }

    /// A single root step, not beyond `until`, without files: for programs that step a simulation themselves. Call
    /// [`Engine::ready`] and [`Engine::initialise`] before the first.
    ///
    /// # Errors
    /// Where a step stays unphysical after all retries, the patches that a regrid asks for do not fit into memory, or the
    /// audit is on and finds a fault.
    pub fn root_step(&mut self, until: f64) -> Result<StepReport, Error> {
        self.driver.make_up(&mut self.world)?;
        self.refuse_shortage()?;
        let report = self.driver.root_step(&mut self.world, until)?;
        self.refuse_shortage()?;
        Ok(report)
    }

    fn refuse_shortage(&mut self) -> Result<(), Error> {
        let shortage = self.world.resource_mut::<MemoryGuard>().shortage.take();
        shortage.map_or(Ok(()), |shortage| Err(Error::Memory(shortage)))
    }

    /// Root steps to the end, or to what ends the run before. The ranks take the same decisions: what they must agree on is
    /// reduced once a root step.
    fn steps(&mut self, options: &mut RunOptions, course: &mut Course) -> Result<Ending, Error> {
        let end = self.settings.time.end;
        let most = self.settings.time.max_steps;
        let (mut told, mut stepped) = (false, false);
        self.driver.make_up(&mut self.world)?;
        let mut patches = self.world.resource::<Topology>().patches();
        loop {
            let votes = course.output.vote(options.stop.load(Ordering::Relaxed))?;
            if let Some(shortage) = self.world.resource::<MemoryGuard>().shortage.clone() {
                return Ok(Ending::OutOfMemory(shortage));
            }
            let before =
                std::mem::replace(&mut patches, self.world.resource::<Topology>().patches());
            if let Some(path) = course.output.removed() {
                let path = path.display();
                options.observer.note(&format!(
                    "note: the latest snapshot {path} was removed: writes another"
                ));
            }
            let due = votes.due || course.output.is_due(self);
            if stepped && (due || self.memory_is_tight(before)? && !course.output.is_current(self))
            {
                course.output.snapshot(self, course.diagnostics)?;
            }
            self.tell_of_cap(options, &mut told);
            let clock = self.world.resource::<Levels>().clock(0);
            if clock.time >= end || (most > 0 && clock.steps >= most) {
                return Ok(Ending::Done);
            }
            if votes.stop {
                return Ok(Ending::Interrupted);
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

    /// Whether memory may forbid a regrid within the next root step, after one before which there were `before` patches: then
    /// the present state is kept, as that step's outcome would not be that of a run with more memory. All ranks call this.
    fn memory_is_tight(&self, before: usize) -> Result<bool, Error> {
        let patches = self.world.resource::<Topology>().patches();
        let stops = self.settings.run.out_of_memory == OutOfMemory::Stop;
        if !stops || patches <= before {
            return Ok(false);
        }
        let foreseen = patches + 2 * (patches - before);
        Ok(shortage(&self.world, foreseen, 1)?.is_some())
    }

    /// Tells once that memory keeps patches from being refined; the ranks have agreed which.
    fn tell_of_cap(&self, options: &mut RunOptions, told: &mut bool) {
        let guard = self.world.resource::<MemoryGuard>();
        let first = self.world.resource::<Ranks>().rank() == 0;
        if let Some(cap) = guard.first_cap.as_ref().filter(|_| first && !*told) {
            *told = true;
            let note = format!("note: goes on with the patches that fit: {}", cap.fact());
            options.observer.note(&note);
        }
    }

    fn progress(&self, report: &StepReport, rate: f64, course: &Course) -> Progress {
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

/// Tells where a state comes from, and what is other than it was there.
fn tell_of(restored: &Restored, does: &str, mut note: impl FnMut(&str)) {
    note(&format!("{does} from {}", restored.path.display()));
    for change in &restored.changes {
        note(&format!(
            "note: the snapshot was written with another setting: {change}"
        ));
    }
}

/// What goes along with the steps of a run.
struct Course<'a> {
    output: &'a mut Output,
    diagnostics: &'a mut Diagnostics,
    observations: Observations,
    /// Simulation time at which this process began.
    begin: f64,
    start: Instant,
    /// Ranks of this process.
    in_process: u64,
}

impl Course<'_> {
    /// Writes the rows of a root step. All ranks call this; whether it could be written is for the next vote.
    fn row(&mut self, sim: &mut Engine, progress: &Progress) -> Result<(), Error> {
        // ranks that are threads of one process share its memory
        let own = resident_bytes() / self.in_process.max(1);
        let memory = sim.world.resource::<Ranks>().sum(own)?;
        let seconds = self.output.seconds();
        let row = self.diagnostics.row(sim, progress, memory, seconds)?;
        let appended = self.diagnostics.append(&row);
        self.output.note(appended);
        let observed = self.observations.append(sim, progress)?;
        self.output.note(observed);
        Ok(())
    }
}
