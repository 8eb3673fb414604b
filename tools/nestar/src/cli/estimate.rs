//! What a run writes and how long it lasts, if it goes on as it begins.

use super::memory;
use nestar::App;
use nestar::engine::Engine;
use nestar::engine::data::{StoreRef, Stores};
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::step::RunCounters;
use nestar::engine::step::limits::LevelSteps;
use nestar_deck::Deck;
use std::time::{Duration, Instant};

/// Wall time that cell updates are measured for.
const MEASURED: Duration = Duration::from_millis(500);
/// Changes of a deck with which its speed is measured.
const SMALL: [&str; 6] = [
    "domain.cells=[32, 32, 32]",
    "mesh.max_level=0",
    "mesh.refine=[]",
    "run.memory_limit=0",
    "time.max_steps=0",
    "time.end=1e300",
];

/// The steps of a run whose hierarchy and signal rates stay what they are at its start.
pub struct Steps {
    /// Simulation time from the start to the end.
    time: f64,
    /// Root steps.
    root: f64,
    /// Length of a root step.
    dt: f64,
    cell_updates: f64,
}

impl Steps {
    /// Of a run that begins with the hierarchy of `sim`, of which each level by itself would take a step as long as `own` says.
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
            cells * whole(time / length(level))
        };
        Self {
            time,
            root: whole(time / dt),
            dt,
            cell_updates: (0..lengths.len()).map(updates).sum(),
        }
    }

    /// The duration at a rate in cells/s, which comes from somewhere.
    pub fn described(&self, rate: Option<(f64, &str)>) -> String {
        let steps = format!(
            "duration, if hierarchy and steps stay as they begin (dt {:.2e}): {:.0} root steps, {:.2e} cell updates",
            self.dt, self.root, self.cell_updates
        );
        match rate {
            None => format!("{steps}; how long they take, --rate CELLS/S tells\n"),
            Some((rate, origin)) => {
                let seconds = self.cell_updates / rate;
                // a century is as good as no estimate
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

/// The lengths of the steps of levels, each of which would take one of its `own` by itself.
fn lengths(levels: LevelSteps, mut own: Vec<f64>) -> Vec<f64> {
    // covered cells, twice as wide, will have the averages of the finer ones
    for level in (1..own.len()).rev() {
        own[level - 1] = own[level - 1].min(2.0 * own[level]);
    }
    let halves = |level: usize| f64::from(1u32 << level);
    let together = |factor: &dyn Fn(usize) -> f64| {
        let steps = own.iter().enumerate().map(|(level, dt)| dt * factor(level));
        steps.fold(f64::INFINITY, f64::min)
    };
    let length = |level: usize| match levels {
        LevelSteps::Adaptive => own[level],
        LevelSteps::Halved => together(&halves) / halves(level),
        LevelSteps::Shared => together(&|_| 1.0),
    };
    (0..own.len()).map(length).collect()
}

/// Steps of levels in a root step, of which each would take one as long as its `own` by itself; twice as many as the coarser level where
/// nothing limits them.
pub fn steps_in_a_root_step(levels: LevelSteps, own: Vec<f64>) -> Vec<u64> {
    let lengths = lengths(levels, own);
    let root = lengths.first().copied().unwrap_or(f64::INFINITY);
    if !root.is_finite() {
        return (0..lengths.len()).map(|level| 1 << level).collect();
    }
    let mut before = 1;
    let steps = lengths.into_iter().map(|length| {
        before = before.max(whole(root / length) as u64);
        before
    });
    steps.collect()
}

/// A number of steps, of which round-off makes no other.
fn whole(steps: f64) -> f64 {
    (steps - 1e-9).ceil()
}

/// The snapshots of a run, if the hierarchy stays as it is.
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
    let count = ends + by_time + by_steps;
    let more = match settings.wall_interval > 0.0 {
        true => ", besides those by output.wall_interval",
        false => "",
    };
    format!(
        "output: about {count:.0} snapshots{more}, each at most {} (before compression), {} in all\n",
        memory::format_bytes(snapshot),
        memory::format_bytes((count * snapshot as f64) as u64)
    )
}

/// Cells that a run of the deck's physics updates in a second here, on a small uniform grid; none where the deck does not run there.
pub fn measured_rate(app: &App, deck: &Deck) -> Option<f64> {
    let mut deck = deck.clone();
    SMALL.iter().try_for_each(|change| deck.set(change)).ok()?;
    let mut sim = app.simulation(deck).ok()?;
    sim.with(|sim| {
        sim.finish_setup().ok()?;
        sim.initialise().ok()?;
        // the first step makes what the others find
        sim.root_step(f64::MAX).ok()?;
        let updates = |sim: &Engine| sim.world.resource::<RunCounters>().cell_updates;
        let (before, start) = (updates(sim), Instant::now());
        while start.elapsed() < MEASURED {
            sim.root_step(f64::MAX).ok()?;
        }
        Some((updates(sim) - before) as f64 / start.elapsed().as_secs_f64())
    })
}
