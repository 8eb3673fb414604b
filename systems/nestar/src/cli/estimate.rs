//! Estimates output and duration of a run from its initial state.

use super::memory;
use nestar::App;
use nestar::engine::Engine;
use nestar::engine::data::{StoreRef, Stores};
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::run::views::{ViewSummary, summaries};
use nestar::engine::step::RunCounters;
use nestar::engine::step::limits::LevelSteps;
use nestar_deck::Deck;
use std::time::{Duration, Instant};

/// Speed of one rank, cell updates per second.
pub struct Rate {
    pub cells_per_second: f64,
    /// Origin, for messages.
    pub origin: String,
}

/// Wall time of the measurement of cell updates.
const MEASURED: Duration = Duration::from_millis(500);
/// Root cells of a measurement along each axis, on a CPU and on a GPU.
const SIDES: [u64; 2] = [32, 128];
/// Overrides of a deck for measuring its speed.
const SMALL: [&str; 4] = [
    "mesh.max_level=0",
    "mesh.refine=[]",
    "run.memory_limit=0",
    // without an end
    "time.max_steps=1000000000000",
];

/// Estimated steps of a run with constant hierarchy and signal speeds.
pub struct Steps {
    /// Simulation time of the run.
    time: f64,
    /// Number of root steps.
    root: f64,
    /// Length of a root step.
    dt: f64,
    cell_updates: f64,
}

impl Steps {
    /// Estimates the steps of a run with the hierarchy of `sim`; `own` has the time step that each level allows.
    pub fn new(sim: &Engine, own: Vec<f64>) -> Self {
        let settings = &sim.settings.time;
        let lengths = lengths(settings.levels, own);
        let length = |level: usize| lengths[level];
        let dt = length(0);
        let time = match settings.max_steps {
            0 => settings.end,
            most => settings.end.min(most as f64 * dt),
        };
        let topology = sim.world.resource::<Topology>();
        let updates = |level: usize| {
            let cells = (topology.rows(level).len() * CELLS) as f64;
            cells * round_up(time / length(level))
        };
        Self {
            time,
            root: round_up(time / dt),
            dt,
            cell_updates: (0..lengths.len()).map(updates).sum(),
        }
    }

    /// Describes the duration at a rate.
    pub fn described(&self, rate: Option<Rate>) -> String {
        let steps = format!(
            "duration with constant hierarchy and time step (dt {:.2e}): {:.0} root steps, {:.2e} cell updates",
            self.dt, self.root, self.cell_updates
        );
        match rate {
            None => format!("{steps}; give --rate CELLS/S for an estimate of the time\n"),
            Some(Rate {
                cells_per_second: rate,
                origin,
            }) => {
                let seconds = self.cell_updates / rate;
                // longer estimates are meaningless
                let time = match seconds < 3.2e9 {
                    true => humantime::format_duration(Duration::from_secs(seconds.ceil() as u64))
                        .to_string(),
                    false => "more than a century".into(),
                };
                format!("{steps}, at {rate:.2e} cells/s ({origin}) {time}\n")
            }
        }
    }
}

/// Returns the time steps of all levels from the steps `own` that they allow.
fn lengths(levels: LevelSteps, mut own: Vec<f64>) -> Vec<f64> {
    // covered cells, which are twice as wide, contain averages of finer cells
    for level in (1..own.len()).rev() {
        own[level - 1] = own[level - 1].min(2.0 * own[level]);
    }
    let halves = |level: usize| f64::from(1u32 << level);
    let common = |factor: &dyn Fn(usize) -> f64| {
        let steps = own.iter().enumerate().map(|(level, dt)| dt * factor(level));
        steps.fold(f64::INFINITY, f64::min)
    };
    let length = |level: usize| match levels {
        LevelSteps::Adaptive => own[level],
        LevelSteps::Halved => common(&halves) / halves(level),
        LevelSteps::Shared => common(&|_| 1.0),
    };
    (0..own.len()).map(length).collect()
}

