//! Builds a simulation from a deck with all built-in plugins.

use crate::pictures::{self, Pictures};
use nestar_deck::Deck;
use nestar_engine::comm::Ranks;
use nestar_engine::device::ComputeDevice;
use nestar_engine::run::{BuildInfo, RunOptions, RunSummary};
use nestar_engine::step::config::RootConfig;
use nestar_engine::step::{Catalogue, PluginPlace, plugin_order};
use nestar_engine::{Error, Plugin};
use nestar_scenarios::Scenario;
use nestar_systems::refinement::MeshConfig;
use nestar_systems::time::TimeConfig;
use nestar_systems::{BuiltInPlugin, DefaultPlugins, order};

/// A simulation with its thread pool.
pub struct Simulation {
    inner: nestar_engine::Engine,
    threads: rayon::ThreadPool,
    /// Program and build information.
    pub(crate) build: BuildInfo,
}

impl Simulation {
    /// Creates the simulation of a deck on one rank; `parts` selects plugins and scenario.
    pub(crate) fn from_parts<'a>(
        mut deck: Deck,
        ranks: Ranks,
        parts: impl FnOnce(&mut Deck, &RootConfig) -> Result<SelectedPhysics<'a>, Error> + Send,
        build: BuildInfo,
    ) -> Result<Self, Error> {
        let root: RootConfig = deck.root()?;
        let run: nestar_engine::step::config::RunConfig = deck.table("run")?;
        let cores = match run.threads {
            0 => ranks.communicator().placement().cores,
            threads => threads as usize,
        };
        let mut threads = thread_pool(cores)?;
        let inner = threads.install(|| assemble(deck, &root, ranks, parts))?;
        let has_device = inner.world.resource::<ComputeDevice>().device.is_some();
        if has_device && run.threads == 0 && cores > MAX_THREADS_WITH_DEVICE {
            threads = thread_pool(MAX_THREADS_WITH_DEVICE)?;
        }
        Ok(Self {
            inner,
            threads,
            build,
        })
    }

    /// Adds a plugin.
    ///
    /// # Errors
    /// See [`Plugin::build`].
    #[allow(
        clippy::should_implement_trait,
        reason = "this builder method is fallible and takes a plugin; it is not an addition"
    )]
    pub fn add(mut self, plugin: impl Plugin + Send) -> Result<Self, Error> {
        let inner = &mut self.inner;
        self.threads.install(|| inner.add(plugin).map(|_| ()))?;
        Ok(self)
    }

    /// Returns the engine of the simulation.
    pub fn engine(&mut self) -> &mut nestar_engine::Engine {
        &mut self.inner
    }

    /// Runs `work` on the engine inside the thread pool.
    pub fn with<T: Send>(
        &mut self,
        work: impl FnOnce(&mut nestar_engine::Engine) -> T + Send,
    ) -> T {
        let inner = &mut self.inner;
        self.threads.install(|| work(inner))
    }

    /// Runs the simulation with the given options.
    ///
    /// # Errors
    /// See [`nestar_engine::run::run`].
    pub fn run_with(&mut self, options: RunOptions) -> Result<RunSummary, Error> {
        self.with(|sim| nestar_engine::run::run(sim, options))
    }
}

/// Maximum number of threads per rank with a device, unless set in the deck. The host only processes short lists, and more
/// threads cost more time to wake than they save.
const MAX_THREADS_WITH_DEVICE: usize = 16;

/// Creates a pool of `threads` threads; 0: one per core.
///
/// # Errors
/// The system cannot start the threads.
pub fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let built = pool.thread_name(|n| format!("nestar-{n}")).build();
    built.map_err(|e| {
        let threads = match threads {
            0 => "one thread per core".into(),
            n => format!("{n} threads"),
        };
        Error::Setup(format!(
            "cannot start {threads}: {e}; raise the limit (ulimit -u or -v, pids.max of the control group) or set run.threads \
             (RAYON_NUM_THREADS for commands without a run)"
        ))
    })
}

/// Returns all plugins of every program with their deck tables.
pub(crate) fn built_in_plugins(mesh: &MeshConfig, time: &TimeConfig) -> DefaultPlugins {
    let mut all = DefaultPlugins::new(mesh, time);
    let pictures = BuiltInPlugin::new(Pictures);
    all.0.push(pictures.variants(vec![pictures::table()]));
    all
}

/// A plugin and its name in the program.
pub(crate) type NamedPlugin = (String, Box<dyn Plugin>);

/// Plugins and scenario of a program that a deck selects.
pub(crate) struct SelectedPhysics<'a> {
    /// Additional plugins, by name.
    pub plugins: Vec<NamedPlugin>,
    /// Names of all additional plugins of the program.
    pub names: Vec<&'a str>,
    /// Scenario that sets the initial state.
    pub scenario: &'a Scenario,
}

