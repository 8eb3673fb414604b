//! `nestar run`.

use super::ranks::{self, RanksArgs};
use super::snapshot::UnitsArgs;
use super::{CommandError, DeckArgs, FAILED, INTERRUPTED, memory, rates};
use clap::Args;
use nestar::engine::Error;
use nestar::engine::comm::{Ranks, RanksError};
use nestar::engine::device::ComputeDevice;
use nestar::engine::run::files::is_own_deck;
use nestar::engine::run::{RunSummary, restart};
use nestar::engine::step::memory::{LimitSource, Shortage};
use nestar::engine::step::{Activity, RunCounters};
use nestar::monitor::{MonitorOptions, Signals};
use nestar::report::{ReportOptions, Reporter};
use nestar::systems::units::Units;
use nestar::{App, engine};
use std::path::PathBuf;

/// Arguments of `nestar run`.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    deck: DeckArgs,
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Directory of the run, overrides output.directory; an earlier run in it is moved to a subdirectory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue from the latest snapshot in the run's directory; start from the beginning if there is none
    #[arg(long)]
    resume: bool,
    /// Start from the state of a snapshot (NNNNNN.zarr) or of the latest snapshot of a run, overrides run.start_from
    #[arg(long, value_name = "SNAPSHOT")]
    from: Option<PathBuf>,
    /// Number of threads, overrides run.threads; 0: all cores
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<u32>,
    /// Device, overrides run.device: auto, cpu, cuda or emulated
    #[arg(long)]
    device: Option<String>,
    /// Check the consistency of the hierarchy after every regrid
    #[arg(long)]
    audit: bool,
    /// Print only errors; the log is still written
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    units: UnitsArgs,
    /// Log file; default: run.log in the run's directory
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl RunArgs {
    /// Returns the directory of the run, if it differs from that of the deck. A deck written by a run refers to its own directory, so
    /// that a run may be moved.
    fn directory(&self) -> Option<PathBuf> {
        let deck = &self.deck.deck;
        let own = || match deck.parent() {
            Some(place) if is_own_deck(deck) => match place.as_os_str().is_empty() {
                true => Some(PathBuf::from(".")),
                false => Some(place.to_path_buf()),
            },
            _ => None,
        };
        self.output.clone().or_else(own)
    }

    /// Returns the arguments as overrides of the deck.
    fn changes(&self) -> Vec<String> {
        let threads = self.threads.map(|n| format!("run.threads={n}"));
        let device = self.device.as_ref().map(|d| format!("run.device={d}"));
        let audit = self.audit.then(|| "run.audit=true".to_string());
        // so that run.toml names its own directory
        let output = self.directory();
        let output = output.as_ref().and_then(|path| path.to_str());
        let output = output.map(|path| format!("output.directory={}", toml_text(path)));
        // run.toml is not in the directory of the deck
        let from = self
            .from
            .as_ref()
            .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        let from = from.as_ref().and_then(|path| path.to_str());
        let from = from.map(|path| format!("run.start_from={}", toml_text(path)));
        let keys = [threads, device, audit, output, from];
        keys.into_iter().flatten().collect()
    }
}

