//! The engine's tables of the deck, and facts that snapshots record.

use super::config::{
    BoundaryKind, DomainConfig, LIST, MeshSettings, OutputConfig, RunConfig, TimeSettings,
};
use bevy_ecs::prelude::*;
use nestar_deck::{CodeUnits, Deck, DeckError, TableSchema, UnitsConfig};
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

/// Largest number of snapshots that `output.interval` may ask for.
const MAX_SNAPSHOTS: f64 = 1e6;

impl Settings {
    /// Checks the intervals of `deck` for a run from time `begin` to `time.end`.
    ///
    /// # Errors
    /// An interval is shorter than four times the resolution of the time, or `output.interval` asks for more than a million snapshots. If
    /// `time.max_steps` ends the run, only the resolution at `begin` matters.
    pub fn check_intervals(&self, deck: &Deck, begin: f64) -> Result<(), DeckError> {
        let (end, limited) = (self.time.end, self.time.max_steps > 0);
        let latest = if limited { begin } else { end.max(begin) };
        let resolution = 4.0 * f64::EPSILON * latest.abs();
        let intervals = [
            ("output.interval", self.output.interval),
            ("time.max_step", self.time.max_step),
        ];
        for (key, interval) in intervals {
            if interval > 0.0 && interval < resolution {
                let message = format!(
                    "`{key}` = {interval:e} is too short to advance the time {latest:e}, which has a resolution of {resolution:.1e}; \
                     set a longer interval, or check the units of `{key}` and `time.end`"
                );
                return Err(deck.error_at(key, message));
            }
        }
        let snapshots = (end - begin) / self.output.interval;
        if !limited && self.output.interval > 0.0 && snapshots > MAX_SNAPSHOTS {
            let message = format!(
                "`output.interval` = {:e} asks for {snapshots:.1e} snapshots until `time.end` = {end:e}, more than {MAX_SNAPSHOTS:e}; \
                 set a longer interval, or check the units of both",
                self.output.interval
            );
            return Err(deck.error_at("output.interval", message));
        }
        Ok(())
    }
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
