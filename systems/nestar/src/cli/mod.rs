//! The command line: arguments, exit statuses, and one module per command.

mod bench;
mod check;
mod deck;
mod estimate;
mod export;
mod list;
mod memory;
mod new;
mod plan;
mod plot;
mod ranks;
mod rates;
mod replay;
mod run;
mod snapshot;
mod sweep;
mod verify;
mod view;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use nestar::engine::Error;
use nestar::engine::step::config::SCENARIOS;
use nestar::monitor::keep_file_limits_from_killing;
use nestar::report::print_message;
use nestar::snapshot::SnapshotError;
use nestar::{App, assemble};
use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_plot::PlotError;
use std::io::{self, Write as _};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Exit status of a run that failed.
const FAILED: u8 = 1;
/// Exit status if the deck or the arguments are invalid.
const INVALID_INPUT: u8 = 2;
/// Exit status of a run that was interrupted and can be resumed.
const INTERRUPTED: u8 = 3;
/// Exit status if memory is too small; a run can be resumed with more.
pub const OUT_OF_MEMORY: u8 = 4;

/// Wall time between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

const STATUSES: &str = "\
Exit status:
  0  success
  1  the run failed; its latest complete snapshot is usable
  2  the deck or the arguments are invalid
  3  the run was interrupted by SIGINT, SIGTERM, SIGHUP or SIGUSR1; it wrote a snapshot and can be resumed by
     `nestar run DECK --resume`; under `nohup` SIGHUP has no effect
  4  out of memory, for patches, particles or the program itself; the run can be resumed from its latest snapshot with
     more memory
  5  no system has begun for `run.watchdog` seconds, for instance because a device hangs
A second SIGINT, SIGTERM or SIGHUP ends the program at once with status 130, 143 or 129.";

/// Adaptive mesh refinement for astrophysical fluids.
#[derive(Parser)]
#[command(
    after_help = STATUSES,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a deck to its end
    #[command(after_help = STATUSES)]
    Run(run::RunArgs),
    /// Create a crate for your own physics: a plugin, a deck and a test
    New(new::NewArgs),
    /// Check a deck without running it; print the resolved deck, initial hierarchy, memory, output, duration and order of a step
    Check(check::CheckArgs),
    /// Print a deck of the program, or list all: `nestar deck sedov > my.toml`
    Deck(deck::DeckNameArgs),
    /// Run a deck with all combinations of some settings, each in a directory of its own
    #[command(after_help = STATUSES)]
    Sweep(sweep::SweepArgs),
    /// List what a deck can name: scenarios, criteria, schemes, parameters, fields, formulas
    List(list::ListArgs),
    /// Print the order of systems in a step
    Order(DeckArgs),
    /// Describe a snapshot: time, levels, minima, maxima and totals of its fields
    Info(snapshot::InfoArgs),
    /// Print a hash of the content of snapshots; equal hashes mean bitwise identical content
    Digest(snapshot::SnapshotsArgs),
    /// Print a JSON schema of decks, for completion in editors
    Schema,
    /// Print completions for a shell: source <(nestar completions bash)
    Completions {
        /// Shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page: nestar man | man -l -
    Man,
    /// Run small versions of decks on two devices and compare the results bitwise; or verify checksums of snapshots
    Verify(verify::VerifyArgs),
    /// Predict a run on many ranks without running it: partition, halo patches, messages, memory, efficiency
    Plan(plan::PlanArgs),
    /// Repeat the step of a patch in which a cell became unphysical, and print the cell after each pass
    Replay(replay::ReplayArgs),
    /// Plot fields and particles of snapshots to PNG or SVG files
    Plot(Box<plot::PlotArgs>),
    /// Show a run in the browser: pictures, curves, log; follows a run at work
    View(view::ViewArgs),
    /// Write a snapshot for ParaView (VTKHDF), as a uniform grid (HDF5), or its particles (Gadget); needs the Python package
    Export(export::ExportArgs),
    /// Measure the speed of this machine in cell updates per second
    Bench(bench::BenchArgs),
}

/// A deck and overrides.
#[derive(Args)]
struct DeckArgs {
    /// Deck (TOML file), or the name of a deck inside the program (`nestar deck` lists them)
    deck: PathBuf,
    /// Set a value of the deck; may be repeated
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
}

