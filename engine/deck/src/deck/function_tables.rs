//! Tabulated functions of a deck: its table `[tables]`.

use super::Deck;
use crate::error::DeckError;
use crate::formula::{Curve, is_free_name, is_name, monotone, spline};
use crate::schema::TableSchema;
use crate::table_file::TableFile;
use crate::tables::{
    ExtrapolationAbove, ExtrapolationBelow, Interpolation, TABLES, TableConfig, TablesConfig,
    TabulatedFunctions, TabulatedNumbers,
};
use crate::tree::DeckNode;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of rows of a function.
const MAX_ROWS: usize = 10_000;

impl Deck {
    /// Returns the tabulated functions of the table `[tables]`, in the order of the deck.
    ///
    /// # Errors
    /// A table is invalid.
    pub fn curves(&self) -> Result<&[(String, Arc<Curve>)], DeckError> {
        let tables = self.tables.as_ref().map_err(Clone::clone)?;
        Ok(&tables.curves)
    }

    /// Reads the tabulated functions of the deck.
    ///
    /// # Errors
    /// A key, a file or its numbers are invalid.
    pub(crate) fn read_tables(&self) -> Result<TabulatedFunctions, DeckError> {
        let mut tables = TabulatedFunctions::default();
        let Some(entry) = self.root.get(TABLES) else {
            return Ok(tables);
        };
        let mut faults = Vec::new();
        let shape = TableSchema::of::<TablesConfig>(TABLES).shape();
        let (node, _) = self.checked_table(&shape, TABLES, None, &mut faults);
        DeckError::check(faults)?;
        let value = node.as_ref().map(DeckNode::to_toml);
        let empty = || toml::Value::Table(toml::Table::new());
        let config: TablesConfig = value
            .unwrap_or_else(empty)
            .try_into()
            .map_err(|error| self.serde_error(TABLES, &error))?;
        for entry in entry.node.entries() {
            let Some(own) = config.0.get(&entry.key) else {
                continue;
            };
            let (curve, resolved) = self.function(&entry.key, own)?;
            let written = toml::Value::try_from(&resolved);
            let path = format!("{TABLES}.{}", entry.key);
            let written = written.map_err(|e| self.error_at(&path, e.to_string()))?;
            tables.resolved.insert(entry.key.clone(), written);
            tables.curves.push((entry.key.clone(), Arc::new(curve)));
        }
        Ok(tables)
    }

    /// Reads a function; also returns its table with numbers in place of the file.
    fn function(&self, name: &str, own: &TableConfig) -> Result<(Curve, TableConfig), DeckError> {
        let path = format!("{TABLES}.{name}");
        let taken = self.constants().iter().any(|(other, _)| other == name);
        if taken || !is_free_name(name) {
            let message = format!(
                "`{path}`: the name of a table must consist of letters, digits and `_` and must differ from all functions and constants"
            );
            return Err(self.error_at(&path, message));
        }
        let reader = TableReader::of(self, &path, own)?;
        let points = reader.numbers("x", &own.x)?;
        reader.check_points(&points, &own.x)?;
        let values = reader.numbers("y", &own.y)?;
        let slope = |numbers| reader.numbers("slope", numbers);
        let given = own.slope.as_ref().map(slope).transpose()?;
        reader.check_counts(&points, &values, given.as_deref())?;
        reader.check_ends(&points, own)?;
        let resolved = TableConfig {
            file: None,
            x: TabulatedNumbers::List(points.clone()),
            y: TabulatedNumbers::List(values.clone()),
            slope: given.clone().map(TabulatedNumbers::List),
            ..own.clone()
        };
        let slopes = given.unwrap_or_else(|| match own.interpolation {
            Interpolation::Monotone => monotone(&points, &values),
            Interpolation::Spline => spline(&points, &values),
        });
        let curve = own.curve(&points, values, slopes);
        let curve = curve.map_err(|row| reader.error("x", &too_close(row)))?;
        Ok((curve, resolved))
    }
}

/// Returns the message about points whose slopes or integrals are not finite.
fn too_close(row: usize) -> String {
    format!(
        "has no finite slope or integral in row {}: the points are too close together or too far apart",
        row + 1
    )
}

