//! Code units of a deck: the table `[units]`.

use super::{Claim, Deck};
use crate::constants::constants;
use crate::error::{DeckError, SourceSpan};
use crate::overrides::insert;
use crate::schema::TableSchema;
use crate::tables::TabulatedFunctions;
use crate::tree::{DeckNode, DeckValue, steps};
use crate::units::{CodeUnits, UNITS, UnitsConfig};

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
        self.claims.retain(|claim| claim.path != UNITS);
        self.claims.push(Claim {
            path: UNITS.into(),
            keys: Vec::new(),
            resolved: units.table(),
        });
        Ok(units)
    }

    /// Sets the key at `path` to a default that follows from other tables, if the deck has its table but not the key.
    pub fn fill(&mut self, path: &str, value: f64) {
        let Some((table, _)) = path.rsplit_once('.') else {
            return;
        };
        let (Some(location), false) = (self.table_location(table), self.has(path)) else {
            return;
        };
        let node = DeckNode {
            value: DeckValue::Number(value),
            location: location.clone(),
        };
        if let Some(path) = steps(path) {
            // the table exists, so this cannot fail
            let _ = insert(&mut self.root, &path, node, &location);
        }
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
    /// A constant is invalid. Errors in units and functions are reported on use, because overrides may still correct them.
    pub(super) fn read_names(&mut self) -> Result<(), DeckError> {
        self.tables = Ok(TabulatedFunctions::default());
        self.units = Ok(CodeUnits::default());
        // the table of units may use constants that do not depend on units
        self.known = constants(&self.root, &[]).map_or_else(|_| Vec::new(), |found| found.known);
        self.units = self.read_units();
        let words = match &self.units {
            Ok(units) if units.is_dimensionless() => Vec::new(),
            Ok(units) => units.names(),
            // the values are not used: the error is reported first
            Err(_) => CodeUnits::default().names(),
        };
        let found = constants(&self.root, &words)?;
        self.constants = found.own;
        self.known = found.known;
        self.tables = self.read_tables();
        Ok(())
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
