//! The main loop of a run: takes root steps until the end and writes output between them; and the watchdog of a run
//! that stands still.

use crate::diagnostics::Observations;
use crate::diagnostics::{Diagnostics, resident_bytes};
use crate::files::Roster;
use crate::output::Output;
use crate::restart::Restored;
use crate::views::Views;
use crate::{Progress, RunOptions, RunSummary, deck_differences, directory, files, restart};
use nestar_engine_comm::Ranks;
use nestar_engine_device::ComputeDevice;
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::config::OutOfMemory;
use nestar_engine_step::error::on_first_rank;
use nestar_engine_step::memory::{MemoryGuard, Shortage, shortage};
use nestar_engine_step::{Activity, Engine, Error, Remarks, RunCounters, StepReport};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Runs to the end of the simulation or until asked to stop. Collective: all ranks pass the same options,
/// except for `stop` and the observer. The first rank owns the run's directory and reports notes; all
/// ranks write snapshots.
///
/// # Errors
/// Any [`Error`]; the latest complete snapshot stays usable. After a lack of memory the run continues
/// from it with the bits of a run with enough memory. Errors in the run's directory are errors of all
/// ranks. If a rank fails within a step, the other ranks wait until they are ended
/// (`Communicator::abort`, `Launch::conclude`).
pub fn run(sim: &mut Engine, mut options: RunOptions) -> Result<RunSummary, Error> {
    sim.finish_setup()?;
    finish_compilations(sim, &mut options)?;
    sim.world.resource::<Activity>().reset();
    let _watchdog = Watchdog::start(sim)?;
    deck_differences::require_same_run(sim, &options)?;
    if !options.resume && sim.settings.run.start_from.is_empty() {
        sim.settings.check_intervals(&sim.deck, 0.0)?;
    }
    let directory = options.output.clone();
    let directory = directory.unwrap_or_else(|| sim.settings.output.directory.clone().into());
    let directory = directory::normalised(&directory)?;
    let roster = Roster::gather(sim)?;
    let ranks = sim.world.resource::<Ranks>().clone();
    let _lock = directory::lock_for_run(&ranks, &roster, &directory)?;
    let prepared = initialise_or_restore(sim, &directory, &mut options);
    options.observer.started();
    let restored = prepared?;
    report_setup(sim, &mut options);
    sim.world.resource::<Activity>().begin_output();
    let restored = restored.as_ref().filter(|restored| !restored.is_new_run);
    let mut output = Output::new(sim, &directory, &options.build, &roster, restored)?;
    let mut diagnostics = Diagnostics::open(sim, &directory, restored)?;
    let observations = Observations::open(sim, &directory, restored)?;
    let notes = [diagnostics.note(), observations.note()];
    report_notes(sim, notes.into_iter().flatten(), &mut options);
    let views = begin_output(sim, &directory, &mut output, &diagnostics, restored)?;
    let begin = sim.world.resource::<Levels>().time(0);
    let mut recorder = RunRecorder {
        output: &mut output,
        diagnostics: &mut diagnostics,
        observations,
        views,
        begin,
        start: Instant::now(),
        in_process: roster.in_process,
    };
    let start = recorder.start;
    let updates = sim.world.resource::<RunCounters>().cell_updates;
    let ending = run_steps(sim, &mut options, &mut recorder, restored.is_none());
    let ending = ending.map_err(|error| files::save(sim, &directory, error))?;
    recorder.views.sync()?;
    finish_output(sim, &ending, &mut output, &diagnostics)?;
    let interrupted = ending == RunEnd::Interrupted;
    Ok(summary(sim, directory, updates, start, interrupted))
}

/// Opens the views, and writes the initial state of a new run to them and to a snapshot. Views come before snapshots, so that a
/// resumed run has all their entries.
fn begin_output(
    sim: &mut Engine,
    directory: &Path,
    output: &mut Output,
    diagnostics: &Diagnostics,
    restored: Option<&Restored>,
) -> Result<Views, Error> {
    let mut views = Views::open(sim, directory, restored.is_some())?;
    if restored.is_none() {
        views.write_all(sim)?;
        views.sync()?;
        if sim.settings.output.initial {
            output.snapshot(sim, diagnostics)?;
        }
    }
    Ok(views)
}

