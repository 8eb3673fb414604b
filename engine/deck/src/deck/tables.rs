//! Tabulated functions of a deck: its table `[tables]`.

use super::Deck;
use crate::error::DeckError;
use crate::formula::{Curve, Extrapolation, integrals, is_free_name, is_name, monotone, spline};
use crate::schema::TableSchema;
use crate::table_file::TableFile;
use crate::tree::DeckNode;
use nestar_deck_macro::deck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Name of the table of functions.
pub(super) const TABLES: &str = "tables";

/// Tabulated functions by name in the order of the deck, and their resolved tables.
#[derive(Clone, Debug, Default)]
pub(super) struct TabulatedFunctions {
    pub curves: Vec<(String, Arc<Curve>)>,
    pub resolved: toml::Table,
}

/// Tabulated functions of one argument, which formulas of the deck call by name, such as `halo(r)`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TablesConfig(pub BTreeMap<String, TableConfig>);

/// A list of numbers, or a formula of the columns of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TabulatedNumbers {
    /// A formula of the columns of the file, by name (`column_1`, `column_2`, … if the columns have no names).
    Formula(String),
    /// A list of numbers.
    List(Vec<f64>),
}

/// Method that computes slopes from the numbers.
#[deck]
pub enum Interpolation {
    /// Monotone between points: no overshoot (Fritsch & Butland 1984).
    Monotone,
    /// Cubic spline: continuous second derivative.
    Spline,
}

/// How a function continues below its first point.
#[deck]
pub enum ExtrapolationBelow {
    /// Undefined: the run stops with an error that has the position.
    Refuse,
    /// Constant: the first number.
    Constant,
    /// Linear, with the slope at the point.
    Linear,
    /// a + b x^2, matched in value and slope: the potential in a homogeneous sphere.
    #[serde(rename = "core")]
    Square,
}

/// How a function continues above its last point.
#[deck]
pub enum ExtrapolationAbove {
    /// Undefined: the run stops with an error that has the position.
    Refuse,
    /// Constant: the last number.
    Constant,
    /// Linear, with the slope at the point.
    Linear,
    /// a - b / x, matched in value and slope: the potential outside a sphere.
    #[serde(rename = "kepler")]
    Inverse,
}

/// A tabulated function of one argument with piecewise cubic interpolation and continuous slope.
#[deck]
pub struct TableConfig {
    /// Text file with columns of numbers, relative to the deck; without a file, `x` and `y` are lists.
    pub file: Option<String>,
    /// Points x in ascending order.
    #[key(unit = "of the column")]
    pub x: TabulatedNumbers,
    /// Values at the points, such as `potential` or `G*mass/radius^2`.
    #[key(unit = "of the column")]
    pub y: TabulatedNumbers,
    /// Slopes at the points; computed from the values if absent.
    #[key(unit = "of the column")]
    pub slope: Option<TabulatedNumbers>,
    /// Method that computes slopes from the values.
    #[key(default = Interpolation::Monotone)]
    pub interpolation: Interpolation,
    /// If `true`, the function is the integral of the values over x: 0 at
    /// the first point, or at infinity if `above` is "kepler".
    #[key(default = false)]
    pub integral: bool,
    /// How the function continues below the first point.
    #[key(default = ExtrapolationBelow::Refuse)]
    pub below: ExtrapolationBelow,
    /// How the function continues above the last point.
    #[key(default = ExtrapolationAbove::Refuse)]
    pub above: ExtrapolationAbove,
}

impl TableConfig {
    /// Creates the function; fails with the row in which a width, slope or integral is not finite.
    pub(super) fn curve(
        &self,
        points: &[f64],
        mut values: Vec<f64>,
        mut slopes: Vec<f64>,
    ) -> Result<Curve, usize> {
        if self.integral {
            let mut integrals = integrals(points, &values, &slopes);
            let last = points.len() - 1;
            if self.above == ExtrapolationAbove::Inverse {
                let zero = integrals[last] + values[last] * points[last];
                integrals.iter_mut().for_each(|value| *value -= zero);
            }
            (values, slopes) = (integrals, values);
        }
        let below = match self.below {
            ExtrapolationBelow::Refuse => Extrapolation::Refuse,
            ExtrapolationBelow::Constant => Extrapolation::Constant,
            ExtrapolationBelow::Linear => Extrapolation::Linear,
            ExtrapolationBelow::Square => Extrapolation::Square,
        };
        let above = match self.above {
            ExtrapolationAbove::Refuse => Extrapolation::Refuse,
            ExtrapolationAbove::Constant => Extrapolation::Constant,
            ExtrapolationAbove::Linear => Extrapolation::Linear,
            ExtrapolationAbove::Inverse => Extrapolation::Inverse,
        };
        let wide = |n: usize| {
            points
                .get(n + 1)
                .is_none_or(|next| (next - points[n]).is_finite())
        };
        let finite = |&n: &usize| values[n].is_finite() && slopes[n].is_finite() && wide(n);
        match (0..points.len()).find(|n| !finite(n)) {
            Some(row) => Err(row),
            None => Ok(Curve::new(points, &values, &slopes, [below, above])),
        }
    }
}

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
    pub(super) fn read_tables(&self) -> Result<TabulatedFunctions, DeckError> {
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
