//! Errors of a deck with their position: those of owners of tables, and unused tables and keys.

use super::Deck;
use super::tables::TABLES;
use crate::check;
use crate::constants::{CONSTANTS, formula_fault};
use crate::error::{DeckError, Fault};
use crate::formula::Formula;
use crate::tree::{KeyValue, steps};

impl Deck {
    /// Returns an error at `path` (such as `mesh.max_level` or `mesh.refine[1].threshold[0]`), for checks across keys.
    ///
    /// It points at the value, or at its table if the value is a default; without the table it names only the file.
    #[must_use]
    pub fn error_at(&self, path: &str, message: impl Into<String>) -> DeckError {
        match steps(path).and_then(|path| self.root.find(&path).location.cloned()) {
            Some(location) => Fault::at(&location, message).into(),
            None => Fault::of(&self.source.name, message).into(),
        }
    }

    /// Returns an error at `key` of the table at `table`, for keys that are names chosen by users.
    #[must_use]
    pub fn error_at_key(&self, table: &str, key: &str, message: impl Into<String>) -> DeckError {
        match self.entry(table, key) {
            Some(entry) => Fault::at(&entry.key_location, message).into(),
            None => self.error_at(table, message),
        }
    }

    fn entry(&self, table: &str, key: &str) -> Option<&KeyValue> {
        let node = match table.is_empty() {
            true => Some(&self.root),
            false => steps(table).and_then(|steps| self.root.find(&steps).node),
        };
        node.and_then(|node| node.get(key))
    }

    /// Returns the error for an unknown key at `path`, for tables whose keys depend on the rest of the deck, such as
    /// scalars by name.
    #[must_use]
    pub fn unknown_key_at(&self, path: &str, known: &[&str]) -> DeckError {
        let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
        match self.entry(table, key) {
            Some(entry) => check::unknown_key(&entry.key_location, key, table, known).into(),
            None => self.error_at(path, format!("unknown key `{path}`")),
        }
    }

    /// Returns the error for an unknown word at `path`, for words that are registered at run time, such as scenarios.
    #[must_use]
    pub fn unknown_word_at(&self, path: &str, word: &str, known: &[&str]) -> DeckError {
        self.error_at(path, check::not_among(path, word, known))
    }

    /// Compiles `text`, the value at `path`, as a formula of `variables`, constants and tabulated functions, or as a number with
    /// a unit.
    ///
    /// # Errors
    /// The formula is invalid, a constant has the name of a variable, or a tabulated function is invalid.
    pub fn formula(
        &self,
        path: &str,
        text: &str,
        variables: &[&str],
    ) -> Result<Formula, DeckError> {
        let hidden = |name: &&&str| self.constants().iter().any(|(own, _)| own == **name);
        if let Some(name) = variables.iter().find(hidden) {
            let message = format!("`{path}` has a variable named `{name}`; rename the constant");
            return Err(self.error_at(&format!("{CONSTANTS}.{name}"), message));
        }
        self.units()?;
        if let Some(value) = self.names.measured_value(text) {
            let value = value.map_err(|why| self.error_at(path, format!("`{path}`: {why}")))?;
            return Ok(Formula::of_number(text, value, variables));
        }
        let curves = self.curves()?;
        Formula::with_curves(text, variables, &self.names.known, curves).map_err(|error| {
            let column = error.column();
            let message = format!("`{path}`: {}", error.message());
            match steps(path).and_then(|path| self.root.find(&path).node) {
                Some(node) => formula_fault(node, text, &error, &message).into(),
                None => self.error_at(path, format!("{message} (column {column} of \"{text}\")")),
            }
        })
    }
}

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

    /// Adds a fault for each unknown entry of a table whose subtables have different owners, such as `[inflow.x_lower]`.
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
