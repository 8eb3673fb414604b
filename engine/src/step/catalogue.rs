//! What plugins have registered, for people.

use bevy_ecs::prelude::*;

/// Something that a plugin has registered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogueEntry {
    /// Whose it is: the name of the plugin in the program; empty: of the program's own physics.
    pub owner: String,
    /// What it is, such as `column`.
    pub kind: &'static str,
    /// Name; of a source or criterion that of its function.
    pub name: String,
    /// The field that it reads or changes; empty: none.
    pub field: &'static str,
    /// Unit in code units, for example `mass/length**3`; empty: not told.
    pub unit: String,
    /// A sentence for people.
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

/// What plugins have registered, in that order.
#[derive(Resource, Clone, Debug, Default)]
pub struct Catalogue {
    /// Whose plugin registers from now on.
    pub owner: String,
    entries: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// Adds an entry of the present owner.
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

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[CatalogueEntry] {
        &self.entries
    }
}
