//! Describes the order of systems in a step, identically on every machine.

use bevy_ecs::schedule::graph::Direction;
use bevy_ecs::schedule::{NodeId, ScheduleGraph, SystemSet};
use nestar_engine::step::{FieldUse, Phase, SystemSummary, short_name};
use nestar_engine::{Engine, Error};
use std::fmt::Write as _;

/// Describes the phases, their sets with run conditions, and the systems in them, in order of execution, one per line.
/// Empty sets are listed as well, because plugins may add systems to them. The halo layers that a system reads are exchanged
/// before it, or in it, if they are stale.
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
        describe_phase(&sim.order(phase), &sets, &mut text);
    }
    Ok(text)
}

/// A named set of systems.
struct NamedSet {
    name: String,
    /// Conditions under which its systems run.
    conditions: Vec<String>,
}

impl NamedSet {
    /// Returns the name of the set number `n` and the conditions.
    fn label(&self, n: usize) -> String {
        match self.conditions.is_empty() {
            true => format!("{n} {}", self.name),
            false => format!("{n} {} (if {})", self.name, self.conditions.join(" and ")),
        }
    }
}

fn describe_phase(systems: &[SystemSummary], sets: &[NamedSet], text: &mut String) {
    let listed = sets.iter().enumerate();
    let mut labels: Vec<(Option<&str>, String)> = listed
        .map(|(n, set)| (Some(set.name.as_str()), set.label(n + 1)))
        .collect();
    for set in systems.iter().map(|system| system.set.as_deref()) {
        if labels.iter().all(|(known, _)| *known != set) {
            labels.push((set, set.unwrap_or("outside the sets").into()));
        }
    }
    let width = labels.iter().map(|(_, label)| label.len());
    let width = width.max().unwrap_or(0);
    for (set, label) in &labels {
        let mut label = label.as_str();
        let of_set = systems
            .iter()
            .filter(|system| system.set.as_deref() == *set);
        let lines: Vec<String> = of_set.map(line).collect();
        if lines.is_empty() {
            let _ = writeln!(text, "  {label}");
        }
        for line in lines {
            let _ = writeln!(text, "  {label:width$}  {line}");
            label = "";
        }
    }
}

/// Describes a system: its name, and the fields that it reads and writes.
fn line(system: &SystemSummary) -> String {
    let mut parts = Vec::new();
    for (verb, writes) in [("reads", false), ("writes", true)] {
        let uses = system.fields.iter().filter(|used| used.writes == writes);
        let (working, fields): (Vec<&FieldUse>, Vec<&FieldUse>) =
            uses.partition(|used| used.working);
        let mut names: Vec<String> = Vec::new();
        for name in fields.into_iter().map(field) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !working.is_empty() {
            names.push("working fields".into());
        }
        if !names.is_empty() {
            parts.push(format!("{verb} {}", names.join(", ")));
        }
    }
    match parts.is_empty() {
        true => system.name.clone(),
        false => format!("{}: {}", system.name, parts.join("; ")),
    }
}

fn field(used: &FieldUse) -> String {
    match used.layers {
        0 => used.field.into(),
        1 => format!("{} (1 halo layer)", used.field),
        layers => format!("{} ({layers} halo layers)", used.field),
    }
}

/// Returns the outermost sets of a phase in topological order; ties keep the order in which they were named.
fn sets(graph: &ScheduleGraph) -> Vec<NamedSet> {
    let mut waiting: Vec<(NodeId, NamedSet)> = graph
        .system_sets
        .iter()
        .filter(|(key, set, _)| is_named(*set) && !is_inner(graph, NodeId::Set(*key)))
        .map(|(key, set, _)| {
            let (name, node) = (format!("{set:?}"), NodeId::Set(key));
            let conditions = conditions(graph, node);
            (node, NamedSet { name, conditions })
        })
        .collect();
    let mut placed = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let follows = |set: NodeId, other: NodeId| graph.dependency().contains_edge(other, set);
        let free = waiting
            .iter()
            .position(|(set, _)| !waiting.iter().any(|(other, _)| follows(*set, *other)));
        // a cycle of sets is reported when the schedules are built
        placed.push(waiting.remove(free.unwrap_or(0)).1);
    }
    placed
}

/// Returns `true` for explicitly named sets: bevy also creates sets for each system and for groups of systems.
fn is_named(set: &dyn SystemSet) -> bool {
    set.system_type().is_none() && !set.is_anonymous()
}

/// Returns `true` if a set lies in a named set.
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
        .map(|condition| short_name(&condition.condition.name().to_string()))
        .collect();
    for parent in graph
        .hierarchy()
        .neighbors_directed(node, Direction::Incoming)
    {
        names.extend(conditions(graph, parent));
    }
    names
}
