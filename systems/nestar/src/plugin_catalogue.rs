//! Lists what the plugins of a program register, by building each of them with a small deck.

use crate::app::{App, PluginEntry};
use crate::tables::BoundaryWords;
use nestar_deck::{Deck, TableSchema};
use nestar_engine::Error;
use nestar_engine::step::{Catalogue, CatalogueEntry};

/// A plugin and what it registers.
pub struct RegisteredPlugin<'a> {
    /// Name of the plugin: that of its table, or [`Plugin::name`](nestar_engine::Plugin::name).
    pub name: &'a str,
    /// Its table; a plugin without a table is part of every run.
    pub table: Option<&'a TableSchema>,
    /// What it registers with default parameters, or why it cannot be built with them.
    pub entries: Result<Vec<CatalogueEntry>, Error>,
}

/// Deck to which the table of a plugin is appended.
const DECK: &str = r#"
scenario = "blast"
[domain]
cells = [8, 8, 8]
[run]
device = "cpu"
threads = 1
"#;

impl App {
    /// Returns the plugins and what they register, in the order of the program.
    #[must_use]
    pub fn registered_plugins<'a>(&'a self) -> Vec<RegisteredPlugin<'a>> {
        let registered = |plugin: &'a PluginEntry| RegisteredPlugin {
            name: &plugin.name,
            table: plugin.table.as_ref(),
            entries: self.entries(plugin),
        };
        self.plugins.iter().map(registered).collect()
    }

    fn entries(&self, plugin: &PluginEntry) -> Result<Vec<CatalogueEntry>, Error> {
        let table = plugin.table.as_ref();
        let table = table.map_or(String::new(), |table| format!("[{}]\n", table.name()));
        let deck = Deck::parse("its defaults", &format!("{DECK}{table}"))?;
        let mut sim = self.simulation(deck)?;
        let catalogue = sim.engine().world.resource::<Catalogue>();
        let own = catalogue
            .entries()
            .iter()
            .filter(|entry| entry.owner == plugin.name);
        Ok(own.cloned().collect())
    }

    /// Returns the words for boundary conditions; any word if a plugin cannot be built with its defaults.
    pub(crate) fn faces(&self) -> BoundaryWords {
        let BoundaryWords::Words(mut words) = BoundaryWords::own() else {
            return BoundaryWords::Any;
        };
        for plugin in self.registered_plugins() {
            let Ok(entries) = plugin.entries else {
                return BoundaryWords::Any;
            };
            let boundaries = entries.into_iter().filter(|entry| entry.kind == "boundary");
            words.extend(boundaries.map(|entry| (entry.name, entry.doc)));
        }
        BoundaryWords::Words(words)
    }
}
