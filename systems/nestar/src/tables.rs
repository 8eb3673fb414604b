//! Deck tables common to all programs.

use nestar_deck::{TableSchema, TablesConfig};
use nestar_engine::step::config::{DomainConfig, RootConfig};
use nestar_systems::chemistry::ChemistryConfig;
use nestar_systems::cooling::CoolingConfig;
use nestar_systems::external::ExternalConfig;
use nestar_systems::gravity::GravityConfig;
use nestar_systems::hydro::HydroConfig;
use nestar_systems::hydro::boundary::{InflowConfig, WORDS};
use nestar_systems::particles::ParticlesConfig;
use nestar_systems::refinement::MeshConfig;
use nestar_systems::sources::SourcesConfig;
use nestar_systems::spheres::{EncounterConfig, SpheresConfig};
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

/// Name of an optional table that has required keys.
pub(crate) const ENCOUNTER: &str = "encounter";

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
    tables.push(TableSchema::of::<MeshConfig>("mesh"));
    tables.push(TableSchema::of::<HydroConfig>("hydro"));
    tables.push(TableSchema::of::<SourcesConfig>("sources"));
    tables.push(TableSchema::of::<ExternalConfig>("external"));
    tables.push(TableSchema::of::<CoolingConfig>("cooling"));
    tables.push(TableSchema::of::<ChemistryConfig>("chemistry"));
    tables.push(TableSchema::of::<GravityConfig>("gravity"));
    tables.push(TableSchema::of::<ParticlesConfig>("particles"));
    tables.push(TableSchema::of::<SpheresConfig>("spheres"));
    tables.push(TableSchema::of::<EncounterConfig>(ENCOUNTER));
    tables.push(TableSchema::of::<TablesConfig>("tables"));
    tables
}

/// Returns the table of an inflow face.
pub(crate) fn inflow_table(face: &str) -> TableSchema {
    TableSchema::of::<InflowConfig>(&format!("inflow.{face}"))
}
