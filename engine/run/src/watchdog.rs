//! Watchdog of a run that stands still, for instance because a device, a file system or another rank hangs.

use nestar_engine_comm::Ranks;
use nestar_engine_step::{Activity, Engine, Error};
use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

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
