//! Describes the order of systems in a step, identically on every machine.

use bevy_ecs::schedule::graph::Direction;
use bevy_ecs::schedule::{NodeId, ScheduleGraph, SystemKey, SystemSet};
use bevy_ecs::system::ScheduleSystem;
use nestar_engine::step::Phase;
use nestar_engine::{Engine, Error};
use std::fmt::Write as _;

/// Describes the phases, their sets with run conditions, and the systems in them, in order of execution. Empty sets are listed as
/// well, because plugins may add systems to them.
///
/// The setup of the simulation must not be [finished](Engine::finish_setup) yet, because run conditions are hidden once the
/// schedules are built; this function builds them.
///
/// # Errors
/// See [`Engine::finish_setup`].
pub fn describe(sim: &mut Engine) -> Result<String, Error> {
    let sets = Phase::ALL.map(|phase| sets(sim.schedule(phase).graph()));
    sim.finish_setup()?;
    let mut text = String::new();
    for (phase, sets) in Phase::ALL.into_iter().zip(sets) {
        // writing to a string cannot fail
        let _ = writeln!(text, "{phase:?}");
        describe_phase(sim, phase, &sets, &mut text);
    }
    Ok(text)
}

/// A named set of systems.
struct NamedSet {
    node: NodeId,
    name: String,
    /// Conditions under which its systems run.
    conditions: Vec<String>,
}

fn describe_phase(sim: &mut Engine, phase: Phase, sets: &[NamedSet], text: &mut String) {
    let named = |(key, system): (SystemKey, &ScheduleSystem)| {
        (NodeId::System(key), system.name().to_string())
    };
    let systems = sim.schedule(phase).systems().into_iter().flatten();
    let systems: Vec<(NodeId, String)> = systems.map(named).collect();
    let line = |(node, name): (NodeId, String)| match sim.access(phase, &name) {
        access if access.is_empty() => (node, short(&name)),
        access => (node, format!("{}: {access}", short(&name))),
    };
    let systems: Vec<(NodeId, String)> = systems.into_iter().map(line).collect();
    let graph = sim.schedule(phase).graph();
    for (n, set) in sets.iter().enumerate() {
        let conditions = if set.conditions.is_empty() {
            String::new()
        } else {
            format!("  (if {})", set.conditions.join(" and "))
        };
        let _ = writeln!(text, "  {} {}{conditions}", n + 1, set.name);
        for (_, system) in systems
            .iter()
            .filter(|(node, _)| lies_in(graph, *node, set.node))
        {
            let _ = writeln!(text, "      {system}");
        }
    }
    let loose = |node: NodeId| !sets.iter().any(|set| lies_in(graph, node, set.node));
    for (_, system) in systems.iter().filter(|(node, _)| loose(*node)) {
        let _ = writeln!(text, "  outside the sets: {system}");
    }
}

/// Returns the outermost sets of a phase in topological order; ties keep the order in which they were named.
fn sets(graph: &ScheduleGraph) -> Vec<NamedSet> {
    let mut waiting: Vec<NamedSet> = graph
        .system_sets
        .iter()
        .filter(|(key, set, _)| is_named(*set) && !is_inner(graph, NodeId::Set(*key)))
        .map(|(key, set, _)| NamedSet {
            node: NodeId::Set(key),
            name: format!("{set:?}"),
            conditions: conditions(graph, NodeId::Set(key)),
        })
        .collect();
    let mut placed = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let follows = |set: &NamedSet, other: &NamedSet| {
            graph.dependency().contains_edge(other.node, set.node)
        };
        let free = waiting
            .iter()
            .position(|set| !waiting.iter().any(|other| follows(set, other)));
        // a cycle of sets is reported when the schedules are built
        placed.push(waiting.remove(free.unwrap_or(0)));
    }
    placed
}

/// Returns `true` for explicitly named sets: bevy also creates sets for each system and for groups of systems.
fn is_named(set: &dyn SystemSet) -> bool {
    set.system_type().is_none() && !set.is_anonymous()
}

/// Returns `true` if a set lies in a named set, such as a batch of systems that a plugin adds.
fn is_inner(graph: &ScheduleGraph, node: NodeId) -> bool {
    let mut parents = graph
        .hierarchy()
        .neighbors_directed(node, Direction::Incoming);
    parents.any(|parent| match parent {
        NodeId::Set(key) => {
            graph.system_sets.get(key).is_some_and(is_named) || is_inner(graph, parent)
        }
        NodeId::System(_) => false,
    })
}

/// Returns the names of the conditions of a set and of all enclosing sets.
fn conditions(graph: &ScheduleGraph, node: NodeId) -> Vec<String> {
    let NodeId::Set(key) = node else {
        return Vec::new();
    };
    let own = graph.system_sets.get_conditions(key).unwrap_or_default();
    let mut names: Vec<String> = own
        .iter()
        .map(|condition| short(&condition.condition.name().to_string()))
        .collect();
    for parent in graph
        .hierarchy()
        .neighbors_directed(node, Direction::Incoming)
    {
        names.extend(conditions(graph, parent));
    }
    names
}

/// Returns `true` if `node` lies in `set`, directly or through other sets.
fn lies_in(graph: &ScheduleGraph, node: NodeId, set: NodeId) -> bool {
    graph
        .hierarchy()
        .neighbors_directed(node, Direction::Incoming)
        .any(|parent| parent == set || lies_in(graph, parent, set))
}

/// Returns a type name without modules: `restrict<Gas>` for `nestar_engine::data::operations::restrict<…::Gas>`. A closure is
/// named after the enclosing function or plugin.
fn short(name: &str) -> String {
    let text = without_modules(name);
    let Some(function) = text.strip_suffix("::{{closure}}") else {
        return text;
    };
    let plugin = function.strip_prefix('<');
    match plugin.and_then(|text| text.strip_suffix(" as Plugin>::build")) {
        Some(plugin) => format!("closure of the plugin {plugin}"),
        None => format!("closure of {function}"),
    }
}

fn without_modules(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}');
        let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        text.push_str(last_names(path));
        let next = behind.find(is_path).unwrap_or(behind.len());
        text.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    text
}

fn last_names(path: &str) -> &str {
    // the part after a type in brackets, as in `<Drag as Plugin>::build`
    if path.starts_with("::") {
        return path;
    }
    let without_closures = path.trim_end_matches("::{{closure}}");
    without_closures
        .rfind("::")
        .map_or(path, |at| &path[at + 2..])
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_of_types_lose_their_modules() {
        assert_eq!(
            short("nestar_engine::data::operations::restrict<nestar_systems::fields::Gas>"),
            "restrict<Gas>"
        );
        assert_eq!(
            short("<drag::Drag as nestar_engine::step::Plugin>::build::{{closure}}"),
            "closure of the plugin Drag"
        );
        assert_eq!(short("a::b::main::{{closure}}"), "closure of main");
        assert_eq!(short("split source heat"), "split source heat");
        assert_eq!(short("fluid"), "fluid");
    }
}
