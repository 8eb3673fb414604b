//! Reports progress of a run: a progress bar on a terminal, lines otherwise, and a log file.

use indicatif::{ProgressBar, ProgressStyle};
use nestar_deck::ShownUnit;
use nestar_engine::run::{Observer, Progress};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wall time between two lines without a terminal.
const PAUSE: Duration = Duration::from_secs(2);
/// Length of the progress bar in ticks.
const TICKS: u64 = 1000;

/// Output of progress.
enum Screen {
    /// A progress bar on a terminal.
    Bar(ProgressBar),
    /// Lines in a file or pipe, with the time of the latest line.
    Lines(Option<Instant>),
    /// No output.
    Quiet,
}

/// The log file. Lines are buffered until this run owns its directory, which another run may still use.
struct Log {
    path: PathBuf,
    file: Option<File>,
    waiting: String,
    /// `true` if there is no log, or writing it has failed.
    failed: bool,
}

/// State of the reporter.
struct Report {
    screen: Screen,
    log: Log,
    max_steps: u64,
    time: ShownUnit,
}

/// Reports progress and messages; a shared handle for the run and for signals.
#[derive(Clone)]
pub struct Reporter(Arc<Mutex<Report>>);

/// Options of a [`Reporter`].
pub struct ReportOptions {
    /// If `true`, nothing is printed on standard error.
    pub quiet: bool,
    /// Log file, if any.
    pub log: Option<PathBuf>,
    /// Root steps after which the run ends; 0: no limit.
    pub max_steps: u64,
    /// Unit of times.
    pub time: ShownUnit,
}

impl Reporter {
    /// Creates a reporter.
    pub fn new(options: ReportOptions) -> Self {
        let screen = if options.quiet {
            Screen::Quiet
        } else if io::stderr().is_terminal() {
            Screen::Bar(bar())
        } else {
            Screen::Lines(None)
        };
        let log = Log {
            failed: options.log.is_none(),
            path: options.log.unwrap_or_default(),
            file: None,
            waiting: String::new(),
        };
        Self(Arc::new(Mutex::new(Report {
            screen,
            log,
            max_steps: options.max_steps,
            time: options.time,
        })))
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        // a panic cannot leave an inconsistent state
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a message and writes it to the log.
    pub fn print(&self, message: &str) {
        self.report().print(message);
    }

    /// Writes a message to the log only.
    pub fn log(&self, message: &str) {
        self.report().log.line(message);
    }

    /// Formats a time in the unit of this report.
    pub fn time(&self, value: f64) -> String {
        time_in(value, &self.report().time)
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        let mut report = self.report();
        if let Screen::Bar(bar) = &report.screen {
            bar.finish_and_clear();
            report.screen = Screen::Lines(None);
        }
    }
}

impl Observer for Reporter {
    fn started(&mut self) {
        self.report().log.open();
    }

    fn note(&mut self, message: &str) {
        self.print(message);
    }

    fn step(&mut self, progress: &Progress) {
        self.report().step(progress);
    }
}

impl Report {
    fn print(&mut self, message: &str) {
        match &self.screen {
            Screen::Bar(bar) => bar.suspend(|| print_message(message)),
            Screen::Lines(_) => print_message(message),
            Screen::Quiet => {}
        }
        self.log.line(message);
    }

    fn step(&mut self, progress: &Progress) {
        let done = done(progress, self.max_steps);
        let time = &self.time;
        match &mut self.screen {
            Screen::Bar(bar) => {
                bar.set_position((done * TICKS as f64) as u64);
                bar.set_message(short_line(progress, time, &remaining(progress, done)));
            }
            Screen::Lines(latest) => {
                if latest.is_none_or(|latest| latest.elapsed() >= PAUSE) {
                    *latest = Some(Instant::now());
                    let (line, left) = (line(progress, time, 4), remaining(progress, done));
                    print_message(format!("{line}  {left}").trim_end());
                }
            }
            Screen::Quiet => {}
        }
        let line = line(progress, time, 15);
        self.log.line(&line);
    }
}

impl Log {
    fn line(&mut self, text: &str) {
        if self.failed {
            return;
        }
        self.waiting.push_str(text);
        self.waiting.push('\n');
        if self.file.is_some() {
            self.write();
        }
    }

    /// Opens the file for appending: the log of an earlier run has been moved, or is continued.
    fn open(&mut self) {
        if self.failed {
            return;
        }
        let opened = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        match opened {
            Ok(file) => {
                self.file = Some(file);
                self.write();
            }
            Err(error) => self.give_up(&error),
        }
    }

    fn write(&mut self) {
        let text = std::mem::take(&mut self.waiting);
        let written = self
            .file
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            self.give_up(&error);
        }
    }

    /// Stops logging after an error; the run continues.
    fn give_up(&mut self, error: &io::Error) {
        self.failed = true;
        self.file = None;
        print_message(&format!(
            "warning: cannot write the log {}: {error}",
            self.path.display()
        ));
    }
}

