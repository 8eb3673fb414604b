//! `nestar plan`: what a run on many ranks would be like, counted on one.

mod json;
mod text;

use super::{DeckArgs, FAILED, Failure, WRONG, memory, print, say, snapshot};
use clap::Args;
use nestar::Simulation;
use nestar::engine;
use nestar::engine::Error;
use nestar::engine::field::{FieldOperations, FieldRegistry};
use nestar::engine::mesh::Topology;
use nestar::engine::ranks::forecast::{self, Forecast, Machine, Sizes};
use nestar::snapshot::{LEAF, ORIGIN, Snapshot, SnapshotError, Values};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Most ranks that are planned for.
const MOST_RANKS: i64 = 1 << 17;
/// Bytes of a row in the tables of the topology, and of the rank that owns it.
const TABLES: u64 = 180;
/// Values of a flux through a face of a fine patch: the first one and its change, 4 x 4 places each.
const FACE: u64 = 2 * 4 * 4;
/// Wall time after which progress is told.
const PATIENCE: Duration = Duration::from_secs(2);

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
    topology: Topology,
    /// Where the hierarchy comes from.
    origin: String,
    sizes: Sizes,
    machine: Machine,
    layers: u32,
}

/// Plans for all numbers of ranks.
pub fn plan(arguments: &PlanArgs) -> Result<(), Failure> {
    let subject = subject(arguments)?;
    let mut told = Instant::now();
    let mut forecasts = Vec::with_capacity(arguments.ranks.len());
    for &ranks in &arguments.ranks {
        if told.elapsed() >= PATIENCE {
            say(&format!("counts for {ranks} ranks …"));
            told = Instant::now();
        }
        forecasts.push(Forecast::new(
            &subject.topology,
            ranks as usize,
            subject.layers,
        ));
    }
    let quiet = arguments
        .json
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    if !quiet {
        print(&text::report(&subject, &forecasts))?;
    }
    let Some(path) = &arguments.json else {
        return Ok(());
    };
    let text = format!("{:#}\n", json::document(&subject, &forecasts));
    if quiet {
        return print(&text);
    }
    std::fs::write(path, text)
        .map_err(|e| Failure::new(FAILED, format!("cannot write {}: {e}", path.display())))
}

fn subject(arguments: &PlanArgs) -> Result<Subject, Failure> {
    // no field is computed with: a device would only be in the way
    let deck = arguments.deck.read(&["run.device=cpu".into()])?;
    let mut sim = Simulation::new(deck)?;
    let sizes = sizes(sim.engine());
    let layers = arguments.layers.unwrap_or_else(|| layers(sim.engine()));
    let (topology, origin) = match &arguments.snapshot {
        None => {
            say("builds the initial hierarchy …");
            let built = sim.with(|sim| {
                sim.initialise()?;
                sim.world
                    .remove_resource::<Topology>()
                    .ok_or_else(|| Error::Setup("there is no hierarchy".into()))
            });
            (built?, "initial hierarchy".to_string())
        }
        Some(path) => {
            let snapshot = snapshot::open(path)?;
            let topology = stored(sim.engine(), &snapshot)?;
            (
                topology,
                format!("hierarchy of {}", snapshot.path().display()),
            )
        }
    };
    let machine = Machine {
        rate: arguments.device_rate,
        latency: 1e-6 * arguments.latency,
        bandwidth: 1e9 * arguments.network,
    };
    Ok(Subject {
        topology,
        origin,
        sizes,
        machine,
        layers,
    })
}

fn sizes(sim: &engine::Simulation) -> Sizes {
    let patch = memory::patch_bytes(sim);
    let fields = sim.world.resource::<FieldRegistry>().operations();
    let bytes = |field: &FieldOperations| (field.cell_bytes)(&sim.world);
    let cell: usize = fields.iter().map(bytes).sum();
    let layered = fields
        .iter()
        .filter(|field| field.settles_in_step.is_some());
    Sizes {
        row: (cell * engine::mesh::CELLS) as u64,
        layered: layered.map(bytes).sum::<usize>() as u64,
        face: FACE * cell as u64,
        held: patch + TABLES,
    }
}

