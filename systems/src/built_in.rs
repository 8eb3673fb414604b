//! A built-in plugin with its deck tables.

use nestar_deck::TableSchema;
use nestar_engine::Plugin;
use schemars::JsonSchema;

/// A built-in plugin with its deck tables.
pub struct BuiltIn {
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Tables with a default for every key.
    pub tables: Vec<TableSchema>,
    /// Tables with required keys, which are checked only if the deck has them.
    pub optional_tables: Vec<TableSchema>,
}

impl BuiltIn {
    /// Wraps a plugin without tables.
    #[must_use]
    pub fn new(plugin: impl Plugin + 'static) -> Self {
        Self {
            plugin: Box::new(plugin),
            tables: Vec::new(),
            optional_tables: Vec::new(),
        }
    }

    /// Adds a table with a default for every key.
    #[must_use]
    pub fn table<T: JsonSchema>(mut self, name: &str) -> Self {
        self.tables.push(TableSchema::of::<T>(name));
        self
    }

    /// Adds a table with required keys.
    #[must_use]
    pub fn optional_table<T: JsonSchema>(mut self, name: &str) -> Self {
        self.optional_tables.push(TableSchema::of::<T>(name));
        self
    }
}
