//! A program: the physics and scenarios that Nestar has, and what the program's author adds.

use crate::assemble::{NamedPlugin, SelectedPhysics, Simulation};
use crate::tables::{BoundaryWords, ENCOUNTER, common_tables, inflow_table};
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

/// Name, version and commit of a program; [`program!`](crate::program) makes it.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInfo {
    /// Name.
    pub name: &'static str,
    /// Version.
    pub version: &'static str,
    /// Commit it was built from, `unknown` where the build script does not say.
    pub commit: &'static str,
}

/// The binary that is being compiled, as a [`ProgramInfo`](crate::app::ProgramInfo): its name, the version of its crate, and the commit in the variable
/// `PROGRAM_COMMIT` that its build script may set.
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

/// A plugin that is a table of the deck: the struct of its parameters.
pub trait TablePlugin: Plugin + Serialize + DeserializeOwned + JsonSchema + 'static {}

impl<P: Plugin + Serialize + DeserializeOwned + JsonSchema + 'static> TablePlugin for P {}

type PluginFactory = Box<dyn Fn(&mut Deck) -> Result<Box<dyn Plugin>, DeckError> + Send + Sync>;

/// A plugin of the program.
pub(crate) struct PluginEntry {
    /// Name of its table, or of its type.
    pub name: String,
    /// Its table; a plugin without one takes part in every run.
    pub table: Option<TableSchema>,
    make: PluginFactory,
}

