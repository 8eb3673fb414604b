//! A registered system: its name, what it accesses and requires, what its plugin states about its order, and its
//! description.

use super::{OrderNode, SystemNamed};
use crate::access::FieldAccess;
use crate::activity::short_name;
use crate::{Error, Phase};
use bevy_ecs::component::{ComponentId, IS_RESOURCE};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{ApplyDeferred, InternedSystemSet};
use bevy_ecs::system::{
    BoxedSystem, IntoSystem, IsFunctionSystem, PipeSystem, ScheduleSystem, System, SystemAccess,
    SystemParam, SystemParamItem,
};
use nestar_engine_comm::Halos;
use nestar_engine_data::{FaultBox, Field, Stores};
use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Return type of systems: nothing, or an error that stops the run.
pub trait SystemOutcome: Sized + 'static {
    /// Wraps the system so that its error stops the run.
    fn with_error_handling(system: impl System<In = (), Out = Self>) -> BoxedSystem;
}

impl SystemOutcome for () {
    fn with_error_handling(system: impl System<In = (), Out = Self>) -> BoxedSystem {
        Box::new(system)
    }
}

impl<E: Into<Error> + 'static> SystemOutcome for Result<(), E> {
    fn with_error_handling(system: impl System<In = (), Out = Self>) -> BoxedSystem {
        let name = system.name();
        let report = IntoSystem::into_system(report_error::<E>);
        Box::new(PipeSystem::new(system, report, name))
    }
}

/// Reports the error of a system.
fn report_error<E: Into<Error> + 'static>(In(outcome): In<Result<(), E>>, faults: Res<FaultBox>) {
    if let Err(error) = outcome {
        faults.fail(error.into());
    }
}

/// A system without state of its own: a function, a closure that does not change what it has captured, or a system made of them.
///
/// What a closure changes is not in snapshots. A restarted run would begin with its initial value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a system without state",
    label = "not a system without state",
    note = "a closure must not change what it has captured, which would be lost at a restart; keep it in a resource that \
            `Engine::register_state` stores in snapshots"
)]
pub trait StatelessSystem<O, M>: IntoSystem<(), O, M> {}

impl<O, S: System<In = (), Out = O>> StatelessSystem<O, ()> for S {}

macro_rules! stateless_functions {
    () => { stateless_functions!(@functions); };
    ($first:ident $($others:ident)*) => {
        stateless_functions!(@functions $first $($others)*);
        stateless_functions!($($others)*);
    };
    (@functions $($parameter:ident)*) => {
        impl<O, F, $($parameter: SystemParam),*>
            StatelessSystem<O, (IsFunctionSystem, fn($($parameter,)*) -> O)> for F
        where
            F: IntoSystem<(), O, (IsFunctionSystem, fn($($parameter,)*) -> O)>,
            for<'a> &'a F: Fn($($parameter),*) -> O + Fn($(SystemParamItem<$parameter>),*) -> O,
        {}
    };
}

stateless_functions!(P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15 P16);

/// Direction of a statement about the order of two systems.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Before,
    After,
}

/// Refers to the systems of a set.
pub struct SystemReference {
    pub(super) set: InternedSystemSet,
    /// Name of the systems, if the set is [`SystemNamed`].
    pub(super) named: Option<String>,
}

/// A system, given by its function, or a set of systems, in a statement about their order. It is bevy's `IntoSystemSet`,
/// also for functions that return `Result<(), Error>`.
pub trait IntoSystemReference<M> {
    /// Returns the reference.
    fn into_reference(self) -> SystemReference;
}

impl<S: SystemSet> IntoSystemReference<()> for S {
    fn into_reference(self) -> SystemReference {
        let named = (&self as &dyn Any).downcast_ref::<SystemNamed>();
        SystemReference {
            set: self.intern(),
            named: named.map(|SystemNamed(name)| name.clone()),
        }
    }
}

impl<O: SystemOutcome, M, F: IntoSystem<(), O, M>> IntoSystemReference<fn(O, M)> for F {
    fn into_reference(self) -> SystemReference {
        let system = IntoSystem::into_system(self);
        let set = system.default_system_sets().into_iter().next();
        SystemReference {
            set: set.unwrap_or_else(|| SystemNamed(system.name().to_string()).intern()),
            named: None,
        }
    }
}

/// States that a system runs before or after others.
pub(super) struct Statement {
    pub direction: Direction,
    pub other: SystemReference,
}

/// Describes a registered system.
pub(super) struct RegisteredSystem {
    pub phase: Phase,
    pub set: InternedSystemSet,
    /// Number of its plugin, in the order of the program.
    pub plugin: usize,
    /// Position in the order of registration.
    pub number: usize,
    /// Name, unique in its phase.
    pub name: String,
    /// The system, until its schedule is built.
    pub system: Option<BoxedSystem>,
    /// Sets of this system alone or of its function, which statements of other systems name.
    pub names: Vec<InternedSystemSet>,
    pub statements: Vec<Statement>,
    /// `true` if it runs after earlier systems of its plugin and set that are in sequence.
    pub is_in_sequence: bool,
    /// `true` if it neither moves particles to other patches nor removes any.
    pub keeps_particles: bool,
    /// `true` if the engine has added it to a field, so that its time counts as that of the mesh.
    pub is_of_mesh: bool,
    pub declared: Vec<Arc<FieldAccess>>,
    pub access: SystemAccess,
    pub resources: Resources,
}

