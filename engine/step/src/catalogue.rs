//! Catalogue of everything that plugins register, and the order in which plugins are built.

use super::Error;
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

/// The name of a plugin and the names of those that are built before it.
#[derive(Clone, Copy)]
pub struct PluginPlace<'a> {
    /// Name of the plugin.
    pub name: &'a str,
    /// Names of the plugins that come before it.
    pub after: &'a [&'a str],
}

/// Returns the positions of `plugins` in the order in which they are built. Plugins keep the order of the list, except
/// that each comes after those that it names. `absent` are plugins that may be named but are not part of the run.
///
/// # Errors
/// A plugin names an unknown plugin; plugins come after each other in a cycle.
pub fn plugin_order(plugins: &[PluginPlace], absent: &[&str]) -> Result<Vec<usize>, Error> {
    for PluginPlace { name, after } in plugins {
        let known =
            |other: &&&str| plugins.iter().any(|p| p.name == **other) || absent.contains(other);
        if let Some(other) = after.iter().find(|other| !known(other)) {
            let names: Vec<&str> = plugins.iter().map(|plugin| plugin.name).collect();
            return Err(Error::Setup(format!(
                "the plugin `{name}` comes after `{other}`, which does not exist; the plugins are {}",
                names.join(", ")
            )));
        }
    }
    let mut order = Vec::new();
    let mut waiting: Vec<usize> = (0..plugins.len()).collect();
    while !waiting.is_empty() {
        let blocker = |&n: &usize| {
            waiting
                .iter()
                .copied()
                .find(|&m| comes_after(plugins, n, m))
        };
        let Some(at) = waiting.iter().position(|n| blocker(n).is_none()) else {
            return Err(Error::Setup(cycle(plugins, waiting[0], blocker)));
        };
        order.push(waiting.remove(at));
    }
    Ok(order)
}

/// Returns `true` if the plugin at `n` names that at `m`.
fn comes_after(plugins: &[PluginPlace], n: usize, m: usize) -> bool {
    plugins[n].after.contains(&plugins[m].name)
}

/// Describes the cycle that is reached from the plugin at `start`.
fn cycle(
    plugins: &[PluginPlace],
    start: usize,
    blocker: impl Fn(&usize) -> Option<usize>,
) -> String {
    let mut path = vec![start];
    while let Some(next) = blocker(&path[path.len() - 1]) {
        let closes = path.iter().position(|&n| n == next);
        path.push(next);
        if let Some(begin) = closes {
            path.drain(..begin);
            break;
        }
    }
    let names: Vec<String> = path
        .iter()
        .map(|&n| format!("`{}`", plugins[n].name))
        .collect();
    format!("plugins come after each other: {}", names.join(" after "))
}

#[cfg(test)]
mod tests {
    use crate::catalogue::{PluginPlace, plugin_order};

    fn places<'a>(list: &[(&'a str, &'a [&'a str])]) -> Vec<PluginPlace<'a>> {
        let place = |&(name, after): &(&'a str, &'a [&'a str])| PluginPlace { name, after };
        list.iter().map(place).collect()
    }

    fn message(list: &[(&str, &[&str])]) -> String {
        let outcome = plugin_order(&places(list), &["absent"]);
        outcome.expect_err("refused").to_string()
    }

    #[test]
    fn plugins_keep_their_order_except_after_those_that_they_name() {
        let list = places(&[
            ("a", &["c"]),
            ("b", &[]),
            ("c", &["absent"]),
            ("d", &["a"]),
            ("c", &[]),
        ]);
        let order = plugin_order(&list, &["absent"]).expect("an order");
        assert_eq!(order, [1, 2, 4, 0, 3]);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let text = message(&[("a", &["x"]), ("b", &[])]);
        assert!(
            text.contains("`a` comes after `x`, which does not exist; the plugins are a, b"),
            "{text}"
        );
    }

    #[test]
    fn a_cycle_is_refused_and_named() {
        let text = message(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]);
        assert!(
            text.contains("come after each other: `b` after `c` after `b`"),
            "{text}"
        );
        let text = message(&[("a", &["a"])]);
        assert!(text.contains("`a` after `a`"), "{text}");
    }
}
