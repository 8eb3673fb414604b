//! `nestar plan`: predicts a run on many ranks by building their parts on one.

mod json;
mod text;

use super::estimate::{Rate, steps_in_a_root_step};
use super::rates::{self, RunSize};
use super::{
    CommandError, DeckArgs, FAILED, INVALID_INPUT, is_standard_output, number, patches_found,
    positive, print, snapshot, throttled, write_json,
};
use clap::Args;
use nestar::engine::Engine;
use nestar::engine::comm::estimate::{
    DataSizes, MachineModel, PartitionEstimate, RootStep, TreeOutline,
};
use nestar::engine::data::{ParticleKinds, ParticleSet};
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::step::memory;
use nestar::engine::step::memory::{StoredParticles, particle_demand};
use nestar::snapshot::{LEAF, ORIGIN, Snapshot, Values};
use nestar::{App, Simulation, engine};
use std::path::PathBuf;

/// Maximum number of ranks.
const MOST_RANKS: i64 = 1 << 17;
/// Speed of a rank if none is known, that of a large GPU, cells/s.
const ASSUMED_RATE: f64 = 5e9;
/// Number of rows used to compute the average memory per row.
const MANY_ROWS: usize = 1 << 20;

/// Arguments of `nestar plan`.
#[derive(Args)]
pub struct PlanArgs {
    #[command(flatten)]
    deck: DeckArgs,
    /// Numbers of ranks to plan for
    #[arg(long, required = true, value_delimiter = ',', value_name = "N[,N…]",
          value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    ranks: Vec<u32>,
    /// Use the hierarchy of a snapshot (NNNNNN.zarr, or the directory of a run) instead of the initial one; reads no fields
    #[arg(long, value_name = "PATH")]
    snapshot: Option<PathBuf>,
    /// Network bandwidth per rank and direction, GB/s
    #[arg(long, value_name = "GB/S", default_value_t = 25.0, value_parser = positive)]
    network: f64,
    /// Network latency, microseconds
    #[arg(long, value_name = "US", default_value_t = 5.0, value_parser = not_negative)]
    latency: f64,
    /// Fixed overhead of a level step on several ranks, microseconds
    #[arg(long, value_name = "US", default_value_t = 100.0, value_parser = not_negative)]
    step: f64,
    /// Fixed time of an exchange that is not overlapped, such as those of the multigrid solver, microseconds
    #[arg(long, value_name = "US", default_value_t = 35.0, value_parser = not_negative)]
    exchange: f64,
    /// Total bandwidth through host memory of all ranks, for Fourier transforms of self-gravity on the root level, GB/s
    #[arg(long, value_name = "GB/S", default_value_t = 8.0, value_parser = positive)]
    host: f64,
    /// Overhead of a regrid on several ranks per halo patch of the two levels, microseconds; 0: static hierarchy
    #[arg(long, value_name = "US", default_value_t = 3.0, value_parser = not_negative)]
    regrid: f64,
    /// Speed of a rank, including particles; default: that of earlier runs on the device of the deck, or measured once in half a second
    #[arg(long, value_name = "CELLS/S", value_parser = positive)]
    device_rate: Option<f64>,
    /// Take the speed of earlier runs on a device whose name contains this text, for instance H200
    #[arg(long, value_name = "DEVICE", conflicts_with = "device_rate")]
    measured_on: Option<String>,
    /// Layers of ghost cells that a step reads; default: those of the deck's scheme
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u32).range(1..=8))]
    layers: Option<u32>,
    /// Write the results for every rank as JSON to a file; `-`: print JSON instead of text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Input of the prediction, common to all numbers of ranks.
struct PlanInput {
    outline: TreeOutline,
    /// Origin of the hierarchy, for messages.
    origin: String,
    sizes: DataSizes,
    /// Memory of a row in bytes.
    row_bytes: u64,
    machine: MachineModel,
    /// Origin of the speed of a rank, for messages.
    rate_from: String,
    layers: usize,
    root_step: RootStep,
    /// Origin of the numbers of steps, for messages.
    steps_from: &'static str,
    particles: ParticleForecast,
}