impl DeckArgs {
    /// Reads and checks the deck with its overrides and the overrides `more` of other arguments.
    fn read(&self, app: &App, more: &[String]) -> Result<Deck, DeckError> {
        let mut deck = self.text()?;
        let changes = self.overrides.iter().chain(more);
        let refused: Vec<DeckError> = changes
            .filter_map(|change| deck.set(change).err())
            .collect();
        let errors = refused.into_iter().chain(app.check(&deck).err());
        errors.reduce(DeckError::and).map_or(Ok(deck), Err)
    }
}

impl DeckArgs {
    /// Reads the deck without overrides.
    fn text(&self) -> Result<Deck, DeckError> {
        let name = self.deck.to_str().unwrap_or_default();
        let is_name = !name.contains(['.', '/']) && !self.deck.exists();
        match deck::find(name) {
            Ok(own) if is_name => Deck::parse(&format!("{name}.toml"), own.text),
            Err(why) if is_name => Err(DeckError::new(name, why)),
            _ => Deck::read(&self.deck),
        }
    }
}

/// Error of a command, with its exit status.
struct CommandError {
    status: u8,
    message: String,
}

impl CommandError {
    fn new(status: u8, message: impl ToString) -> Self {
        Self {
            status,
            message: message.to_string(),
        }
    }

    /// Prints the message, unless another rank does.
    fn print(&self) {
        if !self.message.is_empty() {
            print_message(&format!("error: {}", self.message));
        }
    }
}

impl From<DeckError> for CommandError {
    fn from(error: DeckError) -> Self {
        Self::new(INVALID_INPUT, error)
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Deck(_) | Error::Setup(_) => INVALID_INPUT,
            Error::Memory(_) => OUT_OF_MEMORY,
            _ => FAILED,
        };
        Self::new(status, error)
    }
}

impl From<SnapshotError> for CommandError {
    fn from(error: SnapshotError) -> Self {
        let status = match error {
            SnapshotError::Foreign { .. } | SnapshotError::Newer { .. } => INVALID_INPUT,
            _ => FAILED,
        };
        Self::new(status, error)
    }
}

impl From<PlotError> for CommandError {
    fn from(error: PlotError) -> Self {
        match error {
            PlotError::Snapshot(error) => error.into(),
            error => Self::new(INVALID_INPUT, error),
        }
    }
}

/// Runs the command given by the program arguments; `configure` adds plugins and scenarios to Nestar:
///
/// ```no_run
/// # use nestar::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Drag {}
/// # impl Plugin for Drag { fn build(&self, _: &mut Engine) -> Result<(), Error> { Ok(()) } }
/// fn main() -> std::process::ExitCode {
///     nestar::cli::main(|app| app.program(nestar::program!()).plugin::<Drag>("drag"))
/// }
/// ```
pub fn main(configure: impl FnOnce(App) -> App) -> ExitCode {
    memory::retain_freed_memory();
    memory::end_without_memory_for_threads();
    let app = configure(App::default());
    let command = parsed(&app);
    // without it, a write over the limit kills the program instead of failing with a message
    let _ = keep_file_limits_from_killing();
    match guarded(|| execute(&app, command)) {
        Ok(status) => status.into(),
        Err(failure) => {
            failure.print();
            failure.status.into()
        }
    }
}

/// Parses the arguments; invalid arguments, `--help` and `--version` end the program.
fn parsed(app: &App) -> Command {
    // clap needs a static text
    let version: &'static str = format!("{} [{}]", signature(app), app.build_info().flags).leak();
    let matches = command_line(app).version(version).get_matches();
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    }
}

/// Returns the signature without the program's name, which clap adds.
fn signature(app: &App) -> String {
    let signature = app.signature();
    let rest = signature.strip_prefix(app.name()).map(str::trim_start);
    rest.map_or(signature.clone(), String::from)
}

/// Runs `work` and converts a panic to an error.
fn guarded(work: impl FnOnce() -> Result<u8, CommandError>) -> Result<u8, CommandError> {
    // the panic itself has been printed already
    let fault = "this is a bug; please report it with the deck";
    std::panic::catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CommandError::new(FAILED, fault)))
}

