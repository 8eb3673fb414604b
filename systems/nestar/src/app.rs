//! Programs: the physics and scenarios of Nestar plus the plugins and scenarios that an author adds.

use crate::assemble::{NamedPlugin, SelectedPhysics, Simulation, prepare};
use crate::tables::{BoundaryWords, common_tables, inflow_table, optional_tables};
use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_engine::Error;
use nestar_engine::Plugin;
use nestar_engine::comm::Ranks;
use nestar_engine::run::BuildInfo;
use nestar_engine::step::config::{DomainConfig, RootConfig};
use nestar_scenarios::{Parameters, Scenario};
use nestar_systems::hydro::boundary::FACES;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Name, version and commit of a program; created by [`program!`](crate::program).
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name.
    pub name: &'static str,
    /// Version.
    pub version: &'static str,
    /// Git commit; `unknown` if the build script does not set it.
    pub commit: &'static str,
}

/// Returns the [`ProgramInfo`](crate::app::ProgramInfo) of the binary that is being compiled: its name, the version of its crate, and the
/// commit in the variable `PROGRAM_COMMIT`, which a build script may set.
#[macro_export]
macro_rules! program {
    () => {
        $crate::app::ProgramInfo {
            name: match option_env!("CARGO_BIN_NAME") {
                Some(name) => name,
                None => env!("CARGO_PKG_NAME"),
            },
            version: env!("CARGO_PKG_VERSION"),
            commit: match option_env!("PROGRAM_COMMIT") {
                Some(commit) => commit,
                None => "unknown",
            },
        }
    };
}

const NESTAR: ProgramInfo = ProgramInfo {
    name: "nestar",
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("NESTAR_COMMIT"),
};

/// A plugin that is the struct of its parameters, a table of the deck.
pub trait TablePlugin: Plugin + Serialize + DeserializeOwned + JsonSchema + 'static {}

impl<P: Plugin + Serialize + DeserializeOwned + JsonSchema + 'static> TablePlugin for P {}

type PluginFactory = Box<dyn Fn(&mut Deck) -> Result<Box<dyn Plugin>, DeckError> + Send + Sync>;

/// A plugin of the program and how to create it.
pub(crate) struct PluginEntry {
    /// Name of its table, or [`Plugin::name`].
    pub name: String,
    /// Its table; a plugin without a table is part of every run.
    pub table: Option<TableSchema>,
    make: PluginFactory,
}

/// A program: its name, plugins and scenarios.
pub struct App {
    program: ProgramInfo,
    scenarios: Vec<Scenario>,
    pub(crate) plugins: Vec<PluginEntry>,
}

impl Default for App {
    fn default() -> Self {
        Self {
            program: NESTAR,
            scenarios: nestar_scenarios::scenarios(),
            plugins: Vec::new(),
        }
    }
}

impl App {
    /// Sets name and version of the program for its help, log and provenance: `app.program(nestar::program!())`.
    #[must_use]
    pub fn program(mut self, program: ProgramInfo) -> Self {
        self.program = program;
        self
    }

    /// Adds a plugin that is part of a run if the deck has its table `[name]`, which may be empty.
    ///
    /// # Panics
    /// See [`App::scenario`].
    #[must_use]
    pub fn plugin<P: TablePlugin>(mut self, name: &'static str) -> Self {
        self.require_new(name);
        self.plugins.push(PluginEntry {
            name: name.into(),
            table: Some(TableSchema::of::<P>(name)),
            make: Box::new(move |deck| Ok(Box::new(deck.table::<P>(name)?))),
        });
        self
    }

