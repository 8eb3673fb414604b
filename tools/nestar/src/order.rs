//! The resolved order of a step, as a text that is the same on every machine.

use bevy_ecs::schedule::graph::Direction;
use bevy_ecs::schedule::{NodeId, ScheduleGraph, SystemKey, SystemSet};
use bevy_ecs::system::ScheduleSystem;
use nestar_engine::step::Phase;
use nestar_engine::{Engine, Error};
use std::fmt::Write as _;

/// The phases, their sets in order (with the conditions under which they run) and the systems in them, in the order in
/// which they run. A set without systems is listed too: it is where a plugin may put some.
///
/// Give it a simulation that is not [`ready`](Engine::finish_setup) yet: the conditions are lost to sight when the schedules
/// are built, and this is done here.
///
/// # Errors
/// As [`Engine::finish_setup`].
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

/// A set of systems.
struct NamedSet {
    node: NodeId,
    name: String,
    /// Under which conditions its systems run.
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
        let _ = writeln!(text, "  outside of the sets: {system}");
    }
}

/// The sets of a phase that lie in no other one, each behind all sets that it has to follow, otherwise in the order in which
/// they were named.
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
        // where sets follow each other in a circle, building the schedules fails and says so
        placed.push(waiting.remove(free.unwrap_or(0)));
    }
    placed
}

/// Whether a set was named by somebody: systems have sets of their own, and bevy makes others for groups of systems.
fn is_named(set: &dyn SystemSet) -> bool {
    set.system_type().is_none() && !set.is_anonymous()
}

/// Whether a set lies in a named one, as the batches of systems do that plugins add to a set.
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

/// Names of the conditions of a set and of all sets around it.
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

/// Whether `node` lies in `set`, directly or through other sets.
fn lies_in(graph: &ScheduleGraph, node: NodeId, set: NodeId) -> bool {
    graph
        .hierarchy()
        .neighbors_directed(node, Direction::Incoming)
        .any(|parent| parent == set || lies_in(graph, parent, set))
}

/// A type's name without the modules: `restrict<Gas>` of `nestar_engine::data::operations::restrict<…::Gas>`. A closure
/// is called by the function around it, or by the plugin that makes it.
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
    // what follows a type in brackets, as in `<Drag as Plugin>::build`
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
