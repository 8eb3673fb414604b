//! `nestar bench`: measures the speed of this machine (CPU or GPU) with complete simulations.

mod cases;
mod json;
mod kernels;
mod measure;
mod text;

use super::ranks::RanksArgs;
use super::{CommandError, FAILED, print, print_message};
use cases::{Case, DeviceClass};
use clap::{Args, ValueEnum};
use measure::{BenchPlan, Measurement};
use nestar::engine::comm::Ranks;
use nestar::engine::data::Precision;
use nestar::engine::device::ComputeDevice;
use nestar::engine::step::config::{DomainConfig, RunConfig};
use nestar::{App, Error, Simulation};
use nestar_deck::Deck;
use std::path::PathBuf;

/// Arguments of `nestar bench`.
#[derive(Args)]
pub struct BenchArgs {
    /// Cases; default: all
    #[arg(value_enum, value_name = "CASE")]
    cases: Vec<Case>,
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Device: auto, cpu, cuda or emulated
    #[arg(long, default_value = "auto")]
    device: String,
    /// Precision of the fields
    #[arg(long, value_enum, default_value_t = Precisions::Both)]
    precision: Precisions,
    /// Root cells along each axis, a multiple of 8; default: depends on case and device
    #[arg(long, value_name = "N", value_parser = cells)]
    cells: Option<u32>,
    /// Number of timed root steps; default: depends on case and device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Number of threads; 0: all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: u32,
    /// Set a value in the decks of all cases; may be repeated
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
    /// Also time every device kernel, in a second series of steps
    #[arg(long)]
    profile: bool,
    /// Write results as JSON to a file; `-`: print JSON instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Precisions to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precisions {
    /// 32 bits
    Single,
    /// 64 bits
    Double,
    /// Both, one after the other
    Both,
}

impl Precisions {
    fn list(self) -> &'static [Precision] {
        match self {
            Self::Single => &[Precision::Single],
            Self::Double => &[Precision::Double],
            Self::Both => &[Precision::Single, Precision::Double],
        }
    }
}

/// Parses a number of root cells.
fn cells(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if (8..=65536).contains(&n) && n % 8 == 0 => Ok(n),
        _ => Err("must be a multiple of 8 between 8 and 65536".into()),
    }
}

/// Measures the requested cases on one of the ranks, which are connected by `library`; rank 0 reports.
pub fn bench(
    app: &App,
    arguments: &BenchArgs,
    ranks: &Ranks,
    library: &str,
) -> Result<(), CommandError> {
    let plans = plans(app, arguments, ranks)?;
    let speaks = ranks.rank() == 0;
    let to_standard_output = |path: &PathBuf| path.as_os_str() == "-";
    let quiet = !speaks || arguments.json.as_ref().is_some_and(to_standard_output);
    let mut measurements = Vec::with_capacity(plans.len());
    for plan in &plans {
        if speaks {
            print_message(&format!("measuring {plan} …"));
        }
        let measured = match plan.measure(app, ranks, library) {
            // a default size that does not fit is skipped
            Err(error @ Error::Memory(_)) if arguments.cells.is_none() && plans.len() > 1 => {
                if speaks {
                    print_message(&format!("skipped: {}", refused(plan, error).message));
                }
                continue;
            }
            measured => measured.map_err(|error| refused(plan, error))?,
        };
        if measurements.is_empty() && !quiet {
            print(&text::head(app, &measured.machine))?;
        }
        if !quiet {
            print(&text::block(&measured))?;
        }
        measurements.push(measured);
    }
    if measurements.is_empty() {
        return Err(CommandError::new(FAILED, "nothing was measured"));
    }
    if !quiet {
        print(&text::table(&measurements))?;
    }
    match speaks {
        true => write_json(app, arguments, &measurements),
        false => Ok(()),
    }
}

/// Returns the error of a case that cannot be measured, with a hint.
fn refused(plan: &BenchPlan, error: Error) -> CommandError {
    let hint = match error {
        Error::Memory(_) => "\nuse fewer --cells, or --precision single",
        _ => "",
    };
    let mut failure = CommandError::from(error);
    failure.message = format!("{plan}: {}{hint}", failure.message);
    failure
}

fn write_json(
    app: &App,
    arguments: &BenchArgs,
    measurements: &[Measurement],
) -> Result<(), CommandError> {
    let Some(path) = &arguments.json else {
        return Ok(());
    };
    let text = format!("{:#}\n", json::document(app, measurements));
    if path.as_os_str() == "-" {
        return print(&text);
    }
    std::fs::write(path, text)
        .map_err(|e| CommandError::new(FAILED, format!("cannot write {}: {e}", path.display())))
}

/// Lists all cases with all requested sizes and precisions; checks all decks before the first measurement.
fn plans(app: &App, arguments: &BenchArgs, ranks: &Ranks) -> Result<Vec<BenchPlan>, CommandError> {
    let cases = match arguments.cases.is_empty() {
        true => Case::value_variants(),
        false => &arguments.cases[..],
    };
    let kind = kind(arguments, cases[0], ranks)?;
    let mut plans = Vec::new();
    for &case in cases {
        let sizes = match &arguments.cells {
            Some(n) => std::slice::from_ref(n),
            None => case.sizes(kind),
        };
        for &cells in sizes {
            for &precision in arguments.precision.list() {
                let deck = deck(arguments, case, cells, precision, case.settings(kind))?;
                app.check(&deck)?;
                plans.push(BenchPlan {
                    case,
                    cells: deck.clone().table::<DomainConfig>("domain")?.cells,
                    precision,
                    deck,
                    warm_up: case.warm_up(),
                    steps: arguments.steps.unwrap_or_else(|| case.steps(kind)),
                    profile: arguments.profile,
                });
            }
        }
    }
    Ok(plans)
}

/// Returns the class of the selected device.
fn kind(arguments: &BenchArgs, case: Case, ranks: &Ranks) -> Result<DeviceClass, CommandError> {
    let mut deck = deck(arguments, case, 8, Precision::Single, &[])?;
    let run: RunConfig = deck.table("run")?;
    let placement = ranks.communicator().placement();
    let chosen = ComputeDevice::choose(run.device, placement.local_rank).map_err(|error| {
        let mut failure = CommandError::from(Error::from(error));
        failure.message += "\nto measure the CPU, use --device cpu";
        failure
    })?;
    Ok(chosen
        .device
        .map_or(DeviceClass::Cpu, |d| DeviceClass::of(d.kind())))
}

/// Returns the deck of a case with `settings` and those of the arguments.
fn deck(
    arguments: &BenchArgs,
    case: Case,
    cells: u32,
    precision: Precision,
    settings: &[&str],
) -> Result<Deck, CommandError> {
    let mut deck = Deck::parse(case.name(), case.text())?;
    let precision = cases::precision(precision);
    let own = [
        format!("domain.cells=[{cells}, {cells}, {cells}]"),
        format!("run.precision={precision}"),
        format!("run.device={}", arguments.device),
        format!("run.threads={}", arguments.threads),
    ];
    let given = own.iter().chain(&arguments.overrides).map(String::as_str);
    for change in settings.iter().copied().chain(given) {
        deck.set(change)?;
    }
    Ok(deck)
}

/// Creates one rank's part of the simulation, with its initial state.
fn initial(app: &App, deck: &Deck, ranks: &Ranks) -> Result<Simulation, Error> {
    let mut sim = app.simulation_on(deck.clone(), ranks.clone())?;
    sim.with(|sim| sim.finish_setup().and_then(|()| sim.initialise()))?;
    Ok(sim)
}
