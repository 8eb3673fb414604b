//! Decks: reading, overrides, the tables taken by the parts of the program, and resolved decks.

mod errors;
mod tables;

pub use tables::{
    ExtrapolationAbove, ExtrapolationBelow, Interpolation, TableConfig, TablesConfig,
    TabulatedNumbers,
};

use crate::check;
use crate::constants::{CONSTANTS, NamedNumbers, evaluate_expressions};
use crate::error::{DeckError, Fault, SourceSpan, SourceText, nearest};
use crate::overrides::{insert, restore_texts, set};
use crate::schema::{OpenTable, TableSchema, merged};
use crate::shape::ValueShape;
use crate::tree::{DeckNode, DeckValue, KeyValue, PathStep, document, from_table, steps};
use crate::units::{CodeUnits, UNITS, UnitsConfig};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;
use tables::{TABLES, TabulatedFunctions};
use toml::de::DeTable;
use toml::{Table, Value};

/// A configuration deck: TOML tables, each owned by the part of the program that reads it.
///
/// Read or parse a deck, apply overrides, let every owner take its table, then call [`finish`](Deck::finish), which
/// rejects unused tables. [`check`](Deck::check) reports all errors of a deck at once.
#[derive(Clone, Debug)]
pub struct Deck {
    source: Arc<SourceText>,
    root: DeckNode,
    claims: Vec<Claim>,
    /// Keys that overrides have set.
    overridden: Vec<String>,
    /// Keys that [`Deck::fill`] has set.
    filled: Vec<FilledKey>,
    names: NamedNumbers,
    /// Why a constant is invalid, if the deck has no table of units. It may need units that a plugin defines later.
    invalid_constant: Option<DeckError>,
    /// Code units, or the errors in their table.
    units: Result<CodeUnits, DeckError>,
    /// `true` if a plugin has defined the units.
    units_are_derived: bool,
    /// Tabulated functions, or the errors in their tables.
    tables: Result<TabulatedFunctions, DeckError>,
}

/// A table that has been taken, with defaults filled in.
#[derive(Clone, Debug)]
struct Claim {
    path: String,
    /// Known keys; only for the top level.
    keys: Vec<String>,
    resolved: toml::Table,
}

/// A key whose value follows from another one.
#[derive(Clone, Debug)]
struct FilledKey {
    path: String,
    /// Path of the other key or table.
    from: String,
    /// `true` if the deck must not give the key and the resolved deck leaves it out.
    is_derived: bool,
}

