//! The order of the systems of one set, from what plugins state and from the order of the plugins.

use super::OrderNode;
use super::system::{Direction, RegisteredSystem, Statement};

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
