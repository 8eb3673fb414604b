//! Decks: reading, overrides, and the tables taken by the parts of the program.

mod code_units;
mod function_tables;
mod missing_file;
mod unused_keys;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::de::DeTable;

use crate::check;
use crate::constants::{Constants, evaluate_expressions};
use crate::error::{DeckError, Fault, SourceSpan, SourceText};
use crate::overrides::{restore_texts, set};
use crate::schema::{TableSchema, merged};
use crate::shape::ValueShape;
use crate::tables::TabulatedFunctions;
use crate::tree::{DeckNode, DeckValue, KeyValue, from_table, steps};
use crate::units::CodeUnits;

/// A configuration deck: TOML tables, each owned by the part of the program that reads it.
///
/// Read or parse a deck, apply overrides, let every owner take its table, then call [`finish`](Deck::finish), which
/// rejects unused tables. [`check`](Deck::check) reports all errors of a deck at once.
#[derive(Clone, Debug)]
pub struct Deck {
    pub(crate) source: Arc<SourceText>,
    pub(crate) root: DeckNode,
    pub(crate) claims: Vec<Claim>,
    /// Keys that overrides have set.
    pub(crate) overridden: Vec<String>,
    pub(crate) constants: Constants,
    /// The constants, then the units that are not hidden by them.
    pub(crate) known: Constants,
    /// Code units, or the errors in their table.
    pub(crate) units: Result<CodeUnits, DeckError>,
    /// Tabulated functions, or the errors in their tables.
    pub(crate) tables: Result<TabulatedFunctions, DeckError>,
}

/// A table that has been taken, with defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub path: String,
    /// Known keys; only for the top level.
    pub keys: Vec<String>,
    pub resolved: toml::Table,
}