/// Lets the built-in plugins, then those of the program, prepare a deck before its tables are read.
pub(crate) fn prepare(deck: &mut Deck, own: &[NamedPlugin]) -> Result<(), Error> {
    let all = built_in_plugins(&MeshConfig::default(), &TimeConfig::default());
    let built_in = all.0.iter().map(|built_in| &built_in.plugin);
    let mut plugins = built_in.chain(own.iter().map(|(_, plugin)| plugin));
    plugins.try_for_each(|plugin| plugin.prepare(deck))
}

/// Adds all plugins to the engine: first all declarations, then all builds.
fn assemble<'a>(
    mut deck: Deck,
    root: &RootConfig,
    ranks: Ranks,
    parts: impl FnOnce(&mut Deck, &RootConfig) -> Result<SelectedPhysics<'a>, Error>,
) -> Result<nestar_engine::Engine, Error> {
    let selected = parts(&mut deck, root)?;
    prepare(&mut deck, &selected.plugins)?;
    deck.require_constants()?;
    let mesh: MeshConfig = deck.table("mesh")?;
    let settings = mesh.settings(&deck)?;
    let mut time = TimeConfig::default();
    let read_time = |deck: &mut Deck| {
        time = deck.table("time")?;
        time.settings(deck)
    };
    let mut sim = nestar_engine::Engine::with_ranks(deck, settings, read_time, ranks)?;
    order::configure(&mut sim);
    let built_in = built_in_plugins(&mesh, &time);
    let list = plugins_of_run(&built_in, &selected);
    // the scalars of the program precede those of built-in plugins
    let (own, others): (Vec<_>, Vec<_>) = list.iter().partition(|plugin| plugin.owner.is_some());
    for plugin in own.into_iter().chain(others) {
        set_owner(&mut sim, plugin.owner);
        sim.in_plugin(plugin.place().name, |sim| plugin.plugin.declare(sim))?;
    }
    let places: Vec<PluginPlace> = list.iter().map(RunPlugin::place).collect();
    for n in plugin_order(&places, &selected.names)? {
        set_owner(&mut sim, list[n].owner);
        sim.in_plugin(places[n].name, |sim| list[n].plugin.build(sim))?;
    }
    set_owner(&mut sim, None);
    Ok(sim)
}

/// A plugin of a run.
struct RunPlugin<'a> {
    /// Its name in the program, if the program has added it.
    owner: Option<&'a str>,
    plugin: &'a dyn Plugin,
}

impl RunPlugin<'_> {
    fn place(&self) -> PluginPlace<'_> {
        PluginPlace {
            name: self.owner.unwrap_or(self.plugin.name()),
            after: self.plugin.after(),
        }
    }
}

/// Lists the plugins of a run: those of the program that have chosen their place, the built-in ones with the scenario, and
/// the others of the program.
fn plugins_of_run<'a>(
    built_in: &'a DefaultPlugins,
    selected: &'a SelectedPhysics,
) -> Vec<RunPlugin<'a>> {
    let own = selected.plugins.iter().map(|(name, plugin)| RunPlugin {
        owner: Some(name),
        plugin: &**plugin,
    });
    let (mut list, last): (Vec<_>, Vec<_>) = own.partition(|own| !own.plugin.after().is_empty());
    let built_in = built_in.0.iter().map(|built_in| &*built_in.plugin);
    let built_in = built_in.chain([&selected.scenario as &dyn Plugin]);
    list.extend(built_in.map(|plugin| RunPlugin {
        owner: None,
        plugin,
    }));
    list.extend(last);
    list
}

/// Sets the owner of everything that is registered from now on.
fn set_owner(sim: &mut nestar_engine::Engine, owner: Option<&str>) {
    sim.world.resource_mut::<Catalogue>().owner = owner.unwrap_or_default().into();
}

#[cfg(test)]
mod tests {
    use super::{
        MeshConfig, PluginPlace, RunPlugin, SelectedPhysics, TimeConfig, built_in_plugins,
        plugin_order, plugins_of_run,
    };

    #[test]
    fn built_in_plugins_have_one_order() {
        let scenarios = nestar_scenarios::scenarios();
        let selected = SelectedPhysics {
            plugins: Vec::new(),
            names: Vec::new(),
            scenario: &scenarios[0],
        };
        let built_in = built_in_plugins(&MeshConfig::default(), &TimeConfig::default());
        let list = plugins_of_run(&built_in, &selected);
        let places: Vec<PluginPlace> = list.iter().map(RunPlugin::place).collect();
        let order = plugin_order(&places, &[]).expect("an order");
        let names: Vec<&str> = order.into_iter().map(|n| places[n].name).collect();
        assert_eq!(
            names,
            [
                "hydro",
                "refinement",
                "sources",
                "acceleration",
                "diffusion",
                "external",
                "gravity",
                "cooling",
                "spheres",
                "cosmology",
                "particles",
                "views",
                "pictures",
                "scenario",
                "chemistry",
                "floors",
                "star_formation",
                "feedback",
                "sinks",
                "diagnostics",
            ]
        );
    }
}
