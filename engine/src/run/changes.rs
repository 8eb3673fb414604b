//! In which settings a continued run differs from the one before.

use std::collections::{BTreeMap, BTreeSet};

/// The settings in which two resolved decks differ, but for where a run writes and what it runs on.
pub(super) fn changes(before: &str, now: &str) -> Vec<String> {
    let (before, now) = (flat(before), flat(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "absent".into());
    keys.into_iter()
        .filter(|key| {
            !key.starts_with("output.")
                && !["run.threads", "run.audit", "run.device"].contains(&key.as_str())
        })
        .filter(|key| before.get(*key) != now.get(*key))
        .map(|key| {
            format!(
                "{key} = {} (was {})",
                shown(now.get(key)),
                shown(before.get(key))
            )
        })
        .collect()
}

/// The keys of a deck with their whole path, and their values; none if it is no TOML.
fn flat(text: &str) -> BTreeMap<String, String> {
    fn enter(path: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
        let toml::Value::Table(table) = value else {
            out.insert(path.to_string(), value.to_string());
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
        enter("", &toml::Value::Table(table), &mut out);
    }
    out
}
