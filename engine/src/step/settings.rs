//! The engine's tables of the deck, and facts that go into snapshots.

use super::config::{
    DomainConfig, MeshSettings, OutputConfig, RunConfig, TimeSettings, UnitsConfig,
};
use bevy_ecs::prelude::*;
use nestar_deck::TableSchema;
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
    pub units: UnitsConfig,
    /// What the mesh table asks for.
    pub mesh: MeshSettings,
}

/// Numbers about the run that go into snapshots beside the fields, by the names of their attributes; set by plugins.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunFacts(pub BTreeMap<String, f64>);

/// Keys of the deck that a continued run keeps as they were, unless an override says otherwise: what the values of a snapshot
/// mean depends on them.
#[derive(Resource, Clone, Debug)]
pub struct KeptKeys(pub Vec<&'static str>);

impl Default for KeptKeys {
    fn default() -> Self {
        Self(vec!["domain.boundary", "run.precision", "units"])
    }
}

/// The tables that the engine itself reads, for `nestar list` and `nestar schema`.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![
        TableSchema::of::<DomainConfig>("domain"),
        TableSchema::of::<OutputConfig>("output"),
        TableSchema::of::<RunConfig>("run"),
        TableSchema::of::<UnitsConfig>("units"),
    ]
}
