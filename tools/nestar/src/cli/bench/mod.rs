//! `nestar bench`: how fast this machine is, CPU or GPU, measured on whole programs in their steady state.

mod cases;
mod json;
mod kernels;
mod measure;
mod text;

use super::ranks::RanksArgs;
use super::{CommandError, FAILED, print, say};
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

/// What to measure.
#[derive(Args)]
pub struct BenchArgs {
    /// Cases; all of them if none is named
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
    /// Cells of the root grid along each axis, a multiple of 8; otherwise what suits case and device
    #[arg(long, value_name = "N", value_parser = cells)]
    cells: Option<u32>,
    /// Root steps that are timed; otherwise what suits case and device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Threads; 0: all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: u32,
    /// Replace a value of the cases' decks; may be given several times
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE")]
    overrides: Vec<String>,
    /// Also time every kernel of the device, in as many steps again
    #[arg(long)]
    profile: bool,
    /// Write the figures as JSON; `-`: print them in place of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Which precisions are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precisions {
    /// 32 bits
    Single,
    /// 64 bits
    Double,
    /// One after the other
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

/// Cells along an axis.
fn cells(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if (8..=65536).contains(&n) && n % 8 == 0 => Ok(n),
        _ => Err("it must be a multiple of 8 from 8 to 65536".into()),
    }
}

/// Measures the cases asked for as one of the ranks, which `library` connects; the first one tells.
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
            say(&format!("measures {plan} …"));
        }
        let measured = match plan.measure(app, ranks, library) {
            // a size that nobody asked for is no reason to go without the others
            Err(error @ Error::Memory(_)) if arguments.cells.is_none() && plans.len() > 1 => {
                if speaks {
                    say(&format!("left out: {}", refused(plan, error).message));
                }
                continue;
            }
            measured => measured.map_err(|error| refused(plan, error))?,
        };
        if measurements.is_empty() && !quiet {
            print(&text::head(app, &measured.place))?;
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

/// A case that cannot be measured, and which option helps.
fn refused(plan: &BenchPlan, error: Error) -> CommandError {
    let hint = match error {
        Error::Memory(_) => "\nfor a benchmark: --cells with fewer cells, or --precision single",
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

/// Every case with every size and precision asked for. The decks are checked before anything is measured.
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
                let deck = deck(arguments, case, cells, precision)?;
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

/// The kind of device that the arguments lead to.
fn kind(arguments: &BenchArgs, case: Case, ranks: &Ranks) -> Result<DeviceClass, CommandError> {
    let mut deck = deck(arguments, case, 8, Precision::Single)?;
    let run: RunConfig = deck.table("run")?;
    let placement = ranks.communicator().placement();
    let chosen = ComputeDevice::choose(run.device, placement.local_rank).map_err(|error| {
        let mut failure = CommandError::from(Error::from(error));
        failure.message += "\nto measure the CPU: --device cpu";
        failure
    })?;
    Ok(chosen
        .device
        .map_or(DeviceClass::Cpu, |d| DeviceClass::of(d.kind())))
}

/// The deck of a case as the arguments want it.
fn deck(
    arguments: &BenchArgs,
    case: Case,
    cells: u32,
    precision: Precision,
) -> Result<Deck, CommandError> {
    let mut deck = Deck::parse(case.name(), case.text())?;
    let precision = cases::precision(precision);
    let own = [
        format!("domain.cells=[{cells}, {cells}, {cells}]"),
        format!("run.precision={precision}"),
        format!("run.device={}", arguments.device),
        format!("run.threads={}", arguments.threads),
    ];
    for change in own.iter().chain(&arguments.overrides) {
        deck.set(change)?;
    }
    Ok(deck)
}

/// One rank's part of the simulation of a plan, with its initial state.
fn initial(app: &App, deck: &Deck, ranks: &Ranks) -> Result<Simulation, Error> {
    let mut sim = app.simulation_on(deck.clone(), ranks.clone())?;
    sim.with(|sim| sim.finish_setup().and_then(|()| sim.initialise()))?;
    Ok(sim)
}