impl PlanInput {
    /// Returns the memory of the patches and particles of a rank in bytes.
    fn memory(&self, estimate: &PartitionEstimate, rank: usize) -> u64 {
        let particles = estimate.items(rank) as f64 * self.particles.bytes;
        estimate.stored_rows(rank) * self.row_bytes + particles as u64
    }
}

/// Prints the predictions for all numbers of ranks.
pub fn plan(app: &App, arguments: &PlanArgs) -> Result<(), CommandError> {
    let subject = subject(app, arguments)?;
    let mut progress = throttled(|ranks| format!("building the parts of {ranks} ranks …"));
    let estimate = |&ranks: &u32| {
        progress(ranks as usize);
        let estimate = PartitionEstimate::new(&subject.outline, ranks as usize, subject.layers);
        estimate.with_root_step(subject.root_step.clone())
    };
    let estimates: Vec<PartitionEstimate> = arguments.ranks.iter().map(estimate).collect();
    if !arguments.json.as_deref().is_some_and(is_standard_output) {
        print(&text::report(&subject, &estimates))?;
    }
    match &arguments.json {
        Some(path) => write_json(path, &json::document(app, &subject, &estimates)),
        None => Ok(()),
    }
}

fn subject(app: &App, arguments: &PlanArgs) -> Result<PlanInput, CommandError> {
    // no fields are computed, so no device is needed
    let deck = arguments.deck.read(app, &["run.device=cpu".into()])?;
    let mut sim = app.simulation(deck)?;
    let world = &sim.engine().world;
    let (sizes, layers) = DataSizes::of(world);
    let row_bytes = memory::field_bytes(world, MANY_ROWS) / MANY_ROWS as u64;
    let (mut outline, origin, (steps, steps_from)) = match &arguments.snapshot {
        None => {
            let (outline, steps) = initial(&mut sim)?;
            let from = "as allowed by the initial state";
            (outline, "initial hierarchy".to_string(), (steps, from))
        }
        Some(path) => {
            let snapshot = snapshot::open(path)?;
            let origin = format!("hierarchy of {}", snapshot.path().display());
            let outline = stored(sim.engine(), &snapshot)?;
            (outline, origin, (latest(&snapshot), "as in the snapshot"))
        }
    };
    let particles = match &arguments.snapshot {
        None => expected_particles(sim.engine(), &mut outline),
        Some(path) => stored_particles(sim.engine(), &snapshot::open(path)?, &mut outline)?,
    };
    let patches = (0..outline.levels()).map(|level| outline.patches(level));
    let patches: Vec<usize> = patches.collect();
    let intervals = sim.engine().settings.mesh.regrid_interval.clone();
    let may_change = sim.engine().levels() - 1;
    let intervals = &intervals[..may_change.min(intervals.len())];
    let least = arguments.ranks.iter().copied().min().unwrap_or(1);
    let size = RunSize {
        cells: (patches.iter().sum::<usize>() * CELLS) as u64 / u64::from(least),
        levels: patches.len(),
    };
    let rate = rate(app, arguments, &mut sim, size)?;
    Ok(PlanInput {
        root_step: RootStep::of(&sim.engine().world, &patches, steps, intervals),
        steps_from,
        particles,
        outline,
        origin,
        sizes,
        row_bytes,
        machine: machine(arguments, rate.cells_per_second),
        rate_from: rate.origin,
        layers: arguments.layers.map_or(layers, |layers| layers as usize),
    })
}

