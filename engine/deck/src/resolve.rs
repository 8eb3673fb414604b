//! Resolved decks: all tables with their defaults.

use toml::{Table, Value};

use crate::constants::CONSTANTS;
use crate::deck::{Claim, Deck};
use crate::tables::TABLES;
use crate::tree::{PathStep, steps};
use crate::write::document;

impl Deck {
    /// Returns the resolved deck as TOML: every taken table with all defaults.
    ///
    /// The result is a deck that resolves to itself.
    #[must_use]
    pub fn resolved(&self) -> String {
        let mut root = Table::new();
        if !self.constants.is_empty() {
            let constants = self.constants.iter();
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
        document(&root)
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