/// Waits until the programs of the device are compiled; the first rank reports how many there are.
fn finish_compilations(sim: &Engine, options: &mut RunOptions) -> Result<(), Error> {
    let Some(device) = &sim.world.resource::<ComputeDevice>().device else {
        return Ok(());
    };
    let running = device.running_compilations();
    if running > 0 && sim.world.resource::<Ranks>().rank() == 0 {
        let note =
            format!("compiles {running} programs of the device; later runs find them in a cache");
        options.observer.note(&note);
    }
    Ok(device.finish_compilations()?)
}

/// Duration of a set-up whose parts are reported, s.
const LONG_SETUP: f64 = 5.0;

/// Reports on the first rank what a long set-up spent its time on.
fn report_setup(sim: &Engine, options: &mut RunOptions) {
    let mut times = sim.world.resource::<Activity>().times();
    let whole: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    if whole < LONG_SETUP || sim.world.resource::<Ranks>().rank() > 0 {
        return;
    }
    times.retain(|(_, seconds)| *seconds >= 0.01 * whole);
    times.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts: Vec<String> = (times.iter())
        .map(|(name, seconds)| format!("{name} {seconds:.1} s"))
        .collect();
    let note = format!("the set-up took {whole:.1} s: {}", parts.join(", "));
    options.observer.note(&note);
}

/// Reports the new remarks of plugins and `notes` to the observer.
fn report_notes(sim: &mut Engine, notes: impl Iterator<Item = String>, options: &mut RunOptions) {
    let remarks = std::mem::take(&mut sim.world.resource_mut::<Remarks>().0);
    for note in remarks.into_iter().chain(notes) {
        options.observer.note(&note);
    }
}

/// Writes the last snapshot if requested and waits for it.
fn finish_output(
    sim: &Engine,
    ending: &RunEnd,
    output: &mut Output,
    diagnostics: &Diagnostics,
) -> Result<(), Error> {
    let wanted = match ending {
        RunEnd::Done => sim.settings.output.last,
        RunEnd::Interrupted => true,
        RunEnd::OutOfMemory(shortage) => shortage.is_at_root_step_end(),
    };
    if wanted && !output.is_current(sim) {
        output.snapshot(sim, diagnostics)?;
    }
    output.wait()?;
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
    sim: &Engine,
    directory: PathBuf,
    updates: u64,
    start: Instant,
    interrupted: bool,
) -> RunSummary {
    let clock = sim.world.resource::<Levels>().clock(0);
    RunSummary {
        directory,
        time: clock.time,
        step: clock.steps,
        cell_updates: sim.world.resource::<RunCounters>().cell_updates - updates,
        wall: start.elapsed().as_secs_f64(),
        interrupted,
    }
}

/// Time after which the construction of the initial state is reported.
const QUIET_SETUP: Duration = Duration::from_secs(2);

/// Restores or initialises the state, and moves files of an earlier run away.
fn initialise_or_restore(
    sim: &mut Engine,
    directory: &Path,
    options: &mut RunOptions,
) -> Result<Option<Restored>, Error> {
    let ranks = sim.world.resource::<Ranks>().clone();
    let mut note = |text: &str| {
        if ranks.rank() == 0 {
            options.observer.note(text);
        }
    };
    if options.resume {
        if let Some(restored) = restart::restore(sim, directory)? {
            report_restored(&restored, "continues", &mut note);
            let time = sim.world.resource::<Levels>().time(0);
            sim.settings.check_intervals(&sim.deck, time)?;
            if let Some((_, reached)) = reached_end(sim) {
                note(&format!("note: there is nothing to do: {reached}"));
            }
            return Ok(Some(restored));
        }
        let place = directory.display();
        note(&format!(
            "no snapshot in {place}: starts from the beginning"
        ));
    }
    // move an earlier run only when this one can start
    let restored = restart::start(sim)?;
    match &restored {
        Some(restored) => {
            report_restored(restored, "starts", &mut note);
            let time = sim.world.resource::<Levels>().time(0);
            sim.settings.check_intervals(&sim.deck, time)?;
            if let Some((key, reached)) = reached_end(sim) {
                return Err(sim.deck.error_at(key, reached).into());
            }
        }
        None => {
            sim.settings.check_intervals(&sim.deck, 0.0)?;
            let begin = Instant::now();
            sim.initialise_with(&mut |level, patches| {
                if begin.elapsed() > QUIET_SETUP {
                    note(&format!("sets up level {level}: {patches} patches"));
                }
            })?;
        }
    }
    let moved = on_first_rank(&ranks, || directory::move_earlier_run(directory))?;
    if let Some(moved) = moved.flatten() {
        note(&format!("an earlier run was moved to {}", moved.display()));
    }
    Ok(restored)
}