impl Deck {
    /// Reads the deck in the file `path`.
    ///
    /// # Errors
    /// The file is missing, a directory, unreadable, not UTF-8 or not TOML, or it has a duplicate key.
    pub fn read(path: impl AsRef<Path>) -> Result<Deck, DeckError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if path.is_dir() {
            return Err(DeckError::new(
                name,
                "is a directory; give the path of a deck file",
            ));
        }
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => DeckError::new(&name, missing_file::message(path)),
            _ => DeckError::new(&name, format!("cannot be read: {error}")),
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Deck::parse(&name, &text),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
                let message =
                    format!("is not UTF-8 text (line {line}); a deck is a TOML text file");
                Err(DeckError::new(name, message))
            }
        }
    }

    /// Parses the deck `text`; messages refer to it by `name`.
    ///
    /// # Errors
    /// The text is not TOML, has a duplicate key or a number that does not fit 64 bits, or a constant is invalid.
    pub fn parse(name: &str, text: &str) -> Result<Deck, DeckError> {
        let source = SourceText {
            name: name.to_string(),
            text: text.to_string(),
            is_file: true,
        };
        let source = Arc::new(source);
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let message = match text.get(span.clone()) {
                Some(key) if error.message() == "duplicate key" => {
                    format!("the key `{key}` is given twice")
                }
                _ => error.message().to_string(),
            };
            Fault::at(
                &SourceSpan {
                    source: source.clone(),
                    span,
                },
                message,
            )
        })?;
        let mut faults = Vec::new();
        let root = from_table(&source, table, &mut faults);
        DeckError::check(faults)?;
        let mut deck = Deck {
            constants: Constants::new(),
            known: Constants::new(),
            units: Ok(CodeUnits::default()),
            tables: Ok(TabulatedFunctions::default()),
            source,
            root,
            claims: Vec::new(),
            overridden: Vec::new(),
        };
        deck.read_names()?;
        Ok(deck)
    }

    /// Returns the folder of the deck file, the base of relative paths; `None` if its name has no folder.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        let folder = Path::new(&self.source.name).parent();
        folder.filter(|folder| !folder.as_os_str().is_empty())
    }

    /// Applies a command-line override `table.key=value` or `table.list[0].key=value`.
    ///
    /// The value is TOML; anything else is read as a text, so that words and formulas need no quotes. Key and value are
    /// checked when the table is taken.
    ///
    /// # Errors
    /// The argument is malformed, its path leads through a value that is not a table, or a constant becomes invalid.
    pub fn set(&mut self, argument: &str) -> Result<(), DeckError> {
        set(&mut self.root, argument)?;
        self.read_names()?;
        let key = argument.split('=').next().unwrap_or_default();
        self.overridden.push(key.trim().to_string());
        Ok(())
    }

    /// Returns the constants of the table `[constants]` in the order of the deck.
    #[must_use]
    pub fn constants(&self) -> &[(String, f64)] {
        &self.constants
    }

    /// Returns `true` if an override has set `key` (such as `run.precision`), a part of it or a table that contains it.
    #[must_use]
    pub fn is_overridden(&self, key: &str) -> bool {
        let holds = |outer: &str, inner: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let named = |other: &String| holds(other, key) || holds(key, other);
        self.overridden.iter().any(named)
    }

    /// Returns `true` if the deck has `path`, such as `run`, `run.threads` or `mesh.refine[1]`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        steps(path).is_some_and(|path| self.root.find(&path).node.is_some())
    }

    /// Takes the top-level keys that are fields of `T`, with defaults for missing keys.
    ///
    /// # Errors
    /// See [`table`](Deck::table). Keys that are not fields of `T` are reported by [`finish`](Deck::finish).
    pub fn root<T>(&mut self) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize + JsonSchema,
    {
        let shape = TableSchema::of::<T>("").shape();
        let keys = shape.keys().map(str::to_string).collect();
        self.take(&shape, "", keys, None)
    }

    /// Takes the table at `path` (such as `run` or `mesh.refine[0]`), with defaults for missing keys.
    ///
    /// # Errors
    /// Lists each unknown or missing key and each value of the wrong type, out of range or not among the allowed words,
    /// with its position.
    pub fn table<T>(&mut self, path: &str) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize + JsonSchema,
    {
        self.take(&TableSchema::of::<T>(path).shape(), path, Vec::new(), None)
    }

    /// Takes the table at `path`, an element of a list whose elements have different owners (such as `mesh.refine[0]`).
    /// The key `tag`, which selects the owner, is removed; see [`OpenTable`](crate::OpenTable).
    ///
    /// # Errors
    /// See [`table`](Deck::table).
    pub fn variant<T>(&mut self, path: &str, tag: &str) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize + JsonSchema,
    {
        self.take(
            &TableSchema::of::<T>(path).shape(),
            path,
            Vec::new(),
            Some(tag),
        )
    }

    fn take<T>(
        &mut self,
        shape: &ValueShape,
        path: &str,
        keys: Vec<String>,
        tag: Option<&str>,
    ) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize,
    {
        self.units()?;
        let mut faults = Vec::new();
        let (node, tag) = self.checked_table(shape, path, tag, &mut faults);
        DeckError::check(faults)?;
        let empty = || toml::Value::Table(toml::Table::new());
        let value = node.as_ref().map_or_else(empty, DeckNode::to_toml);
        // the shape has been checked; serde may still reject conditions of the type itself
        let table: T = value
            .try_into()
            .map_err(|error| self.serde_error(path, &error))?;
        let written = toml::Table::try_from(&table).map_err(|error| {
            self.error_at(path, format!("cannot be written back as TOML: {error}"))
        })?;
        let mut resolved = toml::Table::new();
        resolved.extend(tag.map(|tag| (tag.key, tag.node.to_toml())));
        resolved.extend(written);
        self.claims.retain(|claim| claim.path != path);
        let path = path.to_string();
        self.claims.push(Claim {
            path,
            keys,
            resolved,
        });
        Ok(table)
    }

    /// Returns the error for a value at or inside `path` that its type rejected.
    pub(crate) fn serde_error(&self, path: &str, error: &toml::de::Error) -> DeckError {
        // only the text of the error contains the keys; it ends with "in `key.key`"
        let text = error.to_string();
        let keys = text
            .trim_end()
            .rsplit_once("\nin `")
            .map(|(_, keys)| keys.trim_end_matches('`'));
        let path = keys.map_or(path.to_string(), |keys| check::join(path, keys));
        self.error_at(&path, format!("`{path}`: {}", error.message()))
    }

    /// Returns the table at `path` for checking: the top level with only the keys of `shape`, overrides of texts restored to
    /// texts, and the position of its header. `None` if the deck does not have it.
    fn table_node(&self, shape: &ValueShape, path: &str) -> Option<DeckNode> {
        let mut node = if path.is_empty() {
            let known = self
                .root
                .entries()
                .iter()
                .filter(|entry| shape.keys().any(|key| key == entry.key));
            let location = SourceSpan {
                source: self.source.clone(),
                span: 0..0,
            };
            DeckNode {
                value: DeckValue::Table(known.cloned().collect()),
                location,
            }
        } else {
            let path = steps(path)?;
            let found = self.root.find(&path);
            let node = found.node?;
            DeckNode {
                value: node.value.clone(),
                location: found.location.unwrap_or(&node.location).clone(),
            }
        };
        restore_texts(&mut node, shape);
        Some(node)
    }

    /// Returns [`table_node`](Self::table_node) with evaluated expressions, and its entry `tag`; adds all errors to `faults`.
    pub(crate) fn checked_table(
        &self,
        shape: &ValueShape,
        path: &str,
        tag: Option<&str>,
        faults: &mut Vec<Fault>,
    ) -> (Option<DeckNode>, Option<KeyValue>) {
        let mut node = self.table_node(shape, path);
        let tag = tag.and_then(|tag| node.as_mut()?.remove(tag));
        let before = faults.len();
        if let Some(node) = &mut node {
            evaluate_expressions(node, shape, path, &self.known, faults);
        }
        let mut found = Vec::new();
        self.check_table(node.as_ref(), shape, path, &mut found);
        // the error in an expression replaces the error that it is not a number
        let explained = |fault: &Fault, by: &Fault| {
            by.line == fault.line && by.message.starts_with(&fault.message)
        };
        found.retain(|fault| !faults[before..].iter().any(|by| explained(fault, by)));
        faults.append(&mut found);
        (node, tag)
    }

    /// Checks a table; a missing table is valid unless it has required keys.
    fn check_table(
        &self,
        node: Option<&DeckNode>,
        shape: &ValueShape,
        path: &str,
        faults: &mut Vec<Fault>,
    ) {
        match node {
            Some(node) if matches!(node.value, DeckValue::Table(_)) => {
                check::check(node, shape, path, faults)
            }
            Some(node) => {
                let message = format!(
                    "`{path}` must be a table, written [{path}], found {}",
                    node.shown()
                );
                faults.push(Fault::at(&node.location, message));
            }
            None => {
                let missing: Vec<&str> = shape.required().collect();
                if !missing.is_empty() {
                    let message = format!(
                        "the table [{path}] is missing; it needs {}",
                        missing.join(", ")
                    );
                    faults.push(Fault::of(&self.source.name, message));
                }
            }
        }
    }

    /// Checks all `tables` without taking them, and reports all errors in the deck, including unknown tables.
    ///
    /// # Errors
    /// See [`table`](Deck::table) and [`finish`](Deck::finish).
    pub fn check(&self, tables: &[TableSchema]) -> Result<(), DeckError> {
        self.check_among(tables, &[])
    }

    /// Works as [`check`](Deck::check); suggestions for unknown tables include `others`, which are optional.
    ///
    /// # Errors
    /// See [`check`](Deck::check).
    pub fn check_among(&self, tables: &[TableSchema], others: &[&str]) -> Result<(), DeckError> {
        let mut faults = Vec::new();
        let mut keys = Vec::new();
        let wrong = [self.units.as_ref().err(), self.tables.as_ref().err()];
        let wrong = wrong.into_iter().flatten().flat_map(DeckError::faults);
        faults.extend(wrong.cloned());
        let mut names: Vec<String> = others.iter().map(ToString::to_string).collect();
        for table in &merged(tables) {
            let shape = table.shape();
            self.checked_table(&shape, table.name(), None, &mut faults);
            if table.name().is_empty() {
                keys.extend(shape.keys().map(str::to_string));
            } else {
                names.push(table.name().to_string());
            }
        }
        self.add_unclaimed(&keys, &names, &mut faults);
        DeckError::check(faults)
    }

    /// Checks that the whole deck has been taken.
    ///
    /// # Errors
    /// Lists each table and top-level key that has not been taken, with its position and the most similar known name.
    pub fn finish(&self) -> Result<(), DeckError> {
        self.curves()?;
        let keys: Vec<String> = self
            .claims
            .iter()
            .flat_map(|claim| claim.keys.iter().cloned())
            .collect();
        let names: Vec<String> = self.claims.iter().map(|claim| claim.path.clone()).collect();
        let mut faults = Vec::new();
        self.add_unclaimed(&keys, &names, &mut faults);
        DeckError::check(faults)
    }
}