/// Reads and checks the numbers of a function.
struct TableReader<'a> {
    deck: &'a Deck,
    path: &'a str,
    file: Option<TableFile>,
    /// Names of the file's columns for formulas.
    names: Vec<String>,
}

impl<'a> TableReader<'a> {
    fn of(deck: &'a Deck, path: &'a str, own: &TableConfig) -> Result<Self, DeckError> {
        let folder = deck.directory().unwrap_or(Path::new(""));
        let file = own.file.as_ref().map(|file| {
            let at = |e: DeckError| deck.error_at(&format!("{path}.file"), e.to_string());
            TableFile::read(folder.join(file)).map_err(at)
        });
        let file = file.transpose()?;
        let names = file.iter().flat_map(|file| file.names()).enumerate();
        let names = names.map(|(n, name)| match is_name(name) {
            true => name.clone(),
            false => format!("column_{}", n + 1),
        });
        Ok(Self {
            deck,
            path,
            names: names.collect(),
            file,
        })
    }

    fn error(&self, key: &str, message: &str) -> DeckError {
        let path = format!("{}.{key}", self.path);
        self.deck.error_at(&path, format!("`{path}` {message}"))
    }

    fn numbers(&self, key: &str, numbers: &TabulatedNumbers) -> Result<Vec<f64>, DeckError> {
        let text = match (numbers, &self.file) {
            (TabulatedNumbers::List(list), _) => return self.finite(key, list.clone()),
            (TabulatedNumbers::Formula(text), Some(_)) => text,
            (TabulatedNumbers::Formula(_), None) => {
                let file = format!("{}.file", self.path);
                let message = format!(
                    "is a formula of file columns, but there is no file: give `{file}`, or a list of numbers"
                );
                return Err(self.error(key, &message));
            }
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let path = format!("{}.{key}", self.path);
        let formula = self.deck.formula(&path, text, &names)?;
        let file = self.file.iter();
        let columns = file.flat_map(|file| file.names().iter().map(|name| file.column(name)));
        let columns: Vec<Vec<f64>> = columns.collect::<Result<_, _>>()?;
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let mut values = vec![0.0; columns.first().map_or(0, |column| column.len())];
        formula.eval_many(&columns, &mut values);
        self.finite(key, values)
    }

    fn finite(&self, key: &str, values: Vec<f64>) -> Result<Vec<f64>, DeckError> {
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(n) => Err(self.error(key, &format!("is {} in row {}", values[n], n + 1))),
        }
    }

    fn check_points(&self, points: &[f64], numbers: &TabulatedNumbers) -> Result<(), DeckError> {
        if let (TabulatedNumbers::Formula(text), Some(file)) = (numbers, &self.file)
            && file.names().contains(text)
        {
            file.ascending(text)?;
        }
        match points.windows(2).position(|pair| pair[1] <= pair[0]) {
            None => Ok(()),
            Some(n) => {
                let [before, after] = [points[n], points[n + 1]];
                let message = format!(
                    "must ascend from row to row, found {after:?} after {before:?} in row {}",
                    n + 2
                );
                Err(self.error("x", &message))
            }
        }
    }

    fn check_counts(
        &self,
        points: &[f64],
        values: &[f64],
        slopes: Option<&[f64]>,
    ) -> Result<(), DeckError> {
        let count = points.len();
        if !(2..=MAX_ROWS).contains(&count) {
            let message = format!("must have 2 to {MAX_ROWS} numbers, found {count}");
            return Err(self.error("x", &message));
        }
        for (key, found) in [("y", Some(values)), ("slope", slopes)] {
            if let Some(found) = found.filter(|found| found.len() != count) {
                let message = format!(
                    "must have as many numbers as x ({count}), found {}",
                    found.len()
                );
                return Err(self.error(key, &message));
            }
        }
        Ok(())
    }

    fn check_ends(&self, points: &[f64], own: &TableConfig) -> Result<(), DeckError> {
        let positive = "needs positive x";
        if own.below == ExtrapolationBelow::Square && points[0] <= 0.0 {
            return Err(self.error("below", positive));
        }
        if own.above == ExtrapolationAbove::Inverse && points[points.len() - 1] <= 0.0 {
            return Err(self.error("above", positive));
        }
        Ok(())
    }
}