/// Returns the key of the limit of the run that the restored state has reached already, and its description.
fn reached_end(sim: &Engine) -> Option<(&'static str, String)> {
    let (clock, time) = (sim.world.resource::<Levels>().clock(0), &sim.settings.time);
    if clock.time >= time.end {
        let reached = format!(
            "the state is at time {:e}, which is not before `time.end` = {:e}; set a later end",
            clock.time, time.end
        );
        return Some(("time.end", reached));
    }
    let reached = format!(
        "the state is at root step {}, and `time.max_steps` = {} ends the run; set a larger number",
        clock.steps, time.max_steps
    );
    (time.max_steps > 0 && clock.steps >= time.max_steps).then_some(("time.max_steps", reached))
}

/// Reports the origin of a state and the settings that differ from it.
fn report_restored(restored: &Restored, does: &str, mut note: impl FnMut(&str)) {
    note(&format!("{does} from {}", restored.path.display()));
    for change in &restored.changes {
        note(&format!(
            "note: this setting differs from the snapshot: {change}"
        ));
    }
}

/// Reasons to leave the loop over root steps.
#[derive(PartialEq)]
enum RunEnd {
    /// The end of the simulation.
    Done,
    /// A stop request.
    Interrupted,
    /// Patches that do not fit into memory.
    OutOfMemory(Shortage),
}

/// Holds the output files of a run and its starting point.
struct RunRecorder<'a> {
    pub output: &'a mut Output,
    pub diagnostics: &'a mut Diagnostics,
    pub observations: Observations,
    pub views: Views,
    /// Simulation time at which this process started.
    pub begin: f64,
    pub start: Instant,
    /// Number of ranks in this process.
    pub in_process: u64,
}

impl RunRecorder<'_> {
    /// Writes the diagnostics row of the starting state. Collective; write errors are reported with the next
    /// flags.
    pub fn write_first_row(&mut self, sim: &mut Engine) -> Result<(), Error> {
        let report = StepReport {
            dt: 0.0,
            limiter: "initial",
        };
        let progress = progress(sim, &report, 0.0, self);
        self.write_diagnostics(sim, &progress)
    }

    /// Writes the rows of a root step. Collective; write errors are reported with the next flags.
    fn write_row(&mut self, sim: &mut Engine, progress: &Progress) -> Result<(), Error> {
        self.write_diagnostics(sim, progress)?;
        let observed = self.observations.append(sim, progress)?;
        self.output.note(observed);
        Ok(())
    }

    fn write_diagnostics(&mut self, sim: &mut Engine, progress: &Progress) -> Result<(), Error> {
        // ranks in threads of one process share its memory
        let own = resident_bytes() / self.in_process.max(1);
        let memory = sim.world.resource::<Ranks>().sum(own)?;
        let row = self.diagnostics.row(sim, progress, memory)?;
        let appended = self.diagnostics.append(&row);
        self.output.note(appended);
        Ok(())
    }
}

