//! Interactive runs: progress reports, and signals that stop a run after writing a snapshot.

use crate::assemble::Simulation;
use crate::report::{ReportOptions, Reporter};
use nestar_deck::UnitSystem;
use nestar_engine::run::{RunOptions, RunSummary};
use nestar_engine::{Engine, Error};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::{SigId, flag, low_level};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Options of an interactive run.
pub struct MonitorOptions {
    /// Directory of the run; default: that of the deck.
    pub output: Option<PathBuf>,
    /// If `true`, the run continues from its latest snapshot.
    pub resume: bool,
    /// Handlers of signals, installed as early as possible.
    pub signals: Signals,
    /// Instruction for continuing an interrupted run.
    pub continuation: String,
}

impl Simulation {
    /// Runs to the end like `nestar run`: writes to the deck's output directory, with progress on standard error and in `run.log`. SIGINT,
    /// SIGTERM, SIGUSR1 and SIGHUP (unless ignored, as under `nohup`) stop the run after the current root step with a snapshot, from
    /// which [`Simulation::resume`] continues. SIGUSR2, or a file `NOW` in the run's directory, causes a snapshot only.
    ///
    /// # Errors
    /// See [`nestar_engine::run::run`].
    pub fn run(&mut self) -> Result<RunSummary, Error> {
        self.run_as_program(false)
    }

    /// Continues from the latest snapshot in the output directory, or starts from the beginning if there is none.
    ///
    /// # Errors
    /// See [`nestar_engine::run::run`].
    pub fn resume(&mut self) -> Result<RunSummary, Error> {
        self.run_as_program(true)
    }

    fn run_as_program(&mut self, resume: bool) -> Result<RunSummary, Error> {
        let signals = Signals::install(true)?;
        let settings = self.engine().settings.clone();
        let reporter = Reporter::new(ReportOptions {
            quiet: false,
            log: Some(PathBuf::from(settings.output.directory).join("run.log")),
            max_steps: settings.time.max_steps,
            time: (settings.units).shown("time", UnitSystem::default(), settings.time.end),
        });
        let options = MonitorOptions {
            output: None,
            resume,
            signals,
            continuation: "calling `resume` instead of `run`".into(),
        };
        self.run_monitored(&reporter, options, |_| String::new())
    }

    /// Runs with progress reports and signal handling. `closing` returns a message for the end.
    ///
    /// # Errors
    /// Signals cannot be handled, or see [`nestar_engine::run::run`].
    pub fn run_monitored(
        &mut self,
        reporter: &Reporter,
        options: MonitorOptions,
        closing: impl FnOnce(&Engine) -> String,
    ) -> Result<RunSummary, Error> {
        let signals = options.signals;
        signals.report_stop(reporter.clone()).map_err(no_signals)?;
        let build = self.build.clone();
        let result = self.run_with(RunOptions {
            output: options.output,
            resume: options.resume,
            stop: signals.stop.clone(),
            snapshot: signals.snapshot.clone(),
            observer: Box::new(reporter.clone()),
            build,
        });
        drop(signals);
        reporter.finish();
        match &result {
            Ok(summary) => {
                let closing = closing(self.engine());
                if !closing.is_empty() {
                    reporter.print(&closing);
                }
                reporter.print(&last_line(
                    summary,
                    &reporter.time(summary.time),
                    &options.continuation,
                ));
            }
            Err(error) => reporter.log(&format!("error: {error}")),
        }
        result
    }
}

/// Returns the last line of a run.
fn last_line(summary: &RunSummary, time: &str, continuation: &str) -> String {
    let directory = summary.directory.display();
    if summary.interrupted {
        return format!(
            "interrupted at step {}, time {time}; the snapshot is in {directory}; continue with\n  {continuation}",
            summary.step,
        );
    }
    format!(
        "done: step {}, time {time}, {} cell updates in {:.2} s ({:.2e} cells/s), {directory}",
        summary.step,
        summary.cell_updates,
        summary.wall,
        summary.cell_updates as f64 / summary.wall
    )
}