/// Key of the folder of the files that a deck names.
const FOLDER: &str = "run.folder";

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
            std::io::ErrorKind::NotFound => DeckError::new(&name, missing_file(path)),
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
            Fault::not_toml(
                &SourceSpan {
                    source: source.clone(),
                    span,
                },
                message,
            )
        })?;
        let mut faults: Vec<Fault> = Fault::of_invisible(&source).into_iter().collect();
        let root = from_table(&source, table, &mut faults);
        DeckError::check(faults)?;
        let mut deck = Deck {
            names: NamedNumbers::default(),
            invalid_constant: None,
            units: Ok(CodeUnits::default()),
            units_are_derived: false,
            tables: Ok(TabulatedFunctions::default()),
            source,
            root,
            claims: Vec::new(),
            overridden: Vec::new(),
            filled: Vec::new(),
        };
        deck.read_names()?;
        Ok(deck)
    }

    /// Returns the base of relative paths: `run.folder`, or the folder of the deck file; `None` if its name has no folder.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        let stated = steps(FOLDER).and_then(|path| self.root.find(&path).node);
        let stated = stated.and_then(|node| match &node.value {
            DeckValue::Text(folder) if !folder.is_empty() => Some(Path::new(folder)),
            _ => None,
        });
        let own = || Path::new(&self.source.name).parent();
        stated
            .or_else(own)
            .filter(|folder| !folder.as_os_str().is_empty())
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
        &self.names.own
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
        // an unknown name may be that of the invalid constant
        if let (false, Some(invalid)) = (faults.is_empty(), &self.invalid_constant) {
            faults.extend(invalid.faults().iter().cloned());
        }
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
    fn serde_error(&self, path: &str, error: &toml::de::Error) -> DeckError {
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
    fn checked_table(
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
            evaluate_expressions(node, shape, path, &self.names, faults);
        }
        let mut found = Vec::new();
        self.check_table(node.as_ref(), shape, path, &mut found);
        // the error in an expression replaces the error that it is not a number
        let explained = |fault: &Fault, by: &Fault| {
            let is_longer = by.message.starts_with(&fault.message);
            by.line == fault.line && (is_longer || by.column == fault.column)
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
        // what uses the constant would be invalid as well
        self.require_constants()?;
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
        self.require_constants()?;
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

/// Returns the message about a missing file, with the most similar name in its folder.
fn missing_file(path: &Path) -> String {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("no such file, and no folder {}", folder.display());
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // the order of entries is undefined, and ties go to the first name
    names.sort();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&name, names.iter().map(String::as_str)) {
        Some(near) => format!(
            "no such file; did you mean {}?",
            path.with_file_name(near).display()
        ),
        None => "no such file".to_string(),
    }
}

impl Deck {
    /// Returns the code units.
    ///
    /// # Errors
    /// The table `[units]` is invalid.
    pub fn units(&self) -> Result<&CodeUnits, DeckError> {
        self.units.as_ref().map_err(Clone::clone)
    }

    /// Takes the table `[units]`; the resolved deck contains the units in cgs.
    ///
    /// # Errors
    /// See [`Deck::units`].
    pub fn take_units(&mut self) -> Result<CodeUnits, DeckError> {
        let units = self.units()?.clone();
        if self.units_are_derived {
            return Ok(units);
        }
        self.claims.retain(|claim| claim.path != UNITS);
        self.claims.push(Claim {
            path: UNITS.into(),
            keys: Vec::new(),
            resolved: units.table(),
        });
        Ok(units)
    }

    /// Sets the key at `path` to a default that follows from the key or table at `from`, if the deck has the table of `path` but not the
    /// key. Errors at `path` then point at `from`.
    pub fn fill(&mut self, path: &str, from: &str, value: f64) {
        let Some((table, _)) = path.rsplit_once('.') else {
            return;
        };
        let (Some(location), false) = (self.table_location(table), self.has(path)) else {
            return;
        };
        let written = steps(from).and_then(|from| self.root.find(&from).location.cloned());
        let node = DeckNode {
            value: DeckValue::Number(value),
            location: written.unwrap_or_else(|| location.clone()),
        };
        let Some(keys) = steps(path) else {
            return;
        };
        // the table exists, so this cannot fail
        if insert(&mut self.root, &keys, node, &location).is_ok() {
            self.filled.push(FilledKey {
                path: path.into(),
                from: from.into(),
                is_derived: false,
            });
        }
    }

    /// Sets the key at `path`, a number or a list of numbers, to the value that follows from the key or table at `from`. The resolved deck
    /// leaves the key out, because it follows again.
    ///
    /// # Errors
    /// The deck gives the key as well.
    pub fn derive(
        &mut self,
        path: &str,
        from: &str,
        values: &[f64],
        is_list: bool,
    ) -> Result<(), DeckError> {
        let is_own = self
            .filled
            .iter()
            .any(|key| key.is_derived && key.path == path);
        if self.has(path) && !is_own {
            let why = format!("`{path}` follows from `{from}`: remove `{path}`");
            return Err(self.error_at(path, why));
        }
        let (Some(keys), Some(origin)) = (steps(path), steps(from)) else {
            return Ok(());
        };
        let Some(location) = self.root.find(&origin).location.cloned() else {
            let why = format!("`{path}` follows from `{from}`, which the deck does not have");
            return Err(self.error_at(path, why));
        };
        let number = |value: &f64| DeckNode {
            value: DeckValue::Number(*value),
            location: location.clone(),
        };
        let list = || DeckNode {
            value: DeckValue::List(values.iter().map(number).collect()),
            location: location.clone(),
        };
        let node = match values {
            [value] if !is_list => number(value),
            _ => list(),
        };
        if let Err(why) = insert(&mut self.root, &keys, node, &location) {
            return Err(self.error_at(path, why));
        }
        self.filled.retain(|key| key.path != path);
        self.filled.push(FilledKey {
            path: path.into(),
            from: from.into(),
            is_derived: true,
        });
        Ok(())
    }

    /// Defines the code units, in place of a table `[units]`, by the table at `from`. Call it before tables with units are taken.
    ///
    /// # Errors
    /// The deck has a table `[units]`; a constant or tabulated function is invalid.
    pub fn define_units(&mut self, from: &str, units: CodeUnits) -> Result<(), DeckError> {
        if self.root.get(UNITS).is_some() {
            let why = format!("the units follow from [{from}]: remove the table [{UNITS}]");
            return Err(self.error_at(UNITS, why));
        }
        let (names, invalid) = NamedNumbers::read(&self.root, Some(&units));
        (self.names, self.invalid_constant) = (names, invalid);
        self.require_constants()?;
        self.units = Ok(units);
        self.units_are_derived = true;
        self.tables = self.read_tables();
        Ok(())
    }

    /// Returns the path that messages about the value at `path` name: that of the key or table from which [`Deck::fill`] has
    /// set it, or `path`.
    #[must_use]
    pub fn written<'a>(&'a self, path: &'a str) -> &'a str {
        let filled = self.filled.iter().find(|key| key.path == path);
        filled.map_or(path, |key| &key.from)
    }

    /// Returns the position of a table.
    fn table_location(&self, path: &str) -> Option<SourceSpan> {
        let path = steps(path)?;
        let found = self.root.find(&path);
        let is_table = matches!(found.node?.value, DeckValue::Table(_));
        found.location.filter(|_| is_table).cloned()
    }

    /// Reads the names that other tables use: units, constants and tabulated functions.
    ///
    /// # Errors
    /// The deck has units, and a constant is invalid. Other errors are reported on use, because overrides may still correct units and functions,
    /// and a plugin may still define units for the constants.
    fn read_names(&mut self) -> Result<(), DeckError> {
        self.tables = Ok(TabulatedFunctions::default());
        self.units = Ok(CodeUnits::default());
        // the table of units may use constants that do not depend on units
        self.names = NamedNumbers::read(&self.root, None).0;
        self.units = self.read_units();
        // the values of invalid units are not used: the error is reported first
        let units = self.units.clone().unwrap_or_default();
        let units = match &self.units {
            Ok(units) => units.if_dimensional(),
            Err(_) => Some(&units),
        };
        (self.names, self.invalid_constant) = NamedNumbers::read(&self.root, units);
        self.tables = self.read_tables();
        match units {
            Some(_) => self.require_constants(),
            None => Ok(()),
        }
    }

    /// Fails if a constant is invalid. Call it when no plugin defines units any more.
    ///
    /// # Errors
    /// The first invalid constant.
    pub fn require_constants(&self) -> Result<(), DeckError> {
        self.invalid_constant.clone().map_or(Ok(()), Err)
    }

    fn read_units(&self) -> Result<CodeUnits, DeckError> {
        if self.root.get(UNITS).is_none() {
            return Ok(CodeUnits::default());
        }
        let mut faults = Vec::new();
        let shape = TableSchema::of::<UnitsConfig>(UNITS).shape();
        let (node, _) = self.checked_table(&shape, UNITS, None, &mut faults);
        DeckError::check(faults)?;
        let value = node.as_ref().map(DeckNode::to_toml);
        let empty = || toml::Value::Table(toml::Table::new());
        let config: UnitsConfig = value
            .unwrap_or_else(empty)
            .try_into()
            .map_err(|error| self.serde_error(UNITS, &error))?;
        CodeUnits::of(&config).map_err(|(key, why)| {
            let path = key.map_or_else(|| UNITS.into(), |key| format!("{UNITS}.{key}"));
            self.error_at(&path, format!("`{path}`: {why}"))
        })
    }
}

impl Deck {
    /// Returns the table at `path` with all defaults, after it was taken.
    #[must_use]
    pub fn resolved_at(&self, path: &str) -> Option<OpenTable> {
        let claim = self.claims.iter().find(|claim| claim.path == path)?;
        match serde_json::to_value(&claim.resolved) {
            Ok(serde_json::Value::Object(table)) => Some(table),
            _ => None,
        }
    }

    /// Sets the key at `path` in the resolved deck, if its table was taken without it: a default that follows from other parts of the deck.
    pub fn resolve(&mut self, path: &str, value: impl Into<Value>) {
        let Some((table, key)) = path.rsplit_once('.') else {
            return;
        };
        let claim = self.claims.iter_mut().find(|claim| claim.path == table);
        if let Some(claim) = claim
            && !claim.resolved.contains_key(key)
        {
            claim.resolved.insert(key.into(), value.into());
        }
    }

    /// Returns the resolved deck as TOML: every taken table with all defaults.
    ///
    /// The result is a deck that resolves to itself.
    #[must_use]
    pub fn resolved(&self) -> String {
        document(&self.resolved_table())
    }

    /// Returns the [resolved](Self::resolved) deck with the folder of its files, so that it may be stored anywhere.
    #[must_use]
    pub fn stored(&self) -> String {
        let mut root = self.resolved_table();
        let folder = std::path::absolute(self.directory().unwrap_or(Path::new(".")));
        if let (Ok(folder), Some((table, key))) = (folder, FOLDER.split_once('.'))
            && let (Some(folder), Some(Value::Table(table))) =
                (folder.to_str(), root.get_mut(table))
        {
            table.insert(key.into(), folder.into());
        }
        document(&root)
    }

    fn resolved_table(&self) -> Table {
        let mut root = Table::new();
        if !self.names.own.is_empty() {
            let constants = self.names.own.iter();
            let constants = constants.map(|(name, value)| (name.clone(), Value::Float(*value)));
            root.insert(CONSTANTS.into(), Value::Table(constants.collect()));
        }
        if let Ok(tables) = &self.tables
            && !tables.resolved.is_empty()
        {
            root.insert(TABLES.into(), Value::Table(tables.resolved.clone()));
        }
        let mut claims: Vec<&Claim> = self.claims.iter().collect();
        // outer tables first: an inner table with its own owner replaces the entry of the outer table
        claims.sort_by_key(|claim| {
            (
                !claim.path.is_empty(),
                claim.path.matches(['.', '[']).count(),
            )
        });
        for claim in claims {
            if claim.path.is_empty() {
                root.extend(claim.resolved.clone());
            } else if let Some(path) = steps(&claim.path) {
                put(&mut root, &path, claim.resolved.clone());
            }
        }
        for key in self.filled.iter().filter(|key| key.is_derived) {
            if let Some((table, key)) = key.path.split_once('.')
                && let Some(Value::Table(table)) = root.get_mut(table)
            {
                table.remove(key);
            }
        }
        root
    }
}

/// Inserts `table` at `path` in `root`; an index needs an existing list.
fn put(root: &mut Table, path: &[PathStep], table: Table) {
    let Some((PathStep::Key(first), rest)) = path.split_first() else {
        return;
    };
    let empty = || Value::Table(Table::new());
    let mut at = root.entry(first.as_str()).or_insert_with(empty);
    for step in rest {
        let next = match (step, at) {
            (PathStep::Key(key), Value::Table(inner)) => {
                Some(inner.entry(key.as_str()).or_insert_with(empty))
            }
            (PathStep::Index(i), Value::Array(items)) => items.get_mut(*i),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    *at = Value::Table(table);
}
