//! Measures a case: untimed root steps, then timed steps, then timed steps with kernel timing.

use super::{Case, root};
use nestar::engine::comm::{Connection, Halos, Ranks, totals};
use nestar::engine::data::{Precision, Stores};
use nestar::engine::device::{
    ComputeDevice, Device, DeviceCounters, DeviceMemory, KernelCounters, LinkCounters, LinkTimes,
};
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::run::diagnostics::resident_bytes;
use nestar::engine::step::{Activity, RunCounters};
use nestar::{App, Error, engine};
use nestar_deck::Deck;
use std::fmt;
use std::time::Instant;

/// Parameters of one measurement.
pub struct BenchPlan {
    /// Case.
    pub case: Case,
    /// Root cells along each axis.
    pub cells: [u32; 3],
    /// Precision of the fields.
    pub precision: Precision,
    /// Deck of the case.
    pub deck: Deck,
    /// Number of untimed root steps.
    pub warm_up: u64,
    /// Number of timed root steps.
    pub steps: u64,
    /// If `true`, kernels are timed as well.
    pub profile: bool,
}

impl fmt::Display for BenchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, root) = (self.case.name(), root(self.cells));
        write!(f, "{name} {root}, {}", self.precision)
    }
}

/// Machine on which a case was measured.
#[derive(Clone)]
pub struct BenchMachine {
    /// Device, or `CPU` with its vector lanes.
    pub device: String,
    /// Reason why no GPU was used, if one was requested.
    pub note: Option<String>,
    /// CPU threads per rank.
    pub threads: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Library that connects the ranks.
    pub library: String,
    /// Link for halos between devices.
    pub link: Option<String>,
}

/// Memory use at the end, in bytes.
pub struct MemoryUse {
    /// Memory of all field pools on all ranks.
    pub fields: u64,
    /// Resident memory of this process.
    pub resident: u64,
    /// Memory of the first rank's device.
    pub device: Option<DeviceMemory>,
}

/// Results of one measurement.
pub struct Measurement {
    /// Name of the case.
    pub case: &'static str,
    /// Root cells along each axis.
    pub cells: [u32; 3],
    /// Precision of the fields.
    pub precision: Precision,
    /// Machine.
    pub machine: BenchMachine,
    /// Set-up time in seconds, including compilation of kernels.
    pub set_up: f64,
    /// Untimed root steps.
    pub warm_up: u64,
    /// Timed root steps.
    pub steps: u64,
    /// Counters of the timed steps.
    pub timed: TimedSteps,
    /// Patches per level at the end.
    pub patches: Vec<usize>,
    /// Memory use at the end.
    pub memory: MemoryUse,
    /// Kernel times, if they were measured.
    pub profile: Option<KernelProfile>,
}

impl Measurement {
    /// Returns the number of cells on all levels at the end.
    pub fn all_cells(&self) -> usize {
        self.patches.iter().sum::<usize>() * CELLS
    }

    /// Returns the busy fraction of the device, if kernels were timed: kernel seconds per cell update times the rate of the
    /// steps without kernel timing.
    pub fn busy(&self) -> Option<f64> {
        let profile = self.profile.as_ref()?;
        // the two measurements differ slightly
        Some((profile.seconds() / profile.cell_updates as f64 * self.timed.rate()).min(1.0))
    }
}

impl BenchPlan {
    /// Runs the measurement on one of the ranks, which are connected by `library`.
    pub fn measure(&self, app: &App, ranks: &Ranks, library: &str) -> Result<Measurement, Error> {
        let start = Instant::now();
        let mut sim = super::initial(app, &self.deck, ranks)?;
        let set_up = start.elapsed().as_secs_f64();
        sim.with(|sim| {
            timed_steps(sim, self.warm_up)?;
            let timed = timed_steps(sim, self.steps)?;
            let memory = memory(sim)?;
            let topology = sim.world.resource::<Topology>();
            let patches = (0..sim.levels()).map(|level| topology.count(level));
            let patches = patches.collect();
            let profile = match (self.profile, device(sim)) {
                (true, Some(device)) => Some(self.profiled(sim, &device)?),
                _ => None,
            };
            Ok(Measurement {
                case: self.case.name(),
                cells: self.cells,
                precision: self.precision,
                machine: machine(sim, library),
                set_up,
                warm_up: self.warm_up,
                steps: self.steps,
                timed,
                patches,
                memory,
                profile,
            })
        })
    }