/// Quotes a text for TOML.
fn toml_text(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

impl From<RanksError> for CommandError {
    fn from(error: RanksError) -> Self {
        Self::new(FAILED, error)
    }
}

/// Runs a deck on one of the ranks, which are connected by `library`; rank 0 reports. Returns the exit status.
pub fn run(
    app: &App,
    arguments: &RunArgs,
    ranks: &Ranks,
    library: &str,
) -> Result<u8, CommandError> {
    let signals = Signals::install(ranks.is_single() || arguments.ranks.are_several())?;
    let deck = arguments.deck.read(app, &arguments.changes())?;
    let mut sim = app.simulation_on(deck, ranks.clone())?;
    let settings = sim.engine().settings.clone();
    let units = sim.engine().lasting_units();
    let directory = arguments.directory();
    let directory = directory.unwrap_or_else(|| settings.output.directory.into());
    let is_first = ranks.rank() == 0;
    let log = arguments.log.clone();
    let reporter = Reporter::new(ReportOptions {
        quiet: arguments.quiet || !is_first,
        log: is_first.then(|| log.unwrap_or_else(|| directory.join("run.log"))),
        max_steps: settings.time.max_steps,
        time: units.shown("time", arguments.units.units, settings.time.end),
    });
    let head = sim.with(|sim| {
        if is_first {
            restart::expect_stored_particles(sim, arguments.resume.then_some(&*directory));
        }
        head(app, arguments, sim)
    });
    head.iter().for_each(|line| reporter.print(line));
    if !ranks.is_single() {
        let lines = describe_ranks(ranks, library, sim.engine())?;
        lines.iter().for_each(|line| reporter.print(line));
    }
    let options = MonitorOptions {
        output: Some(directory),
        resume: arguments.resume,
        signals,
        continuation: resuming_command(app),
    };
    let result = sim.run_monitored(&reporter, options, describe_times);
    if let Ok(summary) = &result {
        rates::remember(app, &mut sim, summary);
    }
    status(app, result)
}

/// Returns the exit status of a run that has ended.
fn status(app: &App, result: Result<RunSummary, Error>) -> Result<u8, CommandError> {
    let error = match result {
        Ok(summary) => return Ok(if summary.interrupted { INTERRUPTED } else { 0 }),
        Err(error) => error,
    };
    let hint = match &error {
        Error::Memory(shortage) if shortage.resumable => with_more_memory(app, shortage),
        _ => String::new(),
    };
    let mut failure = CommandError::from(error);
    failure.message += &hint;
    Err(failure)
}

/// Returns the first lines of a run: program, device and memory.
fn head(app: &App, arguments: &RunArgs, sim: &mut engine::Engine) -> Vec<String> {
    let patch = memory::patch_bytes(sim);
    let root = patch * memory::root_patches(sim);
    let compute = sim.world.resource::<ComputeDevice>();
    let note = compute.note.as_ref();
    let mut lines = vec![
        format!(
            "{}, deck {}",
            app.signature(),
            arguments.deck.deck.display()
        ),
        format!(
            "device: {}, threads: {}, precision: {}",
            rates::describe_device(compute),
            rayon::current_num_threads(),
            sim.precision()
        ),
        format!(
            "memory: {} for the fields of the root grid ({} patches), {} per additional patch",
            memory::format_bytes(root),
            memory::root_patches(sim),
            memory::format_bytes(patch)
        ),
    ];
    let particles = memory::particle_memory(sim, memory::root_patches(sim) as usize);
    lines.extend(
        particles
            .into_iter()
            .map(|line| format!("memory of {line}")),
    );
    lines.extend(note.map(|why| format!("no GPU is used: {why}")));
    lines.extend(Units::find(sim).iter().flat_map(Units::described));
    lines
}

/// Describes the ranks of a run. Collective.
fn describe_ranks(
    ranks: &Ranks,
    library: &str,
    sim: &engine::Engine,
) -> Result<Vec<String>, RanksError> {
    let compute = sim.world.resource::<ComputeDevice>();
    let device = compute.device.as_ref();
    let placement = ranks.communicator().placement();
    let mut lines = vec![format!(
        "ranks: {}, {} on this host, connected by {library}",
        ranks.size(),
        placement.local_size
    )];
    lines.extend(ranks::shared_gpus(
        ranks,
        device.and_then(|d| d.identity()),
    )?);
    let bound = device.is_none()
        && placement.cores == 1
        && placement.local_size < engine::comm::Placement::host_cores();
    lines.extend(bound.then(|| {
        "warning: each rank is bound to one core; bind ranks to several cores, or to none, to use more threads (docs/cluster.md)".into()
    }));
    Ok(lines)
}

/// Reports the time of each plugin, the load imbalance, corrected cells and device traffic.
fn describe_times(sim: &engine::Engine) -> String {
    let counters = sim.world.resource::<RunCounters>();
    let times = time_fractions(&sim.world.resource::<Activity>().times());
    let mut lines = vec![format!("time by plugin: {times}")];
    let ranks = sim.world.resource::<Ranks>();
    if !ranks.is_single() {
        let imbalance = 100.0 * counters.work.imbalance(ranks.size());
        lines.push(format!(
            "load imbalance: the busiest rank had {imbalance:.1}% more work than the mean, averaged over steps"
        ));
    }
    let (corrected, retried) = (counters.fallback_cells, counters.retried_steps);
    if corrected + retried > 0 {
        lines.push(format!(
            "first-order fluxes used in {corrected} cells; {retried} steps retried with a smaller time step"
        ));
    }
    if let Some(device) = &sim.world.resource::<ComputeDevice>().device {
        let counters = device.counters();
        let [up, down] = [counters.bytes_up, counters.bytes_down].map(memory::format_bytes);
        lines.push(format!(
            "device traffic: {up} to device, {down} to host; {} launches, {} synchronisations",
            counters.launches, counters.synchronisations
        ));
    }
    lines.join("\n")
}

/// Returns the fractions of the time of all plugins, the mesh and the output, largest first.
pub fn time_fractions(times: &[(String, f64)]) -> String {
    let all: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    let mut fractions: Vec<(&str, f64)> = times
        .iter()
        .map(|(name, seconds)| (name.as_str(), 100.0 * seconds / all))
        .filter(|(_, percent)| *percent >= 0.05)
        .collect();
    fractions.sort_by(|a, b| b.1.total_cmp(&a.1));
    let texts = fractions
        .iter()
        .map(|(name, percent)| format!("{name} {percent:.1}%"));
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the command that continues this run.
fn resuming_command(app: &App) -> String {
    let mut words: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".into());
    }
    // nestar is installed; other programs are run from the directory of their build
    let program = match app.name() {
        "nestar" => None,
        _ => std::env::args().next().map(|program| quoted(&program)),
    };
    let program = program.unwrap_or_else(|| app.name().into());
    format!("{program} {}", words.join(" "))
}

/// Returns the command that continues a run after a shortage of memory.
fn with_more_memory(app: &App, shortage: &Shortage) -> String {
    let change = match shortage.limit.source {
        LimitSource::Limit => format!("run.memory_limit={}", shortage.needed.div_ceil(1 << 20)),
        _ => "run.out_of_memory=cap".into(),
    };
    format!(
        ", for example by\n  {} --set {change}",
        resuming_command(app)
    )
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_with_brackets_and_quotes_survive_a_shell() {
        assert_eq!(quoted("time.end=0.1"), "time.end=0.1");
        assert_eq!(
            quoted("mesh.refine[0].threshold=2"),
            "'mesh.refine[0].threshold=2'"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