/// Runs a command and returns its exit status.
fn execute(app: &App, command: Command) -> Result<u8, CommandError> {
    match command {
        Command::Run(arguments) => ranks::each(arguments.ranks, |ranks, library| {
            run::run(app, &arguments, ranks, library)
        }),
        Command::New(arguments) => new::new(&arguments).map(|()| 0),
        Command::Check(arguments) => check::check(app, &arguments).map(|()| 0),
        Command::Deck(arguments) => deck::deck(&arguments).map(|()| 0),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::List(arguments) => list::list(app, &arguments).map(|()| 0),
        Command::Order(arguments) => check::order(app, &arguments).map(|()| 0),
        Command::Info(arguments) => in_pool(|| snapshot::info(&arguments)),
        Command::Digest(arguments) => in_pool(|| snapshot::digest(&arguments)),
        Command::Schema => print(&schema(app)).map(|()| 0),
        Command::Completions { shell } => print(&completions(app, shell)).map(|()| 0),
        Command::Man => print(&manual(app)?).map(|()| 0),
        Command::Verify(arguments) => in_pool(|| verify::verify(app, &arguments)),
        Command::Plan(arguments) => in_pool(|| plan::plan(app, &arguments)),
        Command::Replay(arguments) => in_pool(|| replay::replay(app, &arguments)),
        Command::Plot(arguments) => in_pool(|| plot::plot(app, &arguments)),
        Command::View(arguments) => view::view(app, &arguments).map(|()| 0),
        Command::Export(arguments) => export::export(&arguments),
        Command::Bench(arguments) => ranks::each(arguments.ranks, |ranks, library| {
            bench::bench(app, &arguments, ranks, library).map(|()| 0)
        }),
    }
}

/// Runs `work` in an explicit thread pool: the global pool of rayon panics if the system refuses threads.
fn in_pool(work: impl FnOnce() -> Result<(), CommandError> + Send) -> Result<u8, CommandError> {
    assemble::thread_pool(0)?.install(work).map(|()| 0)
}

/// Returns the command line of a program, named after it.
fn command_line(app: &App) -> clap::Command {
    Cli::command().name(app.name()).bin_name(app.name())
}

/// Returns the completions of a shell.
fn completions(app: &App, shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command_line(app), app.name(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the manual page: the program, then its commands.
fn manual(app: &App) -> Result<String, CommandError> {
    let mut text = Vec::new();
    let mut command = command_line(app);
    command.build();
    let mut render = |command: clap::Command| clap_mangen::Man::new(command).render(&mut text);
    let commands = command
        .get_subcommands()
        .filter(|own| own.get_name() != "help")
        .cloned();
    let pages: Vec<clap::Command> = commands.collect();
    let written = render(command).and_then(|()| pages.into_iter().try_for_each(render));
    written.map_err(|error| CommandError::new(FAILED, error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn schema(app: &App) -> String {
    let names = app.scenarios().iter();
    let names: Vec<(&str, &str)> = names.map(|s| (s.name, s.table.doc())).collect();
    let tables = app.tables().into_iter();
    let tables: Vec<TableSchema> = tables.map(|t| t.with_words(SCENARIOS, &names)).collect();
    format!("{:#}\n", nestar_deck::schema(&tables))
}

/// Prints a result. A closed pipe is not an error.
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(FAILED, format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns `true` for `-`, the path of the standard output.
fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes `results` as JSON to the file `path`, or prints them.
fn write_json(path: &Path, results: &serde_json::Value) -> Result<(), CommandError> {
    let text = format!("{results:#}\n");
    if is_standard_output(path) {
        return print(&text);
    }
    std::fs::write(path, text)
        .map_err(|e| CommandError::new(FAILED, format!("cannot write {}: {e}", path.display())))
}

/// Returns a function that prints progress at limited intervals.
fn throttled(text: impl Fn(usize) -> String) -> impl FnMut(usize) {
    let mut printed = Instant::now();
    move |number| {
        if printed.elapsed() >= PROGRESS_INTERVAL {
            print_message(&text(number));
            printed = Instant::now();
        }
    }
}

/// Returns the progress message while the initial hierarchy is built.
fn patches_found(patches: usize) -> String {
    format!("evaluating the initial state: {patches} patches …")
}

/// Parses a finite number that satisfies `fits`.
fn number(text: &str, fits: impl Fn(f64) -> bool, range: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if fits(value) && value.is_finite() {
        Ok(value)
    } else {
        Err(format!("must be finite and {range}"))
    }
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0, "above 0")
}

#[cfg(test)]
mod tests {
    use super::positive;

    #[test]
    fn rates_are_positive() {
        assert_eq!(positive("5e9"), Ok(5e9));
        for wrong in ["0", "-1", "inf", "nan", "fast"] {
            assert!(positive(wrong).is_err(), "{wrong}");
        }
    }
}
