//! Messages about systems whose order is ambiguous.

use super::system::RegisteredSystem;
use crate::access::FieldAccess;
use crate::system_name::short_name;
use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::*;

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