    /// Repeats the timed steps with kernel timing.
    fn profiled(&self, sim: &mut engine::Engine, device: &Device) -> Result<KernelProfile, Error> {
        device.profile(true);
        let timed = timed_steps(sim, self.steps);
        device.profile(false);
        Ok(KernelProfile::of(&timed?))
    }
}

/// Returns the device; `None` on the CPU.
fn device(sim: &engine::Engine) -> Option<Device> {
    sim.world.resource::<ComputeDevice>().device.clone()
}

fn machine(sim: &engine::Engine, library: &str) -> BenchMachine {
    let compute = sim.world.resource::<ComputeDevice>();
    BenchMachine {
        device: super::super::rates::describe_device(compute),
        note: compute.note.clone(),
        threads: rayon::current_num_threads(),
        ranks: sim.world.resource::<Ranks>().size(),
        library: library.into(),
        link: connection(sim).map(|connection| connection.describe()),
    }
}

/// Returns the link between this rank's device and other devices.
fn connection(sim: &engine::Engine) -> Option<&Connection> {
    sim.world.get_resource::<Connection>()
}

fn halos(sim: &engine::Engine) -> LinkCounters {
    sim.world.resource::<Halos>().counters(connection(sim))
}

fn memory(sim: &engine::Engine) -> Result<MemoryUse, Error> {
    let fields = Stores::of(&sim.world, |spec| spec.in_totals);
    let bytes: usize = fields
        .iter()
        .map(|field| field.of(&sim.world).bytes())
        .sum();
    Ok(MemoryUse {
        fields: sim.world.resource::<Ranks>().sum(bytes as u64)?,
        resident: resident_bytes(),
        device: device(sim).map(|device| device.memory()).transpose()?,
    })
}

/// Runs timed root steps, including the conserved totals that a run writes. Device and ranks are synchronised before and
/// after.
fn timed_steps(sim: &mut engine::Engine, steps: u64) -> Result<TimedSteps, Error> {
    let device = device(sim);
    let ranks = sim.world.resource::<Ranks>().clone();
    let idle = || -> Result<(), Error> {
        device.as_ref().map_or(Ok(()), Device::synchronise)?;
        Ok(ranks.communicator().barrier()?)
    };
    let counters = |sim: &engine::Engine| sim.world.resource::<RunCounters>().clone();
    let fields = sim.world.resource::<Stores>().all();
    idle()?;
    let before = counters(sim);
    let device_before = device.as_ref().map(Device::counters);
    let halos_before = halos(sim);
    let activity = sim.world.resource::<Activity>().clone();
    activity.reset();
    let start = Instant::now();
    for _ in 0..steps {
        activity.begin_mesh();
        sim.root_step(sim.settings.time.end)?;
        activity.begin_output();
        for field in &fields {
            totals(&sim.world, field)?;
        }
    }
    idle()?;
    let wall = start.elapsed().as_secs_f64();
    let times = activity.times();
    let after = device.as_ref().map(Device::counters);
    Ok(TimedSteps {
        wall,
        times,
        run: run_since(&counters(sim), &before),
        device: after
            .zip(device_before)
            .map(|(now, then)| device_since(&now, &then)),
        halos: halos_since(&halos(sim), &halos_before),
    })
}

fn halos_since(now: &LinkCounters, then: &LinkCounters) -> LinkCounters {
    LinkCounters {
        exchanges: now.exchanges - then.exchanges,
        bytes_sent: now.bytes_sent - then.bytes_sent,
        bytes_received: now.bytes_received - then.bytes_received,
        waited: now.waited - then.waited,
        times: LinkTimes {
            timed: now.times.timed - then.times.timed,
            seconds: now.times.seconds - then.times.seconds,
            exposed: now.times.exposed - then.times.exposed,
        },
    }
}

