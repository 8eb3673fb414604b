//! Resources that systems require; missing ones are found before the run.

use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemAccess;

/// Lists the resources that a system uses.
pub(super) struct Resources {
    ids: Vec<ComponentId>,
    /// Type names of the system's parameters.
    parameters: &'static str,
}

impl Resources {
    /// Collects the resources of a system; `parameters` is the type name of its bevy marker, which names its parameters.
    pub fn of(access: &SystemAccess, parameters: &'static str) -> Self {
        let all = match access {
            // written resources count as read
            SystemAccess::Shared(access) => access.combined_access().reads().as_finite_set(),
            _ => None,
        };
        Self {
            ids: all.map_or(Vec::new(), |all| all.iter().collect()),
            parameters,
        }
    }

    /// Returns the type name of a required resource that is missing.
    pub fn missing(&self, world: &World) -> Option<String> {
        let absent = |id: &&ComponentId| !world.contains_resource_by_id(**id);
        let absent = self.ids.iter().filter(absent);
        let mut names = absent.filter_map(|id| world.components().get_name(*id));
        names.find_map(|name| {
            let name = name.to_string();
            demands(self.parameters, &name).then_some(name)
        })
    }
}

/// Returns `true` if the resource `name` is a parameter that is not wrapped in `Option`.
fn demands(parameters: &str, name: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let resource = format!("{name}>");
    parameters.match_indices(&resource).any(|(at, _)| {
        let before = parameters[..at].trim_end_matches("'_, ");
        let mut kinds = ["Res<", "ResMut<"].into_iter();
        let path = kinds.find_map(|kind| before.strip_suffix(kind));
        path.is_some_and(|path| !path.trim_end_matches(is_path).ends_with("Option<"))
    })
}