/// Returns the number of steps of each level per root step, from the time steps `own` that levels allow. Without a limit each level takes
/// twice as many steps as the next coarser level.
pub fn steps_in_a_root_step(levels: LevelSteps, own: Vec<f64>) -> Vec<u64> {
    let lengths = lengths(levels, own);
    let root = lengths.first().copied().unwrap_or(f64::INFINITY);
    if !root.is_finite() {
        return (0..lengths.len()).map(|level| 1 << level).collect();
    }
    let mut before = 1;
    let steps = lengths.into_iter().map(|length| {
        before = before.max(round_up(root / length) as u64);
        before
    });
    steps.collect()
}

/// Rounds up a number of steps, tolerating round-off.
fn round_up(steps: f64) -> f64 {
    (steps - 1e-9).ceil()
}

/// Describes the snapshots of a run with constant hierarchy.
pub fn output(sim: &Engine, steps: &Steps) -> String {
    let settings = &sim.settings.output;
    let fields = Stores::of(&sim.world, |spec| spec.stored);
    let row = |field: &StoreRef| field.of(&sim.world).spec().row_values() * sim.precision().bytes();
    let rows = sim.world.resource::<Topology>().patches();
    let derived = settings.derived.len() * CELLS * sim.precision().bytes();
    let snapshot = (rows * (fields.iter().map(row).sum::<usize>() + derived)) as u64;
    let by_time = match settings.interval > 0.0 {
        true => (steps.time / settings.interval + 1e-9).floor(),
        false => 0.0,
    };
    let by_steps = match settings.steps {
        0 => 0.0,
        every => (steps.root / every as f64).floor(),
    };
    let ends = f64::from(u8::from(settings.initial) + u8::from(settings.last));
    let count = ends + by_time + by_steps + listed(&settings.times, sim);
    let more = match settings.wall_interval > 0.0 {
        true => ", plus those by output.wall_interval",
        false => "",
    };
    format!(
        "output: about {count:.0} snapshots{more}, at most {} each (before compression), {} in total\n",
        memory::format_bytes(snapshot),
        memory::format_bytes((count * snapshot as f64) as u64)
    )
}

/// Returns how many of the listed times lie between the start and the end of the run.
fn listed(times: &[f64], sim: &Engine) -> f64 {
    let inner = times
        .iter()
        .filter(|t| **t > 0.0 && **t < sim.settings.time.end);
    inner.count() as f64
}

/// Describes the views of a run with constant hierarchy.
pub fn views(sim: &Engine, steps: &Steps) -> String {
    let describe = |own: ViewSummary| {
        let config = &own.config;
        let mut count = 1.0 + config.times.len() as f64;
        if config.output_times {
            count += listed(&sim.settings.output.times, sim) + 1.0;
        }
        if config.interval > 0.0 {
            count += (steps.time / config.interval + 1e-9).floor();
        }
        if config.steps > 0 {
            count += (steps.root / config.steps as f64).floor();
        }
        let more = match config.wall_interval > 0.0 {
            true => ", plus those by wall_interval",
            false => "",
        };
        let size = own.bytes.map_or(String::new(), |bytes| {
            let bytes = memory::format_bytes(bytes as u64);
            format!(", {bytes} each (before compression)")
        });
        format!(
            "view {}: about {count:.0} entries{more}{size}, in {}\n",
            config.name, own.place
        )
    };
    summaries(sim).into_iter().map(describe).collect()
}

/// Measures the cell updates per second of the deck's physics on a small uniform grid; returns them with the number of cells, or `None`
/// if the deck cannot run on it.
pub fn measured_rate(app: &App, deck: &Deck, is_gpu: bool) -> Option<(f64, u64)> {
    let mut deck = deck.clone();
    let side = SIDES[usize::from(is_gpu)];
    deck.set(&format!("domain.cells=[{side}, {side}, {side}]"))
        .ok()?;
    SMALL.iter().try_for_each(|change| deck.set(change)).ok()?;
    let mut sim = app.simulation(deck).ok()?;
    sim.with(|sim| {
        sim.finish_setup().ok()?;
        sim.initialise().ok()?;
        // the first step also allocates and compiles
        sim.root_step(f64::MAX).ok()?;
        let updates = |sim: &Engine| sim.world.resource::<RunCounters>().cell_updates;
        let (before, start) = (updates(sim), Instant::now());
        while start.elapsed() < MEASURED {
            sim.root_step(f64::MAX).ok()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        Some(((updates(sim) - before) as f64 / seconds, side.pow(3)))
    })
}