/// Returns the speed of a rank; `preview` is the simulation of the deck on the CPU.
fn rate(
    app: &App,
    arguments: &PlanArgs,
    preview: &mut Simulation,
    size: RunSize,
) -> Result<Rate, CommandError> {
    if let Some(cells_per_second) = arguments.device_rate {
        let origin = "--device-rate".into();
        return Ok(Rate {
            cells_per_second,
            origin,
        });
    }
    if let Some(name) = &arguments.measured_on {
        let found = rates::of_device(app, preview, size, name);
        return found.map_err(|why| CommandError::new(INVALID_INPUT, why));
    }
    let deck = arguments.deck.read(app, &[])?;
    let assumed = |why: &str| Rate {
        cells_per_second: ASSUMED_RATE,
        origin: format!("assumed: {why}; give --device-rate or --measured-on"),
    };
    // the device of the deck may exist only on other machines
    let mut sim = match app.simulation(deck.clone()) {
        Ok(sim) => sim,
        Err(why) => return Ok(assumed(&format!("the run cannot be set up here ({why})"))),
    };
    let particles = particle_demand(&sim.engine().world, 1, 1).into_iter();
    let particles: u64 = particles.map(|kind| kind.count).sum();
    let may_measure = particles <= rates::MAX_CREATED_PARTICLES;
    let found = rates::expected(app, &deck, &mut sim, size, may_measure);
    Ok(found.unwrap_or_else(|| assumed("no run on this device yet")))
}

/// Returns the machine described by the arguments.
fn machine(arguments: &PlanArgs, rate: f64) -> MachineModel {
    MachineModel {
        rate,
        latency: 1e-6 * arguments.latency,
        bandwidth: 1e9 * arguments.network,
        step: 1e-6 * arguments.step,
        exchange: 1e-6 * arguments.exchange,
        host: 1e9 * arguments.host,
        regrid: 1e-6 * arguments.regrid,
    }
}

/// Returns the initial hierarchy and the number of steps of each level per root step.
fn initial(sim: &mut Simulation) -> Result<(TreeOutline, Vec<u64>), CommandError> {
    if sim.engine().levels() == 1 {
        // without refinement the hierarchy does not depend on the state
        let domain = sim.engine().world.resource::<Topology>().domain;
        return Ok((TreeOutline::new(domain), vec![1]));
    }
    let found = sim.with(|sim| sim.preview_hierarchy(throttled(patches_found)))?;
    let outline = TreeOutline::of(sim.engine().world.resource::<Topology>());
    let levels = sim.engine().settings.time.levels;
    Ok((outline, steps_in_a_root_step(levels, found.steps)))
}

/// Returns the number of steps of each level per root step, from the latest time steps of a snapshot.
fn latest(snapshot: &Snapshot) -> Vec<u64> {
    let steps: Vec<f64> = snapshot.levels().map(|level| level.dt).collect();
    let mut before = 1;
    let counted = steps.iter().enumerate().map(|(level, dt)| {
        let steps = match steps[0] > 0.0 && *dt > 0.0 {
            true => (steps[0] / dt).round() as u64,
            false => 1 << level,
        };
        before = before.max(steps);
        before
    });
    counted.collect()
}