/// What a program can run.
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
    /// Names the program in its help, its log and the provenance of its runs: `app.program(nestar::program!())`.
    #[must_use]
    pub fn program(mut self, program: ProgramInfo) -> Self {
        self.program = program;
        self
    }

    /// A plugin that takes part in the runs whose deck has its table `[name]`, an empty one at least.
    ///
    /// # Panics
    /// As [`App::scenario`].
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

    /// A plugin that takes part in every run of the program.
    #[must_use]
    pub fn always<P: Plugin + Clone + Send + Sync + 'static>(mut self, plugin: P) -> Self {
        let name = std::any::type_name::<P>().rsplit("::").next();
        self.plugins.push(PluginEntry {
            name: name.unwrap_or_default().into(),
            table: None,
            make: Box::new(move |_| Ok(Box::new(plugin.clone()))),
        });
        self
    }

    /// A scenario: `scenario = "name"` in a deck, with its parameters in the table `[name]`.
    ///
    /// # Panics
    /// The program has a table of this name already.
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
            "the table [{name}] has an owner already: give the plugin or scenario another name"
        );
    }

    /// The simulation of a deck.
    ///
    /// # Errors
    /// Everything that is wrong with the deck, with its place.
    pub fn simulation(&self, deck: Deck) -> Result<Simulation, Error> {
        self.simulation_on(deck, Ranks::default())
    }

    /// As [`App::simulation`], for one of the ranks that share it. Where the deck leaves the number of threads open, the ranks of
    /// a host share its cores.
    ///
    /// # Errors
    /// As [`App::simulation`].
    pub fn simulation_on(&self, deck: Deck, ranks: Ranks) -> Result<Simulation, Error> {
        let parts = |deck: &mut Deck, root: &RootConfig| {
            Ok(SelectedPhysics {
                plugins: self.plugins_of(deck)?,
                scenario: self.scenario_of(deck, root)?,
            })
        };
        Simulation::from_parts(deck, ranks, parts, self.build_info())
    }

    /// The plugins of the program that take part in a run of `deck`.
    fn plugins_of(&self, deck: &mut Deck) -> Result<Vec<NamedPlugin>, DeckError> {
        let named = |entry: &&PluginEntry| match &entry.table {
            Some(table) => deck.has(table.name()),
            None => true,
        };
        let wanted: Vec<&PluginEntry> = self.plugins.iter().filter(named).collect();
        let made = |entry: &PluginEntry| Ok((entry.name.clone(), (entry.make)(deck)?));
        wanted.into_iter().map(made).collect()
    }

    /// The scenario that a deck names.
    fn scenario_of(&self, deck: &Deck, root: &RootConfig) -> Result<&Scenario, DeckError> {
        let found = self.scenarios.iter().find(|s| s.name == root.scenario);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.scenarios.iter().map(|s| s.name).collect();
            deck.unknown_word_at("scenario", &root.scenario, &names)
        })
    }

    /// The scenarios, by name.
    #[must_use]
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// Tables of the plugins that a deck may switch on.
    pub fn plugin_tables(&self) -> impl Iterator<Item = &TableSchema> {
        self.plugins.iter().filter_map(|entry| entry.table.as_ref())
    }

    /// All tables that a deck may have, with the words for faces that plugins register.
    #[must_use]
    pub fn tables(&self) -> Vec<TableSchema> {
        self.tables_with(&self.faces())
    }

    fn tables_with(&self, faces: &BoundaryWords) -> Vec<TableSchema> {
        let mut tables = common_tables(faces);
        tables.extend(FACES.as_flattened().iter().copied().map(inflow_table));
        tables.extend(self.scenarios.iter().map(|s| s.table.clone()));
        tables.extend(self.plugin_tables().cloned());
        tables
    }

    /// Checks everything in a deck that can be checked without building the simulation, all mistakes at once.
    ///
    /// # Errors
    /// Every mistake with its place.
    pub fn check(&self, deck: &Deck) -> Result<(), DeckError> {
        // what words plugins register shows when they do
        let mut tables = common_tables(&match self.plugins.is_empty() {
            true => BoundaryWords::own(),
            false => BoundaryWords::Any,
        });
        // the other ones may lack keys without defaults
        tables.retain(|table| table.name() != ENCOUNTER || deck.has(ENCOUNTER));
        tables.extend(self.plugin_tables().filter(|t| deck.has(t.name())).cloned());
        let mut errors = Vec::new();
        if let Ok(root) = deck.clone().root::<RootConfig>() {
            let found = self.scenario_of(deck, &root);
            let known = found.is_ok();
            errors.extend(found.err());
            let own = |s: &&Scenario| s.name == root.scenario || deck.has(s.table.name());
            for Scenario { name, table, .. } in self.scenarios.iter().filter(own) {
                // the table of a misspelt scenario is no further mistake
                if known && *name != root.scenario {
                    let message = format!(
                        "the table [{}] is of scenario = \"{name}\", but this deck has scenario = \"{}\"",
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
        let others = others.chain([ENCOUNTER]).filter(|name| !deck.has(name));
        let others: Vec<&str> = others.collect();
        let checked = deck.check_among(&tables, &others);
        let errors = errors.into_iter().chain(checked.err());
        errors.reduce(DeckError::and).map_or(Ok(()), Err)
    }

    /// The name of the program.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.program.name
    }

    /// The program as runs remember it.
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

    /// Program and engine in a line, such as `my-run 0.1.0 (1a2b3c), nestar 0.1.0 (4d5e6f)`.
    #[must_use]
    pub fn signature(&self) -> String {
        let named = |p: &ProgramInfo| format!("{} {} ({})", p.name, p.version, p.commit);
        match self.program.name == NESTAR.name {
            true => named(&NESTAR),
            false => format!("{}, {}", named(&self.program), named(&NESTAR)),
        }
    }
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
        App::default().simulation(deck)
    }

    /// As [`Simulation::new`], for one of the ranks that share the simulation, as [`App::simulation_on`] does it.
    ///
    /// # Errors
    /// As [`Simulation::from_deck`].
    pub fn with_ranks(deck: Deck, ranks: Ranks) -> Result<Self, Error> {
        App::default().simulation_on(deck, ranks)
    }
}

/// Tables of inflow belong to inflow faces, and every such face has one.
fn check_inflow(deck: &Deck, tables: &mut Vec<TableSchema>, errors: &mut Vec<DeckError>) {
    let Ok(domain) = deck.clone().table::<DomainConfig>("domain") else {
        return;
    };
    let kinds = domain.boundary.faces();
    for (&face, kind) in FACES.as_flattened().iter().zip(kinds.as_flattened()) {
        if kind.word() == "inflow" {
            tables.push(inflow_table(face));
        } else if deck.has(&format!("inflow.{face}")) {
            let message = format!("the face {face} is no inflow face: see domain.boundary");
            errors.push(deck.error_at(&format!("inflow.{face}"), message));
            tables.push(inflow_table(face));
        }
    }
}
