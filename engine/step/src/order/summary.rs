//! Descriptions of systems in their order of execution.

use super::system::RegisteredSystem;
use crate::system_name::short_name;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ApplyDeferred;
use bevy_ecs::system::ScheduleSystem;
use nestar_engine_data::Stores;
use std::any::TypeId;
use std::sync::atomic::Ordering::Relaxed;

/// Describes a system in the order of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemSummary {
    /// Name of its set; `None` if it was added to the schedule directly.
    pub set: Option<String>,
    /// Name, without the modules of its function.
    pub name: String,
    /// Fields that it accesses, in the order of its signature.
    pub fields: Vec<FieldUse>,
}

/// Describes the access of a system to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldUse {
    /// Name of the field.
    pub field: &'static str,
    /// `true` if the system may change the field.
    pub writes: bool,
    /// Number of halo layers that it reads; the halo is exchanged before or in the system if it is stale.
    pub layers: usize,
    /// `true` if the field holds intermediate values of one method.
    pub working: bool,
}

impl SystemSummary {
    /// Describes a registered system.
    pub(super) fn of(added: &RegisteredSystem, world: &World) -> Self {
        let stores = world.resource::<Stores>().all();
        let is_working = |field: &str| {
            let mut named = stores.iter().filter(|store| store.name == field);
            named.any(|store| store.of(world).spec().working)
        };
        let fields = added.declared.iter().map(|access| FieldUse {
            field: access.field,
            writes: access.writes,
            layers: access.depth.load(Relaxed),
            working: is_working(access.field),
        });
        Self {
            set: Some(format!("{:?}", added.set)),
            name: short_name(&added.name),
            fields: fields.collect(),
        }
    }
}

/// Returns `true` if `system` only applies commands, which bevy inserts.
pub(super) fn is_synchronisation(system: &ScheduleSystem) -> bool {
    system.system_type() == TypeId::of::<ApplyDeferred>()
}