/// Takes root steps until the run ends; `begins` is `true` for a new run. Ranks exchange their flags once
/// per root step, so that they take the same decisions.
fn run_steps(
    sim: &mut Engine,
    options: &mut RunOptions,
    recorder: &mut RunRecorder,
    begins: bool,
) -> Result<RunEnd, Error> {
    let end = sim.settings.time.end;
    let most = sim.settings.time.max_steps;
    let (mut reported, mut stepped) = (false, false);
    sim.world.resource::<Activity>().reset();
    sim.driver.run_pending_regrid(&mut sim.world)?;
    sim.world.resource::<Activity>().begin_output();
    if begins {
        recorder.write_first_row(sim)?;
    }
    let mut patches = sim.world.resource::<Topology>().patches();
    loop {
        let stop = options.stop.load(Ordering::Relaxed);
        let requested = stepped && snapshot_is_requested(recorder.output, options);
        let flags = recorder.output.exchange_flags(stop, requested)?;
        if let Some(shortage) = sim.world.resource::<MemoryGuard>().shortage.clone() {
            if stepped && shortage.is_at_root_step_end() {
                recorder.views.write_due(sim)?;
            }
            return Ok(RunEnd::OutOfMemory(shortage));
        }
        let now = sim.world.resource::<Topology>().patches();
        let before = std::mem::replace(&mut patches, now);
        if stepped {
            recorder.views.write_due(sim)?;
            snapshot_if_due(sim, options, recorder, flags.due, before)?;
        }
        report_cap(sim, options, &mut reported);
        let clock = sim.world.resource::<Levels>().clock(0);
        if clock.time >= end || (most > 0 && clock.steps >= most) {
            return Ok(RunEnd::Done);
        }
        if flags.stop {
            return Ok(RunEnd::Interrupted);
        }
        sim.world.resource::<Activity>().begin_mesh();
        let step_start = Instant::now();
        let before = sim.world.resource::<RunCounters>().cell_updates;
        let until = recorder.views.until(recorder.output.until(end));
        let report = sim.driver.root_step(&mut sim.world, until)?;
        let seconds = step_start.elapsed().as_secs_f64();
        sim.world.resource::<Activity>().begin_output();
        let updates = sim.world.resource::<RunCounters>().cell_updates - before;
        let progress = progress(sim, &report, updates as f64 / seconds, recorder);
        recorder.write_row(sim, &progress)?;
        report_notes(sim, std::iter::empty(), options);
        options.observer.step(&progress);
        stepped = true;
    }
}

/// Returns `true` if a signal or a file asks this rank for a snapshot.
fn snapshot_is_requested(output: &mut Output, options: &mut RunOptions) -> bool {
    let by_file = output.take_request().unwrap_or_else(|error| {
        let note = format!("warning: {error}; such files are ignored");
        options.observer.note(&note);
        false
    });
    options.snapshot.swap(false, Ordering::Relaxed) || by_file
}

/// Writes a snapshot after a root step if necessary. It is due, the latest one was removed, or memory is
/// nearly exhausted. `before` is the number of patches one root step earlier.
fn snapshot_if_due(
    sim: &Engine,
    options: &mut RunOptions,
    recorder: &mut RunRecorder,
    due: bool,
    before: usize,
) -> Result<(), Error> {
    if let Some(path) = recorder.output.removed_snapshot() {
        let path = path.display();
        let note = format!("note: the latest snapshot {path} was removed: writes another");
        options.observer.note(&note);
    }
    let due = due || recorder.output.is_due(sim);
    if due || memory_is_tight(sim, before)? && !recorder.output.is_current(sim) {
        recorder.views.sync()?;
        recorder.output.snapshot(sim, recorder.diagnostics)?;
    }
    Ok(())
}

/// Returns `true` if memory may forbid a regrid within the next root step, judged by the growth since
/// `before` patches. The present state is then saved, because the next one would differ from that of a
/// run with more memory. Collective.
fn memory_is_tight(sim: &Engine, before: usize) -> Result<bool, Error> {
    let patches = sim.world.resource::<Topology>().patches();
    let stops = sim.settings.run.out_of_memory == OutOfMemory::Stop;
    if !stops || patches <= before {
        return Ok(false);
    }
    let foreseen = patches + 2 * (patches - before);
    Ok(shortage(&sim.world, foreseen, 1)?.is_some())
}

