//! From a deck to a simulation with all built-in plugins.

use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_engine::device::ComputeDevice;
use nestar_engine::ranks::Ranks;
use nestar_engine::run::{BuildInfo, RunOptions, RunSummary};
use nestar_engine::step::config::{BoundaryKind, DomainConfig, RootConfig};
use nestar_engine::{Error, Plugin};
use nestar_scenarios::{InitialCondition, Scenario};
use nestar_systems::hydro::boundary::{FACES, InflowConfig};
use nestar_systems::hydro::{Hydro, HydroConfig};
use nestar_systems::order;
use nestar_systems::refinement::{MeshConfig, Refinement};
use nestar_systems::sources::{Sources, SourcesConfig};
use nestar_systems::time::TimeConfig;

/// A simulation of a deck, with its thread pool.
pub struct Simulation {
    inner: nestar_engine::Engine,
    threads: rayon::ThreadPool,
}

impl Simulation {
    /// Reads a deck file and adds all built-in plugins.
    ///
    /// # Errors
    /// Everything that is wrong with the deck, with its place.
    pub fn from_deck(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Self::new(Deck::read(path)?)
    }

    /// Adds all built-in plugins for a deck that was read (and perhaps overridden) before.
    ///
    /// # Errors
    /// As [`Simulation::from_deck`].
    pub fn new(deck: Deck) -> Result<Self, Error> {
        Self::with_ranks(deck, Ranks::default())
    }

    /// As [`Simulation::new`], for one of the ranks that share the simulation. Where the deck leaves the number of threads
    /// open, the ranks of a host share its cores.
    ///
    /// # Errors
    /// As [`Simulation::from_deck`].
    pub fn with_ranks(mut deck: Deck, ranks: Ranks) -> Result<Self, Error> {
        let root: RootConfig = deck.root()?;
        let run: nestar_engine::step::config::RunConfig = deck.table("run")?;
        let cores = match run.threads {
            0 => ranks.communicator().seat().cores,
            threads => threads as usize,
        };
        let mut threads = pool(cores)?;
        let inner = threads.install(|| assemble(deck, root, ranks))?;
        let has_device = inner.world.resource::<ComputeDevice>().device.is_some();
        if has_device && run.threads == 0 && cores > THREADS_BESIDE_A_DEVICE {
            threads = pool(THREADS_BESIDE_A_DEVICE)?;
        }
        Ok(Self { inner, threads })
    }

    /// Adds a plugin.
    ///
    /// # Errors
    /// As [`Plugin::build`].
    #[allow(
        clippy::should_implement_trait,
        reason = "a builder's `add` takes a plugin and may fail; nobody writes `simulation + plugin`"
    )]
    pub fn add(mut self, plugin: impl Plugin + Send) -> Result<Self, Error> {
        let inner = &mut self.inner;
        self.threads.install(|| inner.add(plugin).map(|_| ()))?;
        Ok(self)
    }

    /// The engine's simulation.
    pub fn engine(&mut self) -> &mut nestar_engine::Engine {
        &mut self.inner
    }

    /// Runs `work` on the simulation inside its thread pool.
    pub fn with<T: Send>(
        &mut self,
        work: impl FnOnce(&mut nestar_engine::Engine) -> T + Send,
    ) -> T {
        let inner = &mut self.inner;
        self.threads.install(|| work(inner))
    }

    /// Runs as the options say.
    ///
    /// # Errors
    /// As [`nestar_engine::Engine::run`].
    pub fn run_with(&mut self, options: RunOptions) -> Result<RunSummary, Error> {
        self.with(|sim| sim.run(options))
    }
}

/// Most threads of a rank where a device computes, unless the deck says otherwise: what is left to the host are short lists,
/// and to wake more threads for them takes longer than they save.
const THREADS_BESIDE_A_DEVICE: usize = 16;

/// `threads` threads; 0: one for each core.
///
/// # Errors
/// The system starts no more.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let built = pool.thread_name(|n| format!("nestar-{n}")).build();
    built.map_err(|e| {
        let threads = match threads {
            0 => "a thread for each core".into(),
            n => format!("{n} threads"),
        };
        Error::Setup(format!(
            "cannot start {threads}: {e}; let the process have more (ulimit -u, pids.max of its control group), or set \
             run.threads, or RAYON_NUM_THREADS for commands without a run"
        ))
    })
}

