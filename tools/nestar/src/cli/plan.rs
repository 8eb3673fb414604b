//! `nestar plan`: what a run on many ranks would be like, its parts built on one.

mod figures;
mod text;

use super::{
    DeckArgs, FAILED, Failure, WRONG, now_and_then, number, patches_found, positive, print,
    snapshot,
};
use clap::Args;
use nestar::engine::mesh::Topology;
use nestar::engine::ranks::forecast::{Forecast, Machine, Outline, Sizes};
use nestar::engine::{self, step::memory};
use nestar::snapshot::{LEAF, ORIGIN, Snapshot, Values};
use nestar::{App, Simulation};
use std::path::PathBuf;

/// Most ranks that are planned for.
const MOST_RANKS: i64 = 1 << 17;
/// Rows of which the memory is taken, to be shared by them: as many as pools have no rest with.
const MANY_ROWS: usize = 1 << 20;

/// What to plan.
#[derive(Args)]
pub struct PlanArgs {
    #[command(flatten)]
    deck: DeckArgs,
    /// Numbers of ranks
    #[arg(long, required = true, value_delimiter = ',', value_name = "N[,N…]",
          value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    ranks: Vec<u32>,
    /// Take the hierarchy of a snapshot (NNNNNN.zarr, or the directory of a run) in place of the initial one; no field is read
    #[arg(long, value_name = "PATH")]
    snapshot: Option<PathBuf>,
    /// Network into a rank, and out of it, GB/s
    #[arg(long, value_name = "GB/S", default_value_t = 25.0, value_parser = positive)]
    network: f64,
    /// Time that a message takes before its first byte, microseconds
    #[arg(long, value_name = "US", default_value_t = 5.0, value_parser = not_negative)]
    latency: f64,
    /// Cells that a rank updates in a second: measure yours with `nestar bench`
    #[arg(long, value_name = "CELLS/S", default_value_t = 5e9, value_parser = positive)]
    device_rate: f64,
    /// Layers of ghost cells that steps read; left out, those of the deck's scheme
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u32).range(1..=8))]
    layers: Option<u32>,
    /// Write the figures of every rank as JSON; `-`: print them in place of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What all numbers of ranks have in common.
struct Subject {
    outline: Outline,
    /// Where the hierarchy comes from.
    origin: String,
    sizes: Sizes,
    /// Bytes of memory of a row that is held.
    held: u64,
    machine: Machine,
    layers: usize,
    /// The items that a run begins with, a line for each kind: what forecasts leave out.
    left_out: Vec<String>,
}

/// Plans for all numbers of ranks.
pub fn plan(app: &App, arguments: &PlanArgs) -> Result<(), Failure> {
    let subject = subject(app, arguments)?;
    let mut tell = now_and_then(|ranks| format!("builds the parts of {ranks} ranks …"));
    let forecast = |&ranks: &u32| {
        tell(ranks as usize);
        Forecast::new(&subject.outline, ranks as usize, subject.layers)
    };
    let forecasts: Vec<Forecast> = arguments.ranks.iter().map(forecast).collect();
    let json = arguments.json.as_ref();
    let quiet = json.is_some_and(|path| path.as_os_str() == "-");
    if !quiet {
        print(&text::report(&subject, &forecasts))?;
    }
    let Some(path) = json else {
        return Ok(());
    };
    let text = format!("{:#}\n", figures::document(app, &subject, &forecasts));
    if quiet {
        return print(&text);
    }
    std::fs::write(path, text)
        .map_err(|e| Failure::new(FAILED, format!("cannot write {}: {e}", path.display())))
}

fn subject(app: &App, arguments: &PlanArgs) -> Result<Subject, Failure> {
    // no field is computed with: a device would only be in the way
    let deck = arguments.deck.read(app, &["run.device=cpu".into()])?;
    let mut sim = app.simulation(deck)?;
    let world = &sim.engine().world;
    let (sizes, layers) = Sizes::of(world);
    let held = memory::of_fields(world, MANY_ROWS) / MANY_ROWS as u64;
    let (outline, origin) = match &arguments.snapshot {
        None => (initial(&mut sim)?, "initial hierarchy".to_string()),
        Some(path) => {
            let snapshot = snapshot::open(path)?;
            let origin = format!("hierarchy of {}", snapshot.path().display());
            (stored(sim.engine(), &snapshot)?, origin)
        }
    };
    let patches = (0..outline.levels()).map(|level| outline.patches(level));
    let left_out = super::memory::items(sim.engine(), patches.sum());
    Ok(Subject {
        left_out,
        outline,
        origin,
        sizes,
        held,
        machine: Machine {
            rate: arguments.device_rate,
            latency: 1e-6 * arguments.latency,
            bandwidth: 1e9 * arguments.network,
        },
        layers: arguments.layers.map_or(layers, |layers| layers as usize),
    })
}

/// The hierarchy that a run begins with.
fn initial(sim: &mut Simulation) -> Result<Outline, Failure> {
    if sim.engine().levels() == 1 {
        // the root grid is what it is, whatever the state
        let domain = sim.engine().world.resource::<Topology>().domain;
        return Ok(Outline::new(domain));
    }
    sim.with(|sim| sim.foresee(now_and_then(patches_found)))?;
    Ok(Outline::of(sim.engine().world.resource::<Topology>()))
}

/// The hierarchy of a snapshot, from its arrays of places and leaves alone.
fn stored(sim: &engine::Engine, snapshot: &Snapshot) -> Result<Outline, Failure> {
    let domain = sim.world.resource::<Topology>().domain;
    let path = snapshot.path().display();
    let cells = domain.cells(0).map(|n| n as u64);
    let found = snapshot.attributes().root_cells;
    if found != cells {
        let message =
            format!("{path}: the root grid has {found:?} cells, that of the deck {cells:?}");
        return Err(Failure::new(WRONG, message));
    }
    let mut outline = Outline::new(domain);
    for level in 0..snapshot.levels().len() {
        let read = |name| snapshot.read(level as u8, name);
        let damaged = |why: &str| Failure::new(FAILED, format!("{path}: level {level}: {why}"));
        let (Values::I32(origins), Values::U8(leaf)) = (read(ORIGIN)?, read(LEAF)?) else {
            return Err(damaged("`origin` or `leaf` has a wrong type"));
        };
        let origins = origins.as_chunks().0.iter().copied();
        let patches: Vec<_> = origins.zip(leaf.iter().map(|&leaf| leaf != 0)).collect();
        outline.refine(&patches).map_err(|why| damaged(&why))?;
    }
    Ok(outline)
}

fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |value| value >= 0.0, "at least 0")
}