impl RegisteredSystem {
    /// Returns the field accesses whose halo must be up to date before the system runs.
    pub fn needs(&self) -> impl Iterator<Item = &FieldAccess> {
        let declared = self.declared.iter().map(|declaration| &**declaration);
        declared.filter(|d| d.depth.load(Relaxed) > 0 && !d.manages_itself.load(Relaxed))
    }

    /// Returns `true` if it takes the whole world and may change any field.
    pub fn takes_all(&self) -> bool {
        self.access.is_exclusive()
    }

    /// Returns `true` if it may write a resource.
    pub fn may_write(&self, resource: Option<ComponentId>) -> bool {
        match &self.access {
            SystemAccess::None => false,
            SystemAccess::Shared(access) => {
                resource.is_some_and(|id| access.combined_access().has_write(id))
            }
            SystemAccess::Exclusive => true,
        }
    }

    /// Returns `true` if it may wait for other ranks while it runs.
    pub fn waits(&self, world: &World) -> bool {
        self.may_write(world.component_id::<Halos>())
    }

    /// Returns `true` if it may move particles of the resources `particles` to other patches, or remove some.
    pub fn moves_particles(&self, particles: &[ComponentId]) -> bool {
        !self.keeps_particles && particles.iter().any(|&id| self.may_write(Some(id)))
    }

    /// Returns `true` if it may query entities.
    pub fn queries_entities(&self) -> bool {
        match &self.access {
            SystemAccess::None => false,
            SystemAccess::Shared(access) => {
                let mut each = access.filtered_accesses().iter();
                each.any(|access| !access.with_filters().any(|id| id == IS_RESOURCE))
            }
            SystemAccess::Exclusive => true,
        }
    }
}

/// Options of a registered system: its order in its set, and what its signature cannot express.
pub struct SystemOptions<'a>(pub(super) &'a mut RegisteredSystem);

impl SystemOptions<'_> {
    /// States that the system runs after another one, given by its function, by [`SystemNamed`], or by a set.
    pub fn after<M>(&mut self, other: impl IntoSystemReference<M>) -> &mut Self {
        self.state(Direction::After, other.into_reference())
    }

    /// States that the system runs before another one, as [`SystemOptions::after`].
    pub fn before<M>(&mut self, other: impl IntoSystemReference<M>) -> &mut Self {
        self.state(Direction::Before, other.into_reference())
    }

    fn state(&mut self, direction: Direction, other: SystemReference) -> &mut Self {
        self.0.statements.push(Statement { direction, other });
        self
    }

    /// Runs the system after those systems of its plugin and set that were added earlier and are in sequence as well.
    pub fn in_sequence(&mut self) -> &mut Self {
        self.0.is_in_sequence = true;
        self
    }

    /// Declares that the system neither moves particles to other patches nor removes any, although it may write
    /// particles: no update of their entities follows it.
    pub fn keeps_particles(&mut self) -> &mut Self {
        self.0.keeps_particles = true;
        self
    }

    /// Counts the time of the system as that of the mesh instead of its plugin.
    pub(crate) fn of_mesh(&mut self) -> &mut Self {
        self.0.is_of_mesh = true;
        self
    }

    /// Returns the set of this system alone.
    pub(super) fn node(&self) -> OrderNode {
        OrderNode::System(self.0.number)
    }

    /// Declares that the system reads `depth` halo layers of field `F`.
    ///
    /// # Panics
    /// If the signature has no handle of the field.
    pub fn halo_width<F: Field>(&mut self, depth: usize) -> &mut Self {
        self.each(F::NAME, |declaration| {
            declaration.depth.store(depth, Relaxed)
        })
    }

    /// Omits the exchange of field `F` before the system: the system starts and completes it.
    ///
    /// # Panics
    /// If the signature has no handle of the field.
    pub fn manages_own_halo<F: Field>(&mut self) -> &mut Self {
        self.each(F::NAME, |declaration| {
            declaration.manages_itself.store(true, Relaxed)
        })
    }

    /// Declares that field `F` may be missing: its handles in the signature are an `Option`.
    ///
    /// # Panics
    /// If the signature has no handle of the field.
    pub fn optional<F: Field>(&mut self) -> &mut Self {
        self.each(F::NAME, |declaration| {
            declaration.is_optional.store(true, Relaxed)
        })
    }

    fn each(&mut self, field: &str, change: impl Fn(&FieldAccess)) -> &mut Self {
        let declared = self.0.declared.iter();
        let of_field: Vec<_> = declared.filter(|d| d.field == field).collect();
        assert!(
            !of_field.is_empty(),
            "`{}` has no `Read` or `Write` of the field `{field}`",
            self.0.name
        );
        of_field.into_iter().for_each(|d| change(d));
        self
    }
}

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