fn assemble(
    mut deck: Deck,
    root: RootConfig,
    ranks: Ranks,
) -> Result<nestar_engine::Engine, Error> {
    let mesh: MeshConfig = deck.table("mesh")?;
    let settings = mesh.settings(&deck)?;
    let mut time = TimeConfig::default();
    let read_time = |deck: &mut Deck| {
        time = deck.table("time")?;
        time.settings(deck)
    };
    let mut sim = nestar_engine::Engine::with_ranks(deck, settings, read_time, ranks)?;
    order::configure(&mut sim);
    sim.add(Hydro {
        prolongation: mesh.prolongation.into(),
        courant: time.courant,
    })?;
    sim.add(Refinement { config: mesh })?;
    sim.add(Sources)?;
    sim.add(InitialCondition {
        scenario: root.scenario,
    })?;
    Ok(sim)
}

/// The tables of every run.
fn common_tables() -> Vec<TableSchema> {
    let mut tables = vec![TableSchema::of::<RootConfig>("")];
    tables.extend(nestar_engine::step::tables());
    // behind the domain
    tables.insert(2, TableSchema::of::<TimeConfig>("time"));
    tables.push(TableSchema::of::<MeshConfig>("mesh"));
    tables.push(TableSchema::of::<HydroConfig>("hydro"));
    tables.push(TableSchema::of::<SourcesConfig>("sources"));
    tables
}

fn inflow_table(face: &str) -> TableSchema {
    TableSchema::of::<InflowConfig>(&format!("inflow.{face}"))
}

/// All tables that a deck may have, for `nestar list` and `nestar schema`.
#[must_use]
pub fn all_tables() -> Vec<TableSchema> {
    let mut tables = common_tables();
    tables.extend(FACES.as_flattened().iter().copied().map(inflow_table));
    tables.extend(nestar_scenarios::scenarios().into_iter().map(|s| s.table));
    tables
}

/// Checks everything in a deck that can be checked without building the simulation, all mistakes at once. Plugins of
/// one's own are not known here: a deck with tables of theirs is checked while the simulation is put together.
///
/// # Errors
/// Every mistake with its place.
pub fn check(deck: &Deck) -> Result<(), DeckError> {
    let mut tables = common_tables();
    let mut errors = Vec::new();
    let scenarios = nestar_scenarios::scenarios();
    if let Ok(root) = deck.clone().root::<RootConfig>() {
        let names: Vec<&str> = scenarios.iter().map(|s| s.name).collect();
        if !names.contains(&root.scenario.as_str()) {
            errors.push(deck.unknown_word_at("scenario", &root.scenario, &names));
        }
        // the tables of a misspelt scenario are no further mistake
        let wanted = |s: &Scenario| {
            s.name == root.scenario || (!errors.is_empty() && deck.has(s.table.name()))
        };
        tables.extend(
            scenarios
                .iter()
                .filter(|s| wanted(s))
                .map(|s| s.table.clone()),
        );
    }
    if let Ok(domain) = deck.clone().table::<DomainConfig>("domain") {
        let kinds = domain.boundary.faces();
        for (&face, kind) in FACES.as_flattened().iter().zip(kinds.as_flattened()) {
            if *kind == BoundaryKind::Inflow {
                tables.push(inflow_table(face));
            } else if deck.has(&format!("inflow.{face}")) {
                let message = format!("the face {face} is no inflow face: see domain.boundary");
                errors.push(deck.error_at(&format!("inflow.{face}"), message));
                tables.push(inflow_table(face));
            }
        }
    }
    let errors = errors.into_iter().chain(deck.check(&tables).err());
    errors.reduce(DeckError::and).map_or(Ok(()), Err)
}

/// This program.
#[must_use]
pub fn build_info() -> BuildInfo {
    BuildInfo {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("NESTAR_COMMIT").into(),
        flags: env!("NESTAR_FLAGS").into(),
    }
}
