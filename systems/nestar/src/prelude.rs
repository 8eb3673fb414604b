//! Names for programs with additional physics, at most 60; `docs/design/authors-api.md` lists them.
//!
//! The names of single subjects are in modules of their own: [`entities`](crate::entities) for components of patches and
//! particles, [`stiff`](crate::stiff) for sub-cycled sources, [`math`](crate::math) for further functions, and
//! [`systems::order`](crate::systems::order) for further sets of a step.

pub use crate::app::App;
pub use crate::assemble::Simulation;
/// Needed by the derives of components and resources.
pub use bevy_ecs;
pub use bevy_ecs::prelude::{Component, In, Query, Res, ResMut, Resource};
pub use nestar_deck::{DeckError, TableFile, deck};
pub use nestar_device::math::{cos, exp, ln, pow, sin, sqrt, sum3};
pub use nestar_device::{
    Face, FaceStencil, Ghost, Place, Real, Stencil, Table, device, interpolate, random,
};
pub use nestar_engine::comm::{Comm, Reduce};
pub use nestar_engine::data::{Correct, Field, FieldSpec, LevelRows};
pub use nestar_engine::mesh::LevelClock;
pub use nestar_engine::step::{Around, Read, Write};
pub use nestar_engine::{Engine, Error, Plugin, PluginState};
pub use nestar_kernels::hydro::{Conserved, internal_energy, kinetic_energy, pressure};
pub use nestar_kernels::mesh::nothing;
pub use nestar_scenarios::{Parameters, Setting};
pub use nestar_systems::cooling::CoolingLaws as _;
pub use nestar_systems::declare::{Declare as _, GasFrame};
pub use nestar_systems::fields::{Gas, GasModel};
pub use nestar_systems::gravity::GravitySources as _;
pub use nestar_systems::hydro::{InitialState, Primitive};
pub use nestar_systems::order::{Advance, Initialise, Split};
pub use nestar_systems::register::Register as _;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    const PRELUDE: &str = include_str!("prelude.rs");
    const PAGE: &str = include_str!("../../../docs/design/authors-api.md");

    /// Returns the names that `pub use` lines import, without those imported as `_`.
    fn imported() -> BTreeSet<&'static str> {
        let uses = PRELUDE.split("\npub use ").skip(1);
        let uses = uses.map(|text| text.split(';').next().unwrap_or_default());
        let names = uses.flat_map(|text| match text.split_once('{') {
            Some((_, list)) => list.trim_end_matches('}').split(',').collect(),
            None => vec![text.rsplit("::").next().unwrap_or_default()],
        });
        let names = names.map(str::trim).filter(|name| !name.is_empty());
        names.filter(|name| !name.ends_with(" as _")).collect()
    }

    /// Returns the code spans in the second column of the first table after a heading of the page.
    fn listed(heading: &str) -> Vec<&'static str> {
        let section = PAGE.split(heading).nth(1).expect("the section exists");
        let table = section.lines().skip_while(|line| !line.starts_with('|'));
        let rows = table.take_while(|line| line.starts_with('|')).skip(2);
        let cells = rows.map(|line| line.split('|').nth(2).unwrap_or_default());
        cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn the_page_lists_the_prelude_which_has_at_most_60_names() {
        let listed = listed("\n## Prelude\n");
        assert!(listed.len() <= 60, "{} names", listed.len());
        let count = format!("imports {} names", listed.len());
        assert!(PAGE.contains(&count), "the page should say: {count}");
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(unique.len(), listed.len());
        assert_eq!(unique, imported());
    }

    #[test]
    fn programs_call_only_listed_methods_which_are_at_most_80() {
        let listed = listed("\n## Methods\n");
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert!(unique.len() <= 80, "{} methods", unique.len());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a text");
        let programs = std::fs::read_dir(root.join("scenarios/programs")).expect("a folder");
        let programs = programs.map(|entry| entry.expect("an entry").path());
        let programs = programs.filter(|path| path.extension().is_some_and(|e| e == "rs"));
        let mut texts: Vec<String> = programs.map(|path| read(&path)).collect();
        texts.push(read(&root.join("docs/physics.md")));
        for text in &texts {
            for receiver in ["sim", "gas", "field", "potential", "rows", "app", "comm"] {
                for call in text.split(&format!("{receiver}.")).skip(1) {
                    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let (method, rest) = call.split_at(call.find(|c| !name(c)).unwrap_or(0));
                    let called = rest.starts_with('(') || rest.starts_with("::<");
                    assert!(!called || listed.contains(&method), "{receiver}.{method}");
                }
            }
        }
    }
}