/// Reads the hierarchy of a snapshot from its arrays `origin` and `leaf`.
fn stored(sim: &engine::Engine, snapshot: &Snapshot) -> Result<TreeOutline, CommandError> {
    let domain = sim.world.resource::<Topology>().domain;
    let path = snapshot.path().display();
    let cells = domain.cells(0).map(|n| n as u64);
    let found = snapshot.attributes().root_cells;
    if found != cells {
        let message = format!(
            "{path}: the root grid has {found:?} cells, but that of the deck has {cells:?}"
        );
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    let mut outline = TreeOutline::new(domain);
    for level in 0..snapshot.levels().len() {
        let read = |name| snapshot.read(level as u8, name);
        let damaged =
            |why: &str| CommandError::new(FAILED, format!("{path}: level {level}: {why}"));
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

/// Maximum number of sampled positions.
const MAX_SAMPLED: u64 = 1 << 16;

/// Particles found for a prediction.
#[derive(Default)]
struct ParticleForecast {
    /// Average bytes per particle.
    pub bytes: f64,
    /// Description, one line per kind.
    pub lines: Vec<String>,
}

/// Adds the initial particles of a run to the patches of `outline`.
fn expected_particles(sim: &Engine, outline: &mut TreeOutline) -> ParticleForecast {
    let domain = sim.world.resource::<Topology>().domain;
    put(sim, outline, |outline, particles, count| {
        let sampled = MAX_SAMPLED.min(count);
        let Some(positions) = particles.initial_positions(&domain, sampled) else {
            outline.add_positions(particles.weight(), count, None);
            return Ok("distributed evenly over the patches of the finest level".into());
        };
        // some identities have no particle
        let existing =
            (u128::from(count) * positions.len() as u128 / u128::from(sampled.max(1))) as u64;
        if !positions.is_empty() {
            outline.add_positions(particles.weight(), existing, Some(&positions));
        }
        Ok(match sampled < count {
            true => format!("located by a sample of {sampled} initial positions"),
            false => "located by their initial positions".into(),
        })
    })
    .unwrap_or_default()
}

/// Adds the particles of a snapshot to the patches of its hierarchy `outline`.
fn stored_particles(
    sim: &mut Engine,
    snapshot: &Snapshot,
    outline: &mut TreeOutline,
) -> Result<ParticleForecast, CommandError> {
    let counts = snapshot
        .particles()
        .map(|group| (group.path.clone(), group.count));
    sim.world.insert_resource(StoredParticles(counts.collect()));
    let kinds = sim.world.resource::<ParticleKinds>().all();
    put(sim, outline, |outline, particles, _| {
        let kind = kinds.iter().find(|kind| kind.name == particles.name());
        let path = kind.map_or("", |kind| &*kind.path);
        let Some(header) = snapshot.particles().find(|header| header.path == path) else {
            return Ok("not in the snapshot".into());
        };
        let read = |(level, patches): (u8, u64)| match snapshot.read_patches(
            level,
            &header.counts(),
            0..patches,
        )? {
            Values::U32(counts) => Ok(counts),
            _ => Err(CommandError::new(
                FAILED,
                format!("{path}: the counts have a wrong type"),
            )),
        };
        let levels = snapshot.levels().map(|level| (level.level, level.patches));
        let counts: Vec<Vec<u32>> = levels.map(read).collect::<Result<_, _>>()?;
        let added = outline.add_counts(particles.weight(), &counts);
        added.map_err(|why| CommandError::new(FAILED, format!("{path}: {why}")))?;
        Ok("located as in the snapshot".into())
    })
}

/// Adds the particles of each kind by `place`, which returns a description of their location.
fn put(
    sim: &Engine,
    outline: &mut TreeOutline,
    mut place: impl FnMut(&mut TreeOutline, &dyn ParticleSet, u64) -> Result<String, CommandError>,
) -> Result<ParticleForecast, CommandError> {
    let patches = (0..outline.levels()).map(|level| outline.patches(level));
    let demands = particle_demand(&sim.world, patches.sum(), 1);
    let mut lines = Vec::new();
    let kinds = sim.world.resource::<ParticleKinds>().all();
    for demand in &demands {
        let Some(kind) = kinds.iter().find(|kind| kind.path == demand.path) else {
            continue;
        };
        let particles = kind.of(&sim.world);
        let at = place(outline, particles, demand.count)?;
        lines.push(format!(
            "{}: at most {} particles, each with the work of {} cells, {at}",
            demand.path,
            demand.count,
            particles.weight()
        ));
    }
    let sum = |of: fn(&(u64, u64)) -> u64| {
        demands
            .iter()
            .map(|d| of(&(d.count, d.bytes)) as f64)
            .sum::<f64>()
    };
    let (count, bytes) = (sum(|d| d.0), sum(|d| d.1));
    let bytes = if count > 0.0 { bytes / count } else { 0.0 };
    Ok(ParticleForecast { bytes, lines })
}