/// Reports once, on the first rank, that memory prevents refinement.
fn report_cap(sim: &Engine, options: &mut RunOptions, reported: &mut bool) {
    let guard = sim.world.resource::<MemoryGuard>();
    let first = sim.world.resource::<Ranks>().rank() == 0;
    if let Some(cap) = guard.first_cap.as_ref().filter(|_| first && !*reported) {
        *reported = true;
        let note = format!(
            "note: goes on with the patches that fit: {}",
            cap.description()
        );
        options.observer.note(&note);
    }
}

fn progress(sim: &Engine, report: &StepReport, rate: f64, recorder: &RunRecorder) -> Progress {
    let clock = sim.world.resource::<Levels>().clock(0);
    let topology = sim.world.resource::<Topology>();
    Progress {
        step: clock.steps,
        time: clock.time,
        end: sim.settings.time.end,
        begin: recorder.begin,
        dt: report.dt,
        limiter: report.limiter,
        patches: (0..=sim.settings.mesh.max_level)
            .map(|level| topology.count(level))
            .collect(),
        capped: sim.world.resource::<MemoryGuard>().capped,
        rate,
        wall: recorder.start.elapsed().as_secs_f64(),
    }
}

/// Exit status of a run that the watchdog has ended.
pub const STALLED: u8 = 5;

/// Number of checks without progress that end a run. Checks are counted in place of time, so that a stopped process
/// does not end when it continues.
const CHECKS: u32 = 20;
/// Time in which the other ranks can report what they are doing.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Time in which the libraries of the device and of the ranks can end; they may hang as well.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Supervises a run until it is dropped.
pub(super) struct Watchdog {
    /// Dropped to end the thread.
    _end: Option<Sender<()>>,
}

impl Watchdog {
    /// Starts the thread, unless `run.watchdog` is 0.
    pub(super) fn start(sim: &Engine) -> Result<Self, Error> {
        let limit = sim.settings.run.watchdog;
        if limit == 0.0 {
            return Ok(Self { _end: None });
        }
        let (end, ended) = channel();
        let supervision = Supervision {
            activity: sim.world.resource::<Activity>().clone(),
            ranks: sim.world.resource::<Ranks>().clone(),
            limit,
            ended,
        };
        let thread = std::thread::Builder::new().name("nestar-watchdog".into());
        let started = thread.spawn(move || supervision.run());
        let refusal = |why| {
            Error::Setup(format!(
                "cannot start the thread of the watchdog: {why}; allow more threads (`ulimit -u`) or memory (`ulimit -v`), use fewer (`run.threads`), or set \
                 run.watchdog = 0"
            ))
        };
        started.map_err(refusal)?;
        Ok(Self { _end: Some(end) })
    }
}

/// What the thread observes.
struct Supervision {
    activity: Activity,
    ranks: Ranks,
    /// Time without progress that ends the run, seconds.
    limit: f64,
    ended: Receiver<()>,
}

impl Supervision {
    /// Ends the process if no system begins for too long.
    fn run(self) {
        let interval = Duration::from_secs_f64(self.limit / f64::from(CHECKS));
        let (mut latest, mut checks) = (None, 0);
        while self.ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let progress = self.activity.progress();
            checks = match progress.is_some() && progress == latest {
                true => checks + 1,
                false => 0,
            };
            latest = progress;
            if checks == CHECKS {
                self.end_run();
            }
        }
    }

    /// Reports the present work and ends the processes of all ranks.
    fn end_run(&self) -> ! {
        let ranks = &self.ranks;
        let rank = match ranks.is_single() {
            true => String::new(),
            false => format!("rank {} of {}, ", ranks.rank(), ranks.size()),
        };
        let message = format!(
            "error: no system has begun for {} s: {rank}{}. The device, the file system or another rank may hang. Continue from the \
             latest snapshot with `--resume`; `run.watchdog` sets this time (0: no limit)\n",
            self.limit,
            self.activity.description()
        );
        // A message that cannot be written is lost.
        let _ = std::io::stderr().write_all(message.as_bytes());
        std::thread::sleep(LAST_WORDS);
        // without this thread, the process ends unless the libraries hang
        let _ = std::thread::Builder::new().spawn(|| {
            std::thread::sleep(LAST_RESORT);
            std::process::abort()
        });
        ranks.communicator().end_all(STALLED)
    }
}