/// Prints a message on standard error and ignores errors.
pub fn print_message(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

fn bar() -> ProgressBar {
    // an invalid template falls back to the default style
    let style = ProgressStyle::with_template("{percent:>3}% [{bar:20}] {wide_msg}");
    ProgressBar::new(TICKS).with_style(
        style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> "),
    )
}

/// Returns the completed fraction of the run, by simulation time or number of steps.
fn done(progress: &Progress, max_steps: u64) -> f64 {
    let by_time = (progress.time - progress.begin) / (progress.end - progress.begin);
    let by_steps = if max_steps > 0 {
        progress.step as f64 / max_steps as f64
    } else {
        0.0
    };
    by_time.max(by_steps).clamp(0.0, 1.0)
}

/// Describes a root step for the progress bar; the most important first, since a narrow terminal truncates the line.
fn short_line(progress: &Progress, time: &ShownUnit, left: &str) -> String {
    let patches: Vec<String> = progress.patches.iter().map(usize::to_string).collect();
    let gap = if left.is_empty() { "" } else { "  " };
    format!(
        "{left}{gap}t {:.4e}/{}  step {}  {:.2e} cells/s  patches {}{}  dt {:.2e} ({})",
        progress.time * time.factor,
        time_in(progress.end, time),
        progress.step,
        progress.rate,
        patches.join(" "),
        capped(progress),
        progress.dt * time.factor,
        progress.limiter
    )
}

/// Formats a time with its unit, without the round-off of the conversion.
fn time_in(value: f64, time: &ShownUnit) -> String {
    if time.factor == 1.0 {
        return format!("{value:e}{}", suffix(time));
    }
    let value = value * time.factor;
    let value: f64 = format!("{value:.12e}").parse().unwrap_or(value);
    format!("{value:e}{}", suffix(time))
}

/// Returns the unit after a time; empty in code units.
fn suffix(time: &ShownUnit) -> String {
    match time.name.as_str() {
        "time" => String::new(),
        name => format!(" {name}"),
    }
}

/// Describes the number of patches that were not refined for lack of memory.
fn capped(progress: &Progress) -> String {
    match progress.capped {
        0 => String::new(),
        n => format!("  capped {n}"),
    }
}

/// Describes a root step on one line, with `digits` decimals of times.
fn line(progress: &Progress, time: &ShownUnit, digits: usize) -> String {
    let patches: Vec<String> = progress.patches.iter().map(usize::to_string).collect();
    let unit = suffix(time);
    format!(
        "step {}  time {:.digits$e} of {}  dt {:.digits$e}{unit} ({})  patches {}{}  {:.2e} cells/s",
        progress.step,
        progress.time * time.factor,
        time_in(progress.end, time),
        progress.dt * time.factor,
        progress.limiter,
        patches.join(" "),
        capped(progress),
        progress.rate
    )
}

fn remaining(progress: &Progress, done: f64) -> String {
    let seconds = progress.wall / done * (1.0 - done);
    // longer estimates are meaningless
    if !(0.0..3.2e9).contains(&seconds) || done >= 1.0 {
        return String::new();
    }
    let whole = Duration::from_secs(seconds.ceil() as u64);
    format!("{} left", humantime::format_duration(whole))
}

#[cfg(test)]
mod tests {
    use super::{done, line, remaining};
    use nestar_deck::ShownUnit;
    use nestar_engine::run::Progress;

    fn unit(name: &str, factor: f64) -> ShownUnit {
        ShownUnit {
            name: name.into(),
            factor,
        }
    }

    fn progress() -> Progress {
        Progress {
            step: 25,
            time: 0.375,
            end: 0.5,
            begin: 0.25,
            dt: 0.01,
            limiter: "courant",
            patches: vec![8, 64],
            capped: 0,
            rate: 1.25e7,
            wall: 60.0,
        }
    }

    #[test]
    fn a_line_names_the_limiter_and_the_patches_of_each_level() {
        assert_eq!(
            line(&progress(), &unit("time", 1.0), 2),
            "step 25  time 3.75e-1 of 5e-1  dt 1.00e-2 (courant)  patches 8 64  1.25e7 cells/s"
        );
        assert_eq!(
            line(&progress(), &unit("Myr", 1e3), 2),
            "step 25  time 3.75e2 of 5e2 Myr  dt 1.00e1 Myr (courant)  patches 8 64  1.25e7 cells/s"
        );
    }

    #[test]
    fn the_remaining_time_counts_from_the_start_of_this_process() {
        let progress = progress();
        let share = done(&progress, 0);
        assert_eq!(share, 0.5);
        assert_eq!(remaining(&progress, share), "1m left");
        assert_eq!(remaining(&progress, 0.0), "");
        assert_eq!(remaining(&progress, 1.0), "");
    }

    #[test]
    fn a_limit_of_steps_counts_if_it_ends_the_run_first() {
        assert!((done(&progress(), 26) - 25.0 / 26.0).abs() < 1e-12);
    }
}
