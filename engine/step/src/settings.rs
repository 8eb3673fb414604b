//! The engine's tables of the deck, and facts that snapshots record.

use super::config::{
    BoundaryKind, DomainConfig, LIST, MeshSettings, OutputConfig, RunConfig, TimeSettings,
};
use bevy_ecs::prelude::*;
use nestar_deck::{CodeUnits, TableSchema, UnitsConfig};
use std::collections::BTreeMap;

/// Holds the engine's tables of the deck, resolved.
#[derive(Resource, Clone, Debug)]
pub struct Settings {
    /// `[domain]`.
    pub domain: DomainConfig,
    /// `[time]`.
    pub time: TimeSettings,
    /// `[output]`.
    pub output: OutputConfig,
    /// `[run]`.
    pub run: RunConfig,
    /// `[units]`.
    pub units: CodeUnits,
    /// Settings of the mesh, from the plugin that owns its table.
    pub mesh: MeshSettings,
}

/// Holds numbers that plugins store as attributes of snapshots, by attribute name.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunFacts(pub BTreeMap<String, f64>);

/// Collects the plugins' notes to the user, such as an unfavourable choice of settings. They are reported at the start of a run and
/// after each root step.
#[derive(Resource, Clone, Debug, Default)]
pub struct Remarks(pub Vec<String>);

/// Lists the deck keys that must not change at a restart. They give the values of a snapshot their meaning.
/// An override of a key is an explicit consent.
#[derive(Resource, Clone, Debug)]
pub struct KeptKeys(pub Vec<&'static str>);

impl Default for KeptKeys {
    fn default() -> Self {
        let units = ["units.length_cgs", "units.mass_cgs", "units.time_cgs"];
        Self([&["domain.boundary", "run.precision"], &units[..]].concat())
    }
}

/// Returns the schemas of the engine's tables, for `nestar list` and `nestar schema`. `boundaries` holds the
/// registered boundary words with their documentation.
#[must_use]
pub fn tables(boundaries: &[(String, String)]) -> Vec<TableSchema> {
    vec![
        domain_table(boundaries),
        TableSchema::of::<OutputConfig>("output"),
        TableSchema::of::<RunConfig>("run"),
        TableSchema::of::<UnitsConfig>("units"),
    ]
}

/// Returns the schema of `[domain]` with the registered boundary words and their documentation.
fn domain_table(registered: &[(String, String)]) -> TableSchema {
    let built_in = BoundaryKind::BUILT_IN.into_iter();
    let registered = registered.iter().map(|(word, doc)| (&**word, &**doc));
    let mut words: Vec<(&str, &str)> = built_in.chain(registered).collect();
    let mut seen = Vec::new();
    words.retain(|(word, _)| {
        let new = !seen.contains(word);
        seen.push(*word);
        new
    });
    TableSchema::of::<DomainConfig>("domain").with_words(LIST, &words)
}
