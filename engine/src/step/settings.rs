//! The engine's tables of the deck, and facts that go into snapshots.

use super::config::{
    BoundaryKind, DomainConfig, LIST, MeshSettings, OutputConfig, RunConfig, TimeSettings,
};
use bevy_ecs::prelude::*;
use nestar_deck::{CodeUnits, TableSchema, UnitsConfig};
use std::collections::BTreeMap;

/// The engine's tables of the deck, resolved.
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
    /// What the mesh table asks for.
    pub mesh: MeshSettings,
}

/// Numbers about the run that go into snapshots beside the fields, by the names of their attributes; set by plugins.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunFacts(pub BTreeMap<String, f64>);

/// What plugins tell people when a run begins, such as a choice that goes badly with another.
#[derive(Resource, Clone, Debug, Default)]
pub struct Remarks(pub Vec<String>);

/// Keys of the deck that a continued run keeps as they were, unless an override says otherwise: what the values of a snapshot
/// mean depends on them.
#[derive(Resource, Clone, Debug)]
pub struct KeptKeys(pub Vec<&'static str>);

impl Default for KeptKeys {
    fn default() -> Self {
        let units = ["units.length_cgs", "units.mass_cgs", "units.time_cgs"];
        Self([&["domain.boundary", "run.precision"], &units[..]].concat())
    }
}

/// The tables that the engine itself reads, for `nestar list` and `nestar schema`; faces may have the words `boundaries` besides the
/// engine's own, each with a sentence about it.
#[must_use]
pub fn tables(boundaries: &[(String, String)]) -> Vec<TableSchema> {
    vec![
        domain_table(boundaries),
        TableSchema::of::<OutputConfig>("output"),
        TableSchema::of::<RunConfig>("run"),
        TableSchema::of::<UnitsConfig>("units"),
    ]
}

/// The table `[domain]` where faces may have these words, each with a sentence about it, besides those that the engine knows: for lists,
/// schemas and checks of decks.
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