/// Signals within this time of the first one belong to the same request: `timeout` and batch systems signal the program and its
/// process group, and wrappers forward what the program has received already.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// Records a request to stop. All methods are safe in signal handlers.
struct StopRequest {
    start: Instant,
    /// Nanoseconds from `start` to the first signal; `u64::MAX` before it.
    first: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl StopRequest {
    fn new(stop: Arc<AtomicBool>) -> Self {
        Self {
            start: Instant::now(),
            first: AtomicU64::new(u64::MAX),
            stop,
        }
    }

    /// Records a signal; returns `true` if it repeats a request that is older than [`ONE_REQUEST`].
    fn record(&self) -> bool {
        let now = self.start.elapsed().as_nanos() as u64;
        let first = self.first.fetch_min(now, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
        now.saturating_sub(first) >= ONE_REQUEST.as_nanos() as u64
    }
}

/// Signal handlers during a run; default handling is restored on drop. A signal before the first step stops the run with a snapshot of the
/// initial state.
pub struct Signals {
    /// `true` if another signal ends the program at once.
    one_process: bool,
    /// Set by the first signal.
    stop: Arc<AtomicBool>,
    /// Set by SIGUSR2; the run clears it.
    snapshot: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    ids: Vec<SigId>,
}

/// `true` while no run handles signals; they end the program then.
static IDLE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

impl Signals {
    /// Installs the handlers. If `one_process` is `true`, another SIGINT, SIGTERM or SIGHUP, sent a second or more after the first signal,
    /// ends the program at once. It must be `false` for ranks started by a launcher, because launchers repeat signals.
    ///
    /// # Errors
    /// The system refuses them.
    pub fn install(one_process: bool) -> Result<Self, Error> {
        let mut signals = Self {
            one_process,
            stop: Arc::default(),
            snapshot: Arc::default(),
            over: Arc::default(),
            ids: Vec::new(),
        };
        signals.register().map_err(no_signals)?;
        Ok(signals)
    }

    fn register(&mut self) -> std::io::Result<()> {
        let ignored = hangups_are_ignored();
        let wanted = [SIGINT, SIGTERM, SIGUSR1, SIGHUP].into_iter();
        let wanted: Vec<_> = wanted.filter(|s| *s != SIGHUP || !ignored).collect();
        let first = IDLE.get().is_none();
        let idle = IDLE.get_or_init(Arc::default);
        idle.store(false, Ordering::SeqCst);
        let request = Arc::new(StopRequest::new(self.stop.clone()));
        for &signal in &wanted {
            if first {
                flag::register_conditional_default(signal, idle.clone())?;
            }
            let may_end = self.one_process && signal != SIGUSR1;
            let request = request.clone();
            let handle = move || {
                if request.record() && may_end {
                    low_level::exit(128 + signal);
                }
            };
            // SAFETY: the handler is async-signal-safe: it reads the monotonic clock, accesses atomics and calls `_exit`; it does
            // not allocate, lock or panic
            self.ids
                .push(unsafe { low_level::register(signal, handle) }?);
        }
        if first {
            flag::register_conditional_default(SIGUSR2, idle.clone())?;
        }
        self.ids
            .push(flag::register(SIGUSR2, self.snapshot.clone())?);
        keep_file_limits_from_killing()
    }

    /// Reports a signal at once, because a root step may take minutes.
    fn report_stop(&self, reporter: Reporter) -> std::io::Result<()> {
        let (raised, over) = (self.stop.clone(), self.over.clone());
        let hint = if self.one_process {
            "; another signal ends the program at once"
        } else {
            ""
        };
        let wait = move || {
            while !over.load(Ordering::Relaxed) {
                if raised.load(Ordering::Relaxed) {
                    reporter.print(&format!(
                        "stopping after this root step with a snapshot{hint}"
                    ));
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        };
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(wait).map(|_| ())
    }
}

/// Returns the error of a system that refuses handlers or their thread.
fn no_signals(error: std::io::Error) -> Error {
    Error::Setup(format!(
        "cannot install signal handlers and start their thread: {error}; allow more threads (`ulimit -u`) or memory (`ulimit -v`), or use \
         fewer (`run.threads`)"
    ))
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
        if let Some(idle) = IDLE.get() {
            idle.store(true, Ordering::SeqCst);
        }
    }
}

/// Returns `true` if the program was started with SIGHUP ignored, as by `nohup`.
#[must_use]
pub fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Makes writes beyond the limit of file sizes fail with an error instead of killing the program by SIGXFSZ.
///
/// # Errors
/// The signal handler cannot be installed.
pub fn keep_file_limits_from_killing() -> std::io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}
