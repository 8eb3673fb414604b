//! The engine's tables of the deck, and facts that go into snapshots.

use super::config::{DomainConfig, MeshSettings, OutputConfig, RunConfig, TimeConfig, UnitsConfig};
use bevy_ecs::prelude::*;
use nestar_deck::TableSchema;

/// The engine's tables of the deck, resolved.
#[derive(Resource, Clone, Debug)]
pub struct Settings {
    /// `[domain]`.
    pub domain: DomainConfig,
    /// `[time]`.
    pub time: TimeConfig,
    /// `[output]`.
    pub output: OutputConfig,
    /// `[run]`.
    pub run: RunConfig,
    /// `[units]`.
    pub units: UnitsConfig,
    /// What the mesh table asks for.
    pub mesh: MeshSettings,
}

/// Facts about the run that go into snapshots beside the fields; set by plugins.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunFacts {
    /// Ratio of specific heats, where the gas has one.
    pub gamma: Option<f64>,
}

/// The engine's tables, for `nestar list` and `nestar schema`.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![
        TableSchema::of::<DomainConfig>("domain"),
        TableSchema::of::<TimeConfig>("time"),
        TableSchema::of::<OutputConfig>("output"),
        TableSchema::of::<RunConfig>("run"),
        TableSchema::of::<UnitsConfig>("units"),
    ]
}
