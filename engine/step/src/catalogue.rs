//! Catalogue of everything that plugins register, for `nestar list` and `nestar check`.

use bevy_ecs::prelude::*;

/// Describes one item that a plugin has registered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogueEntry {
    /// Name of the plugin; empty for built-in physics.
    pub owner: String,
    /// Kind of the item, such as `column`.
    pub kind: &'static str,
    /// Name; for sources and criteria the name of the function.
    pub name: String,
    /// Field that it reads or changes; may be empty.
    pub field: &'static str,
    /// Unit in code units, for example `mass/length**3`; may be empty.
    pub unit: String,
    /// Documentation in one sentence.
    pub doc: String,
}

impl CatalogueEntry {
    /// Sets the unit.
    pub fn unit(&mut self, unit: &str) -> &mut Self {
        self.unit = unit.into();
        self
    }

    /// Sets the field.
    pub fn of(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }
}

/// Lists what plugins have registered, in the order of registration.
#[derive(Resource, Clone, Debug, Default)]
pub struct Catalogue {
    /// Owner of the entries that are added next.
    pub owner: String,
    entries: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// Adds an entry of the current owner.
    pub fn add(&mut self, kind: &'static str, name: &str, doc: &str) -> &mut CatalogueEntry {
        self.entries.push(CatalogueEntry {
            owner: self.owner.clone(),
            kind,
            name: name.into(),
            doc: doc.into(),
            ..CatalogueEntry::default()
        });
        let last = self.entries.len() - 1;
        &mut self.entries[last]
    }

    /// Returns all entries.
    #[must_use]
    pub fn entries(&self) -> &[CatalogueEntry] {
        &self.entries
    }
}
