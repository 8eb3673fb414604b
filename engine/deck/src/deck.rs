//! Decks: reading, overrides, and the tables that the parts of the program take.

mod code_units;
mod missing_file;
mod tabulated;
mod unclaimed;

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
/// Read or parse a deck, apply overrides, let every owner take its table, and [`finish`](Deck::finish): what nobody
/// took is an error. [`check`](Deck::check) finds all mistakes of a deck at once.
#[derive(Clone, Debug)]
pub struct Deck {
    pub(crate) source: Arc<SourceText>,
    pub(crate) root: DeckNode,
    pub(crate) claims: Vec<Claim>,
    /// Keys of the overrides.
    pub(crate) overridden: Vec<String>,
    pub(crate) constants: Constants,
    /// The constants, and the words for units that are none of them.
    pub(crate) known: Constants,
    /// The units, or what is wrong with them.
    pub(crate) units: Result<CodeUnits, DeckError>,
    /// The tabulated functions, or what is wrong with them.
    pub(crate) tables: Result<TabulatedFunctions, DeckError>,
}

/// A table that was taken, with its values after defaults were filled in.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub path: String,
    /// Known keys, of the top level only.
    pub keys: Vec<String>,
    pub resolved: toml::Table,
}

impl Deck {
    /// Reads the deck in the file `path`.
    ///
    /// # Errors
    /// The file is missing, a directory, unreadable, not UTF-8 or not TOML, or has a key twice.
    pub fn read(path: impl AsRef<Path>) -> Result<Deck, DeckError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if path.is_dir() {
            return Err(DeckError::new(
                name,
                "is a directory; give the deck file in it",
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

    /// Parses the deck `text`, which messages call `name`.
    ///
    /// # Errors
    /// The text is not TOML, has a key twice, or a number that fits no 64 bits; a wrong constant.
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

    /// The folder of the deck's file, from which relative paths in it lead; `None` if its name has no folder.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        let folder = Path::new(&self.source.name).parent();
        folder.filter(|folder| !folder.as_os_str().is_empty())
    }

    /// Applies a command-line override `table.key=value`, or `table.list[0].key=value`.
    ///
    /// The value is TOML; what is not TOML is taken as a text, so that words and formulas need no quotes. Whether the
    /// key exists and the value fits is checked when the table is taken.
    ///
    /// # Errors
    /// The argument is malformed, or leads through something that is not a table; a constant becomes wrong.
    pub fn set(&mut self, argument: &str) -> Result<(), DeckError> {
        set(&mut self.root, argument)?;
        self.read_names()?;
        let key = argument.split('=').next().unwrap_or_default();
        self.overridden.push(key.trim().to_string());
        Ok(())
    }

    /// The constants of the table `[constants]` in the order of the deck: each is a number, or an expression of those before it.
    #[must_use]
    pub fn constants(&self) -> &[(String, f64)] {
        &self.constants
    }

    /// Whether an override names `key`, such as `run.precision`, something in it or the table that it is in.
    #[must_use]
    pub fn is_overridden(&self, key: &str) -> bool {
        let holds = |outer: &str, inner: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let named = |other: &String| holds(other, key) || holds(key, other);
        self.overridden.iter().any(named)
    }

    /// Whether the deck has `path`, such as `run`, `run.threads` or `mesh.refine[1]`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        steps(path).is_some_and(|path| self.root.find(&path).node.is_some())
    }

    /// Takes the keys at the top of the deck that are fields of `T`, with defaults for absent ones.
    ///
    /// # Errors
    /// As [`table`](Deck::table); keys that are no fields of `T` are left to [`finish`](Deck::finish).
    pub fn root<T>(&mut self) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize + JsonSchema,
    {
        let shape = TableSchema::of::<T>("").shape();
        let keys = shape.keys().map(str::to_string).collect();
        self.take(&shape, "", keys, None)
    }

    /// Takes the table at `path` (such as `run`, or `mesh.refine[0]`), with defaults for absent keys.
    ///
    /// # Errors
    /// Every unknown key, missing key, value of a wrong kind, out of range or not among the allowed words, each with its
    /// place.
    pub fn table<T>(&mut self, path: &str) -> Result<T, DeckError>
    where
        T: DeserializeOwned + Serialize + JsonSchema,
    {
        self.take(&TableSchema::of::<T>(path).shape(), path, Vec::new(), None)
    }

    /// Takes the table at `path`, an element of a list of tables of several owners (such as `mesh.refine[0]`), without
    /// its key `tag`, by which the caller knew it for its own; see [`OpenTable`](crate::OpenTable).
    ///
    /// # Errors
    /// As [`table`](Deck::table).
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
        // The shape was checked; what serde refuses beyond it is a condition of the type itself.
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

    /// The error of a value below `path` that its own type refused.
    pub(crate) fn serde_error(&self, path: &str, error: &toml::de::Error) -> DeckError {
        // Only the text of the error has the keys; it ends with "in `key.key`".
        let text = error.to_string();
        let keys = text
            .trim_end()
            .rsplit_once("\nin `")
            .map(|(_, keys)| keys.trim_end_matches('`'));
        let path = keys.map_or(path.to_string(), |keys| check::join(path, keys));
        self.error_at(&path, format!("`{path}`: {}", error.message()))
    }

    /// The table at `path` as its checks want it: of the top level only the keys that `shape` knows, with overrides of
    /// texts as texts, and placed at its header. `None` if the deck does not have it.
    fn table_node(&self, shape: &ValueShape, path: &str) -> Option<DeckNode> {
        let mut node = if path.is_empty() {
            let known = self
                .root
                .entries()
                .iter()
                .filter(|entry| shape.keys().any(|key| key == entry.key));
            let place = SourceSpan {
                source: self.source.clone(),
                span: 0..0,
            };
            DeckNode {
                value: DeckValue::Table(known.cloned().collect()),
                place,
            }
        } else {
            let path = steps(path)?;
            let found = self.root.find(&path);
            let node = found.node?;
            DeckNode {
                value: node.value.clone(),
                place: found.place.unwrap_or(&node.place).clone(),
            }
        };
        restore_texts(&mut node, shape);
        Some(node)
    }

    /// The table at `path` as [`table_node`](Self::table_node), with numbers in place of expressions, and the key `tag` of it.
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
        // what is wrong with an expression says more than that it is no number
        let explained = |fault: &Fault, by: &Fault| {
            by.line == fault.line && by.message.starts_with(&fault.message)
        };
        found.retain(|fault| !faults[before..].iter().any(|by| explained(fault, by)));
        faults.append(&mut found);
        (node, tag)
    }

    /// Checks a table; an absent one is in order unless it has keys without defaults.
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
                faults.push(Fault::at(&node.place, message));
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

    /// Checks all of `tables` at once, without taking them: every mistake in the deck in one error, unknown tables
    /// included.
    ///
    /// # Errors
    /// As [`table`](Deck::table) and [`finish`](Deck::finish).
    pub fn check(&self, tables: &[TableSchema]) -> Result<(), DeckError> {
        self.check_among(tables, &[])
    }

    /// As [`check`](Deck::check); hints at unknown tables also name the `others`, which decks may do without.
    ///
    /// # Errors
    /// As [`check`](Deck::check).
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

    /// Ends the reading.
    ///
    /// # Errors
    /// Every table and top-level key that nobody took, each with its place and the nearest known name.
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