fn run_since(now: &RunCounters, then: &RunCounters) -> RunCounters {
    RunCounters {
        cell_updates: now.cell_updates - then.cell_updates,
        work: now.work.since(then.work),
        level_steps: now.level_steps - then.level_steps,
        regrids: now.regrids - then.regrids,
        retried_steps: now.retried_steps - then.retried_steps,
        fallback_cells: now.fallback_cells - then.fallback_cells,
        subcycled: [0, 1].map(|n| now.subcycled[n] - then.subcycled[n]),
    }
}

fn device_since(now: &DeviceCounters, then: &DeviceCounters) -> DeviceCounters {
    let kernels = now.kernels.iter().map(|kernel| {
        let mut kernel = kernel.clone();
        if let Some(then) = then.kernels.iter().find(|then| then.name == kernel.name) {
            kernel.launches -= then.launches;
            kernel.timed -= then.timed;
            kernel.seconds -= then.seconds;
            kernel.cells -= then.cells;
            kernel.bytes -= then.bytes;
        }
        kernel
    });
    DeviceCounters {
        launches: now.launches - then.launches,
        synchronisations: now.synchronisations - then.synchronisations,
        bytes_up: now.bytes_up - then.bytes_up,
        bytes_down: now.bytes_down - then.bytes_down,
        allocations: now.allocations - then.allocations,
        compilations: now.compilations - then.compilations,
        kernels: kernels.filter(|kernel| kernel.launches > 0).collect(),
    }
}

/// Counters over a number of root steps.
#[derive(Clone, Default)]
pub struct TimedSteps {
    /// Wall time in seconds, with the device idle at both ends.
    pub wall: f64,
    /// Seconds of each plugin, the mesh and the output.
    pub times: Vec<(String, f64)>,
    /// Counters of the steps.
    pub run: RunCounters,
    /// Counters of the device.
    pub device: Option<DeviceCounters>,
    /// Halo traffic of this rank.
    pub halos: LinkCounters,
}

impl TimedSteps {
    /// Returns the cell updates per second.
    pub fn rate(&self) -> f64 {
        self.run.cell_updates as f64 / self.wall
    }
}

/// Times of all kernels in steps with kernel timing.
pub struct KernelProfile {
    /// Wall time in seconds; kernel timing slows down launches.
    pub wall: f64,
    /// Cell updates.
    pub cell_updates: u64,
    /// Kernels in descending order of time.
    pub kernels: Vec<KernelTime>,
    /// Times of halo exchanges over a direct link.
    pub link: LinkTimes,
}

/// Counters of one kernel.
pub struct KernelTime {
    /// Name in the source.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Cells per second, if the number of cells is known.
    pub cells_per_second: Option<f64>,
    /// Minimum memory traffic in bytes per second, if known.
    pub bytes_per_second: Option<f64>,
}

impl KernelProfile {
    /// Collects the kernel times of the timed steps.
    pub fn of(stretch: &TimedSteps) -> Self {
        let device = stretch.device.iter();
        let mut kernels: Vec<KernelTime> = device
            .flat_map(|device| &device.kernels)
            .filter(|kernel| kernel.timed > 0)
            .map(KernelTime::of)
            .collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Self {
            wall: stretch.wall,
            cell_updates: stretch.run.cell_updates,
            kernels,
            link: stretch.halos.times,
        }
    }

    /// Returns the seconds of all kernels.
    pub fn seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }
}

impl KernelTime {
    fn of(kernel: &KernelCounters) -> Self {
        let complete = kernel.timed == kernel.launches && kernel.seconds > 0.0;
        let rate = |amount: u64| {
            let known = complete && amount > 0;
            known.then(|| amount as f64 / kernel.seconds)
        };
        Self {
            name: kernel.name.clone(),
            launches: kernel.timed,
            seconds: kernel.seconds,
            cells_per_second: rate(kernel.cells),
            bytes_per_second: rate(kernel.bytes),
        }
    }
}
