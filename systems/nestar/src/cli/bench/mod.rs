//! `nestar bench`: measures the speed of this machine (CPU or GPU) with complete simulations.

mod json;
mod measure;
mod text;

use super::ranks::RanksArgs;
use super::{CommandError, FAILED, is_standard_output, print, print_message, write_json};
use clap::{Args, ValueEnum};
use measure::BenchPlan;
use nestar::engine::comm::Ranks;
use nestar::engine::data::Precision;
use nestar::engine::device::{ComputeDevice, DeviceKind};
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
    let quiet = !speaks || arguments.json.as_deref().is_some_and(is_standard_output);
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
    match &arguments.json {
        Some(path) if speaks => write_json(path, &json::document(app, &measurements)),
        _ => Ok(()),
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

/// A benchmark case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    /// Blast wave on a uniform mesh
    Uniform,
    /// Blast wave with three levels of refinement that follow the shock
    Blast,
    /// Blast wave in a magnetic field with three levels of refinement
    Magnetic,
    /// Two shear layers with three levels of refinement
    KelvinHelmholtz,
    /// Self-gravitating collapse of a cloud with four levels of refinement
    Collapse,
    /// Self-gravitating particles on a uniform mesh, in frozen gas
    Particles,
    /// Plummer sphere of particles in an open box, partitioned by load
    Plummer,
    /// Gas of many densities and temperatures with tabulated cooling
    Cooling,
    /// The same with 6 species out of equilibrium, sub-cycled in each cell
    Chemistry,
    /// Gas, self-gravity, a million particles (a GPU) and tabulated cooling, with three levels that follow moving clouds
    Joint,
}

/// Class of device that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceClass {
    /// CPU.
    Cpu,
    /// GPU.
    Gpu,
    /// GPU kernels emulated on the CPU, for tests.
    Emulated,
}

impl DeviceClass {
    /// Returns the class of a device.
    pub fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cuda => Self::Gpu,
            DeviceKind::Emulated => Self::Emulated,
        }
    }
}

impl Case {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Blast => "blast",
            Self::Magnetic => "magnetic",
            Self::KelvinHelmholtz => "kelvin-helmholtz",
            Self::Collapse => "collapse",
            Self::Particles => "particles",
            Self::Plummer => "plummer",
            Self::Cooling => "cooling",
            Self::Chemistry => "chemistry",
            Self::Joint => "joint",
        }
    }

    /// Returns the text of the deck.
    pub fn text(self) -> &'static str {
        match self {
            Self::Uniform => include_str!("../../../bench/uniform.toml"),
            Self::Blast => include_str!("../../../bench/blast.toml"),
            Self::Magnetic => include_str!("../../../bench/magnetic.toml"),
            Self::KelvinHelmholtz => include_str!("../../../bench/kelvin-helmholtz.toml"),
            Self::Collapse => include_str!("../../../bench/collapse.toml"),
            Self::Particles => include_str!("../../../bench/particles.toml"),
            Self::Plummer => include_str!("../../../bench/plummer.toml"),
            Self::Cooling => include_str!("../../../bench/cooling.toml"),
            Self::Chemistry => include_str!("../../../bench/chemistry.toml"),
            Self::Joint => include_str!("../../../bench/joint.toml"),
        }
    }

    /// Returns the numbers of root cells per axis. Those of a GPU keep it busy.
    pub fn sizes(self, kind: DeviceClass) -> &'static [u32] {
        match (self, kind) {
            (Self::Uniform, DeviceClass::Cpu) => &[64, 128],
            (Self::Uniform, DeviceClass::Gpu) => &[256, 512],
            (Self::Uniform, DeviceClass::Emulated) => &[32],
            (Self::Collapse, DeviceClass::Gpu) => &[64],
            (
                Self::Particles | Self::Plummer | Self::Cooling | Self::Chemistry,
                DeviceClass::Cpu,
            ) => &[64],
            (Self::Blast | Self::Magnetic | Self::KelvinHelmholtz, DeviceClass::Gpu) => &[128],
            (_, DeviceClass::Gpu) => &[256],
            (Self::Blast | Self::Magnetic, DeviceClass::Cpu) => &[32],
            _ => &[16],
        }
    }

    /// Returns the settings of the deck that depend on the device: the number of particles.
    pub fn settings(self, kind: DeviceClass) -> &'static [&'static str] {
        match (self, kind) {
            (Self::Particles, DeviceClass::Gpu) => &["constants.n=256"],
            (Self::Plummer, DeviceClass::Gpu) => &["constants.n=2e7"],
            (Self::Joint, DeviceClass::Cpu | DeviceClass::Emulated) => &["constants.n=32"],
            _ => &[],
        }
    }

    /// Returns the number of untimed root steps, which touch memory, fill caches and regrid every level.
    pub fn warm_up(self) -> u64 {
        match self {
            Self::Uniform => 2,
            // the gas approaches equilibrium with time
            Self::Cooling | Self::Chemistry => 1,
            _ => 4,
        }
    }

    /// Returns the number of timed root steps; with refinement, a multiple of the regrid interval of four.
    pub fn steps(self, kind: DeviceClass) -> u64 {
        match (self, kind) {
            (Self::Uniform, DeviceClass::Gpu) => 50,
            (Self::Uniform, DeviceClass::Cpu) => 10,
            (Self::Collapse, DeviceClass::Gpu | DeviceClass::Cpu) => 4,
            (Self::Cooling | Self::Chemistry, DeviceClass::Gpu | DeviceClass::Cpu) => 2,
            (_, DeviceClass::Gpu) => 16,
            (_, DeviceClass::Cpu) => 8,
            (_, DeviceClass::Emulated) => 4,
        }
    }
}

/// Formats the size of a root grid.
fn root(cells: [u32; 3]) -> String {
    let [x, y, z] = cells;
    if x == y && y == z {
        format!("{x}^3")
    } else {
        format!("{x}x{y}x{z}")
    }
}
