//! Deck tables common to all programs.

use crate::assemble::built_in_plugins;
use nestar_deck::{TableSchema, TablesConfig};
use nestar_engine::step::config::{DomainConfig, RootConfig};
use nestar_systems::BuiltInPlugin;
use nestar_systems::hydro::boundary::{InflowConfig, WORDS};
use nestar_systems::refinement::MeshConfig;
use nestar_systems::time::TimeConfig;

/// Words for boundary conditions in addition to those of the engine.
pub(crate) enum BoundaryWords {
    /// Any word.
    Any,
    /// These words, each with its documentation.
    Words(Vec<(String, String)>),
}

impl BoundaryWords {
    /// Returns the words of the built-in physics.
    pub fn own() -> Self {
        Self::Words(WORDS.map(|(word, doc)| (word.into(), doc.into())).to_vec())
    }
}

/// Returns the tables of all decks, without scenarios and plugins.
pub(crate) fn common_tables(faces: &BoundaryWords) -> Vec<TableSchema> {
    let mut engine = match faces {
        BoundaryWords::Any => nestar_engine::step::tables(&[]),
        BoundaryWords::Words(words) => nestar_engine::step::tables(words),
    };
    if matches!(faces, BoundaryWords::Any) {
        engine[0] = TableSchema::of::<DomainConfig>("domain");
    }
    let mut tables = vec![TableSchema::of::<RootConfig>("")];
    tables.extend(engine);
    // after the domain
    tables.insert(2, TableSchema::of::<TimeConfig>("time"));
    for built_in in built_in() {
        tables.extend(built_in.tables);
        tables.extend(built_in.optional_tables);
    }
    tables.push(TableSchema::of::<TablesConfig>("tables"));
    tables
}

/// Returns the plugins of every program with defaults.
fn built_in() -> Vec<BuiltInPlugin> {
    built_in_plugins(&MeshConfig::default(), &TimeConfig::default()).0
}

/// Returns the names of the tables of built-in plugins that have required keys.
pub(crate) fn optional_tables() -> Vec<String> {
    let tables = built_in()
        .into_iter()
        .flat_map(|built_in| built_in.optional_tables);
    tables.map(|table| table.name().to_string()).collect()
}

/// Returns the table of an inflow face.
pub(crate) fn inflow_table(face: &str) -> TableSchema {
    TableSchema::of::<InflowConfig>(&format!("inflow.{face}"))
}
