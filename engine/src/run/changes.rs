//! In which settings two decks differ: of a continued run and the one before, of two ranks.

use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// A setting that differs.
pub(super) struct SettingChange {
    pub key: String,
    /// Its values before and now.
    pub values: [Option<Value>; 2],
    /// The same, as people read them.
    pub text: String,
}

/// Settings that do not change what a run computes, those first that each rank chooses by itself: what ranks do together hangs on the others.
const CHOICES: [&str; 5] = [
    "run.threads",
    "run.device",
    "run.queue",
    "run.audit",
    "run.start_from",
];
/// How many of them ranks choose.
const OF_RANKS: usize = 3;

/// The settings in which two resolved decks differ, but for where a run writes and what it runs on.
pub(super) fn changes(before: &str, now: &str) -> Vec<SettingChange> {
    differences(before, now, "was ", |key| {
        key.starts_with("output.") || CHOICES.contains(&key)
    })
}

/// The settings in which a rank's resolved deck differs from that of the first, but for what each may choose by itself. Whether
/// they see one directory is found out there.
pub(super) fn between_ranks(first: &str, own: &str) -> Vec<String> {
    let changes = differences(first, own, "rank 0: ", |key| {
        key == "output.directory" || CHOICES[..OF_RANKS].contains(&key)
    });
    changes.into_iter().map(|change| change.text).collect()
}

/// The settings in which `other` differs from `first`, each with its value in `first` behind `word`.
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

/// The keys of a deck with their whole path, and their values; none if it is no TOML.
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
