//! Differences between two decks: of a run and its restart, or of two ranks.

use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// Describes a setting that differs.
pub(super) struct SettingChange {
    pub key: String,
    /// Values before and after.
    pub values: [Option<Value>; 2],
    /// Text for messages.
    pub text: String,
}

/// Settings that do not affect results. The first ones may differ between ranks; the others control
/// collective work.
const CHOICES: [&str; 5] = [
    "run.threads",
    "run.device",
    "run.queue",
    "run.audit",
    "run.start_from",
];
/// Number of settings that may differ between ranks.
const OF_RANKS: usize = 3;

/// Returns the settings that differ between two resolved decks, except for output and machine settings.
pub(super) fn changes(before: &str, now: &str) -> Vec<SettingChange> {
    differences(before, now, "was ", |key| {
        key.starts_with("output.") || CHOICES.contains(&key)
    })
}

/// Returns the settings of a rank that differ from the first rank's, except for those that ranks may choose.
/// Directories are compared elsewhere.
pub(super) fn between_ranks(first: &str, own: &str) -> Vec<String> {
    let changes = differences(first, own, "rank 0: ", |key| {
        key == "output.directory" || CHOICES[..OF_RANKS].contains(&key)
    });
    changes.into_iter().map(|change| change.text).collect()
}

/// Returns the settings that differ between two decks, with the text `word` and the value in `first`.
fn differences(
    first: &str,
    other: &str,
    word: &str,
    skips: impl Fn(&str) -> bool,
) -> Vec<SettingChange> {
    let (first, other) = (flat(first), flat(other));
    let keys: BTreeSet<&String> = first.keys().chain(other.keys()).collect();
    let shown = |value: Option<&Value>| value.map_or("absent".into(), Value::to_string);
    keys.into_iter()
        .filter(|key| !skips(key) && first.get(*key) != other.get(*key))
        .map(|key| {
            let values = [first.get(key), other.get(key)];
            let [first, own] = values.map(shown);
            SettingChange {
                key: key.clone(),
                values: values.map(Option::<&Value>::cloned),
                text: format!("{key} = {own} ({word}{first})"),
            }
        })
        .collect()
}

/// Flattens a TOML deck to full keys and values; empty if the text is no TOML.
fn flat(text: &str) -> BTreeMap<String, Value> {
    fn enter(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
        let Value::Table(table) = value else {
            out.insert(path.to_string(), value.clone());
            return;
        };
        for (key, value) in table {
            let inner = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            enter(&inner, value, out);
        }
    }
    let mut out = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        enter("", &Value::Table(table), &mut out);
    }
    out
}
