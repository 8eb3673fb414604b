//! The order of the systems of one set, from what plugins state and from the order of the plugins; messages about
//! ambiguity.

use super::OrderNode;
use super::system::{Direction, RegisteredSystem, Statement};
use crate::access::FieldAccess;
use crate::activity::short_name;
use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::*;

/// Returns the systems of a set in an order that satisfies all statements. Systems without a statement keep the order
/// of registration. A system that is stated to run before an earlier one runs immediately before it.
pub(super) fn execution_order<'a>(members: &[&'a RegisteredSystem]) -> Vec<&'a RegisteredSystem> {
    let mut visits = Visits {
        members,
        predecessors: stated_predecessors(members),
        visited: vec![false; members.len()],
        ordered: Vec::with_capacity(members.len()),
    };
    (0..members.len()).for_each(|member| visits.visit(member));
    visits.ordered
}

/// Depth-first search through the predecessors of each system.
struct Visits<'m, 'a> {
    members: &'m [&'a RegisteredSystem],
    predecessors: Vec<Vec<usize>>,
    visited: Vec<bool>,
    ordered: Vec<&'a RegisteredSystem>,
}

impl Visits<'_, '_> {
    /// Appends the predecessors of a system, then the system. Cycles are reported when the schedule is built.
    fn visit(&mut self, member: usize) {
        if std::mem::replace(&mut self.visited[member], true) {
            return;
        }
        for predecessor in self.predecessors[member].clone() {
            self.visit(predecessor);
        }
        self.ordered.push(self.members[member]);
    }
}

/// Returns, for each system, the systems that are stated to run before it, in the order of registration.
fn stated_predecessors(members: &[&RegisteredSystem]) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); members.len()];
    for (n, member) in members.iter().enumerate() {
        let with_name = |statement: &Statement| {
            let of = |other: &usize| members[*other].names.contains(&statement.other.set);
            (0..members.len()).filter(of).collect::<Vec<usize>>()
        };
        for statement in &member.statements {
            match statement.direction {
                Direction::After => predecessors[n].extend(with_name(statement)),
                Direction::Before => with_name(statement)
                    .into_iter()
                    .for_each(|other| predecessors[other].push(n)),
            }
        }
        predecessors[n].extend(previous_in_sequence(members, n));
    }
    predecessors
        .iter_mut()
        .for_each(|each| each.sort_unstable());
    predecessors
}

/// Returns the latest system before number `n` with which that one is in sequence.
fn previous_in_sequence(members: &[&RegisteredSystem], n: usize) -> Option<usize> {
    let member = members[n];
    let precedes = |other: &&RegisteredSystem| {
        member.is_in_sequence && other.is_in_sequence && other.plugin == member.plugin
    };
    members[..n].iter().rposition(precedes)
}

/// Returns the systems before position `n` of an execution order that run before its system for another reason than a
/// statement: they belong to other plugins, or are in sequence with it.
pub(super) fn implied_predecessors(ordered: &[&RegisteredSystem], n: usize) -> Vec<OrderNode> {
    let member = ordered[n];
    let runs_before = |other: &&RegisteredSystem| {
        let in_sequence = other.is_in_sequence && member.is_in_sequence;
        other.plugin != member.plugin || (in_sequence && other.number < member.number)
    };
    let before = ordered[..n].iter().copied().filter(runs_before);
    before
        .map(|other| OrderNode::System(other.number))
        .collect()
}

/// Two systems that access the same data without an order.
pub(super) struct Conflict<'a> {
    pub systems: [&'a RegisteredSystem; 2],
    /// Components and resources that both access; none if one of them takes the whole world.
    pub shared: &'a [ComponentId],
    /// Name of the plugin of both, or empty.
    pub plugin: &'a str,
}

impl Conflict<'_> {
    /// Returns the message: the systems, their set, the data, and what to write.
    pub fn message(&self, world: &World) -> String {
        let [a, b] = self
            .systems
            .map(|system| format!("`{}`", short_name(&system.name)));
        let phase = self.systems[0].phase;
        let set = match self.systems[0].set == self.systems[1].set {
            true => format!("the set `{phase:?}::{:?}`", self.systems[0].set),
            false => format!("the phase `{phase:?}`"),
        };
        let owner = match self.plugin {
            "" => String::new(),
            plugin => format!(" of the plugin `{plugin}`"),
        };
        format!(
            "the systems {a} and {b}{owner} have no order in {set}, but {}: state it by `sim.system_in(…).after(…)` or \
             `.before(…)` of one of them, or add both by `sim.chain_in(…)`",
            self.data(world)
        )
    }

    /// Returns the data on which the systems conflict.
    fn data(&self, world: &World) -> String {
        let mut all_of_world = self.systems.iter().filter(|system| system.takes_all());
        if let Some(system) = all_of_world.next() {
            return format!("`{}` takes the whole world", short_name(&system.name));
        }
        let [a, b] = self.systems;
        let mut data = Vec::new();
        for own in &a.declared {
            let named = format!("the field `{}`", own.field);
            let is_shared = b.declared.iter().any(|other| conflict(own, other));
            if is_shared && !data.contains(&named) {
                data.push(named);
            }
        }
        let names = self
            .shared
            .iter()
            .filter_map(|&id| world.components().get_name(id));
        let names = names.map(|name| name.shortname().to_string());
        let others = names.filter(|name| !name.starts_with("PoolResource<"));
        data.extend(others.map(|name| format!("`{name}`")));
        match data.is_empty() {
            true => "they access the same entities".into(),
            false => format!("both access {}", data.join(" and ")),
        }
    }
}

/// Returns `true` if two systems access the same field and one of them writes it.
fn conflict(one: &FieldAccess, other: &FieldAccess) -> bool {
    one.field == other.field && (one.writes || other.writes)
}
