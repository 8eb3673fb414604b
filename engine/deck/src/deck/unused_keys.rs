//! Reports tables and keys that no part of the program has taken.

use super::Deck;
use crate::check;
use crate::constants::CONSTANTS;
use crate::error::Fault;
use crate::tables::TABLES;
use crate::tree::KeyValue;

impl Deck {
    /// Adds a fault for each top-level entry that is not in `keys` and not the first part of any of `paths`.
    pub(super) fn add_unclaimed(&self, keys: &[String], paths: &[String], faults: &mut Vec<Fault>) {
        let first = |path: &String| {
            path.split(['.', '['])
                .next()
                .unwrap_or_default()
                .to_string()
        };
        let mut tables: Vec<String> = paths
            .iter()
            .map(first)
            .filter(|name| !name.is_empty())
            .collect();
        tables.sort();
        tables.dedup();
        let own = |entry: &&KeyValue| ![CONSTANTS, TABLES].contains(&entry.key.as_str());
        for entry in self.root.entries().iter().filter(own) {
            let name = &entry.key;
            if keys.contains(name) || tables.contains(name) {
                if !paths.contains(name) {
                    Self::add_unclaimed_parts(entry, paths, faults);
                }
                continue;
            }
            let fault = if entry.node.is_section() {
                check::unknown(
                    &entry.key_location,
                    format!("unknown table [{name}]: no plugin of this program uses it"),
                    name,
                    &tables,
                )
            } else {
                check::unknown(
                    &entry.key_location,
                    format!("unknown key `{name}`"),
                    name,
                    keys,
                )
            };
            faults.push(fault);
        }
    }

    /// Adds a fault for each entry of a table of which only some subtables are taken, such as `[inflow.x_lower]`.
    fn add_unclaimed_parts(table: &KeyValue, paths: &[String], faults: &mut Vec<Fault>) {
        let prefix = format!("{}.", table.key);
        let parts: Vec<String> = paths
            .iter()
            .filter_map(|path| path.strip_prefix(&prefix))
            .map(|rest| {
                rest.split(['.', '['])
                    .next()
                    .unwrap_or_default()
                    .to_string()
            })
            .collect();
        if parts.is_empty() {
            return;
        }
        for entry in table.node.entries() {
            if !parts.contains(&entry.key) {
                let message = format!("unknown table [{prefix}{}]", entry.key);
                faults.push(check::unknown(
                    &entry.key_location,
                    message,
                    &entry.key,
                    &parts,
                ));
            }
        }
    }
}