    /// Adds a plugin that is part of every run.
    #[must_use]
    pub fn always<P: Plugin + Clone + Send + Sync + 'static>(mut self, plugin: P) -> Self {
        self.plugins.push(PluginEntry {
            name: plugin.name().into(),
            table: None,
            make: Box::new(move |_| Ok(Box::new(plugin.clone()))),
        });
        self
    }

    /// Adds a scenario: decks select it by `scenario = "name"` and set its parameters in the table `[name]`.
    ///
    /// # Panics
    /// The program already has a table with this name.
    #[must_use]
    pub fn scenario<P: Parameters + 'static>(mut self, name: &'static str) -> Self {
        self.require_new(name);
        self.scenarios.push(Scenario::of::<P>(name));
        self.scenarios.sort_by_key(|scenario| scenario.name);
        self
    }

    fn require_new(&self, name: &str) {
        let tables = self.tables_with(&BoundaryWords::Any);
        let taken = tables.iter().any(|table| table.name() == name);
        assert!(
            !taken,
            "the table [{name}] is already in use: choose another name for the plugin or scenario"
        );
    }

    /// Creates the simulation of a deck.
    ///
    /// # Errors
    /// The deck is invalid, or the simulation cannot be set up.
    pub fn simulation(&self, deck: Deck) -> Result<Simulation, Error> {
        self.simulation_on(deck, Ranks::default())
    }

    /// Creates the simulation on one of several ranks. The ranks of a host share its cores unless the deck sets the number of
    /// threads.
    ///
    /// # Errors
    /// See [`App::simulation`].
    pub fn simulation_on(&self, deck: Deck, ranks: Ranks) -> Result<Simulation, Error> {
        let parts = |deck: &mut Deck, root: &RootConfig| {
            Ok(SelectedPhysics {
                plugins: self.plugins_of(deck)?,
                names: self.plugins.iter().map(|entry| &*entry.name).collect(),
                scenario: self.scenario_of(deck, root)?,
            })
        };
        Simulation::from_parts(deck, ranks, parts, self.build_info())
    }

    /// Creates the plugins of the program that are part of a run of `deck`.
    fn plugins_of(&self, deck: &mut Deck) -> Result<Vec<NamedPlugin>, DeckError> {
        let named = |entry: &&PluginEntry| match &entry.table {
            Some(table) => deck.has(table.name()),
            None => true,
        };
        let wanted: Vec<&PluginEntry> = self.plugins.iter().filter(named).collect();
        let made = |entry: &PluginEntry| Ok((entry.name.clone(), (entry.make)(deck)?));
        wanted.into_iter().map(made).collect()
    }

    /// Returns the scenario selected by a deck.
    fn scenario_of(&self, deck: &Deck, root: &RootConfig) -> Result<&Scenario, DeckError> {
        let found = self.scenarios.iter().find(|s| s.name == root.scenario);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.scenarios.iter().map(|s| s.name).collect();
            deck.unknown_word_at("scenario", &root.scenario, &names)
        })
    }

    /// Returns the scenarios, sorted by name.
    #[must_use]
    pub(crate) fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// Returns the tables of optional plugins.
    pub(crate) fn plugin_tables(&self) -> impl Iterator<Item = &TableSchema> {
        self.plugins.iter().filter_map(|entry| entry.table.as_ref())
    }

    /// Returns all tables that a deck may have, including boundary conditions that plugins register.
    #[must_use]
    pub(crate) fn tables(&self) -> Vec<TableSchema> {
        self.tables_with(&self.faces())
    }

    fn tables_with(&self, faces: &BoundaryWords) -> Vec<TableSchema> {
        let mut tables = common_tables(faces);
        tables.extend(FACES.as_flattened().iter().copied().map(inflow_table));
        tables.extend(self.scenarios.iter().map(|s| s.table.clone()));
        tables.extend(self.plugin_tables().cloned());
        tables
    }

    /// Checks a deck as far as possible without building the simulation.
    ///
    /// # Errors
    /// Lists all errors in the deck with their positions.
    pub fn check(&self, deck: &Deck) -> Result<(), DeckError> {
        let mut prepared = deck.clone();
        // plugins with an invalid table are reported below
        let own = self.plugins_of(&mut prepared.clone()).unwrap_or_default();
        prepare(&mut prepared, &own).map_err(|error| match error {
            Error::Deck(error) => error,
            error => DeckError::new("a plugin", error.to_string()),
        })?;
        let deck = &prepared;
        // boundary conditions of plugins are known only after the plugins are built
        let mut tables = common_tables(&match self.plugins.is_empty() {
            true => BoundaryWords::own(),
            false => BoundaryWords::Any,
        });
        // and so are kinds of views of plugins
        if !self.plugins.is_empty() {
            tables.retain(|table| table.tag().is_none());
        }
        let optional = optional_tables();
        tables.retain(|t| deck.has(t.name()) || !optional.iter().any(|name| name == t.name()));
        tables.extend(self.plugin_tables().filter(|t| deck.has(t.name())).cloned());
        let mut errors = Vec::new();
        if let Ok(root) = deck.clone().root::<RootConfig>() {
            let found = self.scenario_of(deck, &root);
            let known = found.is_ok();
            errors.extend(found.err());
            let own = |s: &&Scenario| s.name == root.scenario || deck.has(s.table.name());
            for Scenario { name, table, .. } in self.scenarios.iter().filter(own) {
                // the table of a misspelt scenario is not a further error
                if known && *name != root.scenario {
                    let message = format!(
                        "the table [{}] belongs to scenario = \"{name}\", but this deck has scenario = \"{}\"",
                        table.name(),
                        root.scenario
                    );
                    errors.push(deck.error_at(table.name(), message));
                }
                tables.push(table.clone());
            }
        }
        check_inflow(deck, &mut tables, &mut errors);
        let others = self.plugin_tables().map(TableSchema::name);
        let optional = optional.iter().map(String::as_str);
        let others = others.chain(optional).filter(|name| !deck.has(name));
        let others: Vec<&str> = others.collect();
        let checked = deck.check_among(&tables, &others);
        let errors = errors.into_iter().chain(checked.err());
        errors.reduce(DeckError::and).map_or(Ok(()), Err)
    }

    /// Returns the name of the program.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        self.program.name
    }

    /// Returns program and build information for the provenance of runs.
    #[must_use]
    pub fn build_info(&self) -> BuildInfo {
        let ProgramInfo {
            name,
            version,
            commit,
        } = self.program;
        BuildInfo {
            program: name.into(),
            program_version: version.into(),
            program_commit: commit.into(),
            version: NESTAR.version.into(),
            commit: NESTAR.commit.into(),
            flags: env!("NESTAR_FLAGS").into(),
        }
    }

    /// Returns program and engine in one line, such as `my-run 0.1.0 (1a2b3c), nestar 0.1.0 (4d5e6f)`.
    #[must_use]
    pub(crate) fn signature(&self) -> String {
        let named = |p: &ProgramInfo| format!("{} {} ({})", p.name, p.version, p.commit);
        match self.program.name == NESTAR.name {
            true => named(&NESTAR),
            false => format!("{}, {}", named(&self.program), named(&NESTAR)),
        }
    }
}