/// Layers of ghost cells that steps read of the copies that settle in them.
fn layers(sim: &engine::Simulation) -> u32 {
    let fields = sim.world.resource::<FieldRegistry>().operations();
    let ghosts = fields.iter().filter_map(|field| field.settles_in_step);
    ghosts.max().unwrap_or(0) as u32
}

/// The hierarchy of a snapshot, from its arrays of places and leaves alone.
fn stored(sim: &engine::Simulation, snapshot: &Snapshot) -> Result<Topology, Failure> {
    let domain = sim.world.resource::<Topology>().domain;
    let path = snapshot.path();
    let cells = domain.cells(0).map(|n| n as u64);
    if snapshot.attributes().root_cells != cells {
        let found = snapshot.attributes().root_cells;
        let message = format!(
            "{}: the root grid has {found:?} cells, that of the deck {cells:?}",
            path.display()
        );
        return Err(Failure::new(WRONG, message));
    }
    let levels = snapshot.levels().len();
    let mut topology = forecast::outline(domain, levels.max(sim.levels()) - 1);
    for level in 0..levels {
        let damaged =
            |why: &str| Failure::new(FAILED, format!("{}: level {level}: {why}", path.display()));
        let leaf = leaves(snapshot, &topology, level)?;
        let leaf = leaf
            .ok_or_else(|| damaged("the patches are not those that the coarser levels announce"))?;
        forecast::refine(&mut topology, level, &leaf).map_err(|why| damaged(&why))?;
    }
    Ok(topology)
}

/// Which patches of a level are leaves, unless the patches stored are other ones than those of `topology`.
fn leaves(
    snapshot: &Snapshot,
    topology: &Topology,
    level: usize,
) -> Result<Option<Vec<bool>>, SnapshotError> {
    let origins = snapshot.read(level as u8, ORIGIN)?;
    let leaf = snapshot.read(level as u8, LEAF)?;
    let (Values::I32(origins), Values::U8(leaf)) = (origins, leaf) else {
        return Ok(None);
    };
    let places = topology
        .rows(level)
        .iter()
        .flat_map(|&row| topology.origin(row));
    Ok(places
        .eq(origins)
        .then(|| leaf.iter().map(|&leaf| leaf != 0).collect()))
}

fn number(text: &str, fits: impl Fn(f64) -> bool, range: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if fits(value) && value.is_finite() {
        Ok(value)
    } else {
        Err(format!("must be {range}"))
    }
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0, "above 0")
}

fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |value| value >= 0.0, "at least 0")
}

/// A figure over all ranks.
#[derive(Clone, Copy)]
struct Spread {
    least: f64,
    mean: f64,
    most: f64,
}

impl Spread {
    fn of(ranks: usize, figure: impl Fn(usize) -> u64) -> Self {
        let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
        for value in (0..ranks).map(figure) {
            least = least.min(value);
            most = most.max(value);
            sum += value;
        }
        Self {
            least: least as f64,
            mean: sum as f64 / ranks as f64,
            most: most as f64,
        }
    }

    /// The largest over the mean; `None` where there is nothing.
    fn imbalance(self) -> Option<f64> {
        (self.mean > 0.0).then(|| self.most / self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, positive};

    #[test]
    fn a_spread_tells_the_imbalance() {
        let spread = Spread::of(4, |rank| [1, 2, 3, 6][rank]);
        assert_eq!((spread.least, spread.mean, spread.most), (1.0, 3.0, 6.0));
        assert_eq!(spread.imbalance(), Some(2.0));
        assert_eq!(Spread::of(2, |_| 0).imbalance(), None);
    }

    #[test]
    fn rates_are_above_nought() {
        assert_eq!(positive("5e9"), Ok(5e9));
        for wrong in ["0", "-1", "inf", "nan", "fast"] {
            assert!(positive(wrong).is_err(), "{wrong}");
        }
    }
}