impl Simulation {
    /// Reads a deck file and creates a simulation with all built-in plugins.
    ///
    /// # Errors
    /// The deck is invalid, or the simulation cannot be set up.
    pub fn from_deck(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Self::new(Deck::read(path)?)
    }

    /// Creates a simulation with all built-in plugins from a deck.
    ///
    /// # Errors
    /// See [`Simulation::from_deck`].
    pub fn new(deck: Deck) -> Result<Self, Error> {
        App::default().simulation(deck)
    }

    /// Creates the simulation on one of several ranks; see [`App::simulation_on`].
    ///
    /// # Errors
    /// See [`Simulation::from_deck`].
    pub fn with_ranks(deck: Deck, ranks: Ranks) -> Result<Self, Error> {
        App::default().simulation_on(deck, ranks)
    }
}

/// Checks that every inflow face has a table and that no other face has one.
fn check_inflow(deck: &Deck, tables: &mut Vec<TableSchema>, errors: &mut Vec<DeckError>) {
    let Ok(domain) = deck.clone().table::<DomainConfig>("domain") else {
        return;
    };
    let kinds = domain.boundary.faces();
    for (&face, kind) in FACES.as_flattened().iter().zip(kinds.as_flattened()) {
        if kind.word() == "inflow" {
            tables.push(inflow_table(face));
        } else if deck.has(&format!("inflow.{face}")) {
            let message = format!("the face {face} is not an inflow face: see domain.boundary");
            errors.push(deck.error_at(&format!("inflow.{face}"), message));
            tables.push(inflow_table(face));
        }
    }
}
