//! Schedules of all phases: systems in sets, with the halo exchanges that their signatures require.
//!
//! Systems of one plugin have the order in a set that the plugin states by `.before`, `.after` or as a chain. If two of
//! them access the same data without an order, the setup fails. Systems of different plugins run in the order in which
//! the plugins are built, unless one of them states otherwise.

mod sequence;
mod system;
#[cfg(test)]
mod tests;

pub use system::{
    FieldUse, IntoSystemReference, StatelessSystem, SystemOptions, SystemOutcome, SystemReference,
    SystemSummary,
};

use super::access::FieldAccesses;
use super::activity::{Activity, short_name};
use super::{AlignedLevels, Phase, StepSet};
use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{
    ConflictingSystems, InternedSystemSet, IntoScheduleConfigs, LogLevel, NodeId,
    ScheduleBuildError, ScheduleBuildSettings, ScheduleBuildWarning, ScheduleGraph,
    SingleThreadedExecutor, SystemKey,
};
use bevy_ecs::system::{BoxedSystem, IntoSystem, System};
use nestar_engine_comm::{Ranks, RanksError, exchange, particle_entities};
use nestar_engine_data::{FaultBox, StoreRef, Stores};
use nestar_engine_device::ComputeDevice;
use nestar_engine_mesh::{LevelClock, PATCH};
use sequence::{Conflict, execution_order, implied_predecessors};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use system::{Direction, RegisteredSystem, Resources};

/// Set of the systems with a name, for statements about functions that are registered by name: `.after(SystemNamed("source
/// heat".into()))`. The setup fails if the phase has no system of that name.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
pub struct SystemNamed(pub String);

/// Set of a single system in a schedule, by the number of the registered system.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OrderNode {
    /// The halo exchange before a registered system.
    Exchange(usize),
    /// A registered system.
    System(usize),
    /// The update of particle entities after a registered system.
    Entities(usize),
}

/// Run condition of a system: no fault has been reported. It records that the system begins; without an owner, its time
/// counts to the system before it.
fn begin_system(
    owner: Option<usize>,
    name: &str,
) -> impl Fn(Res<FaultBox>, Res<Activity>) -> bool + use<> {
    let name: Arc<str> = name.into();
    move |faults, activity| {
        activity.begin_system(owner, &name);
        faults.begin_system(&name)
    }
}

/// Returns the levels on which systems of `phase` work.
fn levels(world: &World, phase: Phase) -> RangeInclusive<usize> {
    let level = world.resource::<LevelClock>().level;
    match phase {
        Phase::Aligned => world.resource::<AlignedLevels>().levels(),
        _ => level..=level,
    }
}

/// Holds the schedules of all phases.
pub struct Schedules {
    schedules: [Schedule; Phase::COUNT],
    added: Vec<RegisteredSystem>,
    /// Names of the plugins, in the order in which they add systems.
    plugins: Vec<String>,
    /// Number of the plugin that adds systems now.
    plugin: usize,
    /// Owner of the time of each plugin.
    owners: Vec<usize>,
    /// Resources that hold particles.
    particles: Vec<ComponentId>,
    built: bool,
}

impl Default for Schedules {
    fn default() -> Self {
        Self {
            schedules: Phase::ALL.map(new_schedule),
            added: Vec::new(),
            plugins: vec![String::new()],
            plugin: 0,
            owners: Vec::new(),
            particles: Vec::new(),
            built: false,
        }
    }
}

/// Creates a single-threaded schedule in which an ambiguous order is an error. Systems are parallel inside
/// and may wait for other ranks.
fn new_schedule(phase: Phase) -> Schedule {
    let mut schedule = Schedule::new(phase);
    schedule.set_executor(SingleThreadedExecutor::new());
    schedule.set_build_settings(ScheduleBuildSettings {
        ambiguity_detection: LogLevel::Error,
        hierarchy_detection: LogLevel::Error,
        ..ScheduleBuildSettings::default()
    });
    schedule
}

impl Schedules {
    /// Returns the schedule of `phase`.
    pub fn get(&mut self, phase: Phase) -> &mut Schedule {
        &mut self.schedules[phase as usize]
    }

    /// Returns `true` if `phase` has no systems.
    #[must_use]
    pub fn is_empty(&self, phase: Phase) -> bool {
        let is_registered = self.of_phase(phase).next().is_some();
        !is_registered && self.schedules[phase as usize].systems_len() == 0
    }

    /// Returns `true` if a system of `set` may write the field `field`.
    pub(super) fn writes_in(&self, set: impl StepSet, field: &str) -> bool {
        let writes = |added: &RegisteredSystem| {
            let mut declared = added.declared.iter();
            added.takes_all() || declared.any(|access| access.writes && access.field == field)
        };
        let set = set.intern();
        self.added
            .iter()
            .any(|added| added.set == set && writes(added))
    }

    /// Starts the registrations of the plugin `name`; returns the number of the plugin that added systems before.
    pub(super) fn begin_plugin(&mut self, name: &str) -> usize {
        self.plugins.push(name.into());
        std::mem::replace(&mut self.plugin, self.plugins.len() - 1)
    }

    /// Continues the registrations of plugin number `outer`.
    pub(super) fn continue_plugin(&mut self, outer: usize) {
        self.plugin = outer;
    }

    /// Records a resource that holds particles.
    pub(super) fn add_particles(&mut self, resource: Option<ComponentId>) {
        self.particles.extend(resource);
    }

    /// Adds a system to a set. Initialising it here assigns the field accesses of its signature to it.
    ///
    /// # Panics
    /// If the schedules are built already.
    pub fn add<S: StepSet, O: SystemOutcome, M>(
        &mut self,
        world: &mut World,
        set: S,
        system: impl StatelessSystem<O, M>,
    ) -> SystemOptions<'_> {
        let system = O::with_error_handling(IntoSystem::into_system(system));
        let parameters = std::any::type_name::<M>();
        self.add_boxed(world, set.phase(), set.intern(), system, parameters)
    }

    fn add_boxed(
        &mut self,
        world: &mut World,
        phase: Phase,
        set: InternedSystemSet,
        mut system: BoxedSystem,
        parameters: &'static str,
    ) -> SystemOptions<'_> {
        let name = system.name().to_string();
        assert!(
            !self.built,
            "`{name}` is added after the order of the systems was resolved"
        );
        world.insert_resource(FieldAccesses::default());
        let access = system.initialize(world);
        let mut names = system.default_system_sets();
        names.push(SystemNamed(name.clone()).intern());
        let number = self.added.len();
        names.push(OrderNode::System(number).intern());
        self.added.push(RegisteredSystem {
            phase,
            set,
            plugin: self.plugin,
            number,
            name: self.unique_name(phase, name),
            system: Some(system),
            names,
            statements: Vec::new(),
            is_in_sequence: false,
            keeps_particles: false,
            is_of_mesh: false,
            declared: std::mem::take(&mut world.resource_mut::<FieldAccesses>().0),
            resources: Resources::of(&access, parameters),
            access,
        });
        SystemOptions(&mut self.added[number])
    }

    /// Returns a name that no system of `phase` has: `name`, with a number if necessary.
    fn unique_name(&self, phase: Phase, name: String) -> String {
        let is_used = |name: &str| self.of_phase(phase).any(|added| added.name == name);
        let numbered = (2..).map(|n| format!("{name} ({n})"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| !is_used(name)).unwrap_or(name)
    }

    fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &RegisteredSystem> {
        self.added.iter().filter(move |added| added.phase == phase)
    }

    /// Builds all schedules: resolves the order of the systems, inserts halo exchanges before systems that read halos,
    /// merges exchanges that can share messages, and inserts the updates of particle entities.
    ///
    /// # Errors
    /// Names of systems whose order is ambiguous or contradictory, or that need missing fields or resources.
    pub fn build(&mut self, world: &mut World) -> Result<(), String> {
        if std::mem::replace(&mut self.built, true) {
            return Ok(());
        }
        let registry = world.resource::<Stores>();
        for added in &mut self.added {
            let declared = &mut added.declared;
            declared.retain(|d| registry.has(d.field) || !d.is_optional.load(Relaxed));
        }
        self.check(world)?;
        let device = world.get_resource::<ComputeDevice>();
        let device = device.and_then(|compute| compute.device.as_ref());
        let activity = world.resource::<Activity>();
        self.owners = activity.add_owners(&self.owner_names(), device);
        let mut registry = world.resource_mut::<Stores>();
        for declaration in self.added.iter().flat_map(|added| &added.declared) {
            registry.reads(declaration.field, declaration.depth.load(Relaxed));
        }
        Phase::ALL
            .into_iter()
            .try_for_each(|phase| self.build_phase(world, phase))
    }

    /// Returns the plugins' names; empty for those without systems, whose time is none.
    fn owner_names(&self) -> Vec<String> {
        let has_systems = |plugin: usize| {
            let mut own = self.added.iter().filter(|added| added.plugin == plugin);
            own.any(|added| !added.is_of_mesh)
        };
        let name = |(n, name): (usize, &String)| match has_systems(n) {
            true => name.clone(),
            false => String::new(),
        };
        self.plugins.iter().enumerate().map(name).collect()
    }

    /// Returns the owner of the time of a system.
    fn owner_of(&self, number: usize) -> usize {
        let added = &self.added[number];
        match self.owners[added.plugin] {
            plugin if plugin != Activity::MESH && !added.is_of_mesh => plugin,
            _ => Activity::of_phase(added.phase),
        }
    }

    /// Builds the schedule of a phase twice: first with the stated order, which must be unambiguous, then with the order
    /// in which the systems run.
    fn build_phase(&mut self, world: &mut World, phase: Phase) -> Result<(), String> {
        let mut sets = self.add_systems(phase);
        self.initialise(world, phase)?;
        self.sort_sets(phase, &mut sets);
        let order = sets.concat();
        let followed = self.followed(&order);
        for set in sets {
            let mut previous: Option<OrderNode> = None;
            for number in set {
                let exchange = self.add_exchange(world, number, &order);
                let follower = followed
                    .contains(&number)
                    .then(|| self.add_follower(number));
                let nodes = [exchange, Some(OrderNode::System(number)), follower];
                for node in nodes.into_iter().flatten() {
                    if let Some(previous) = previous.replace(node) {
                        self.get(phase).configure_sets(node.after(previous));
                    }
                }
            }
        }
        self.initialise(world, phase)
    }

    /// Adds the systems of a phase to its schedule, with the order that plugins state and that of the plugins. Returns
    /// the numbers of the systems of each set in their order of execution.
    fn add_systems(&mut self, phase: Phase) -> Vec<Vec<usize>> {
        let mut sets: Vec<InternedSystemSet> = Vec::new();
        for added in self.of_phase(phase) {
            if !sets.contains(&added.set) {
                sets.push(added.set);
            }
        }
        let of_set = |set: &InternedSystemSet| -> Vec<(usize, Vec<OrderNode>)> {
            let members = self.of_phase(phase).filter(|added| added.set == *set);
            let ordered = execution_order(&members.collect::<Vec<_>>());
            let implied = |(n, added): (usize, &&RegisteredSystem)| {
                (added.number, implied_predecessors(&ordered, n))
            };
            ordered.iter().enumerate().map(implied).collect()
        };
        let sets: Vec<Vec<(usize, Vec<OrderNode>)>> = sets.iter().map(of_set).collect();
        let mut numbers = Vec::with_capacity(sets.len());
        for set in sets {
            numbers.push(set.iter().map(|(number, _)| *number).collect());
            for (number, predecessors) in set {
                self.add_to_schedule(number, predecessors);
            }
        }
        numbers
    }

    fn add_to_schedule(&mut self, number: usize, predecessors: Vec<OrderNode>) {
        let owner = self.owner_of(number);
        let added = &mut self.added[number];
        let Some(system) = added.system.take() else {
            return;
        };
        let begins = begin_system(Some(owner), &added.name);
        let mut system = system.in_set(added.set).run_if(begins);
        // bevy adds a system to the set of its function itself
        for &set in added.names.iter().filter(|set| set.system_type().is_none()) {
            system = system.in_set(set);
        }
        for statement in &added.statements {
            system = match statement.direction {
                Direction::After => system.after(statement.other.set),
                Direction::Before => system.before(statement.other.set),
            };
        }
        for predecessor in predecessors {
            system = system.after(predecessor);
        }
        let phase = added.phase;
        self.get(phase).add_systems(system);
    }

    fn initialise(&mut self, world: &mut World, phase: Phase) -> Result<(), String> {
        let schedule = self.get(phase);
        let Err(error) = schedule.initialize(world) else {
            return Ok(());
        };
        let schedule = &self.schedules[phase as usize];
        if let ScheduleBuildError::Elevated(ScheduleBuildWarning::Ambiguity(found)) = &error
            && let Some(conflicts) = self.conflicts(schedule.graph(), world, &found.0)
        {
            return Err(conflicts);
        }
        let why = error.to_string(schedule.graph(), world);
        Err(format!(
            "the systems of the phase {phase:?} have no well-defined order: {why}"
        ))
    }

    /// Returns the messages about systems with an ambiguous order; `None` if one of them is not registered.
    fn conflicts(
        &self,
        graph: &ScheduleGraph,
        world: &World,
        found: &ConflictingSystems,
    ) -> Option<String> {
        let registered = |key: &SystemKey| {
            let is = |added: &&RegisteredSystem| {
                let set = OrderNode::System(added.number).intern();
                let set = graph.system_sets.get_key(set).map(NodeId::Set);
                let system = NodeId::System(*key);
                set.is_some_and(|set| graph.hierarchy().contains_edge(set, system))
            };
            self.added.iter().find(is)
        };
        let mut messages = Vec::new();
        for (a, b, shared) in &found.0 {
            let mut systems = [registered(a)?, registered(b)?];
            systems.sort_by_key(|added| added.number);
            let conflict = Conflict {
                systems,
                shared,
                plugin: &self.plugins[systems[0].plugin],
            };
            messages.push(conflict.message(world));
        }
        messages.sort_unstable();
        Some(messages.join("\n"))
    }

    /// Sorts the sets of a phase by the positions of their systems in its schedule.
    fn sort_sets(&self, phase: Phase, sets: &mut [Vec<usize>]) {
        let executed: Vec<usize> = self
            .nodes(phase)
            .into_iter()
            .filter_map(|(node, _)| match node {
                Some(OrderNode::System(number)) => Some(number),
                _ => None,
            })
            .collect();
        sets.sort_by_key(|set| executed.iter().position(|number| set.contains(number)));
    }

    /// Returns the systems of the built schedule of `phase` in their order of execution, by node and name; systems
    /// that were added to the schedule directly have no node.
    fn nodes(&self, phase: Phase) -> Vec<(Option<OrderNode>, String)> {
        let schedule = &self.schedules[phase as usize];
        let of_number = |added: &RegisteredSystem| {
            let number = added.number;
            [
                OrderNode::Exchange(number),
                OrderNode::System(number),
                OrderNode::Entities(number),
            ]
        };
        let mut known: Vec<(SystemKey, OrderNode)> = Vec::new();
        for node in self.of_phase(phase).flat_map(of_number) {
            if let Ok(keys) = schedule.graph().systems_in_set(node.intern()) {
                known.extend(keys.iter().map(|&key| (key, node)));
            }
        }
        let node = |key: SystemKey| known.iter().find(|(known, _)| *known == key);
        let systems = schedule.systems().into_iter().flatten();
        systems
            .filter(|(_, system)| !system::is_synchronisation(system))
            .map(|(key, system)| (node(key).map(|known| known.1), system.name().to_string()))
            .collect()
    }

    /// Rejects missing fields and resources, halos wider than a patch, and statements about missing systems.
    fn check(&self, world: &World) -> Result<(), String> {
        let registry = world.resource::<Stores>();
        for added in &self.added {
            let name = &added.name;
            if let Some(resource) = added.resources.missing(world) {
                return Err(format!(
                    "`{name}` takes the resource `{resource}`, which was not inserted: call `sim.world.insert_resource(…)` in \
                     `build`, or take it as `Option<Res<_>>`"
                ));
            }
            for declaration in &added.declared {
                let (field, depth) = (declaration.field, declaration.depth.load(Relaxed));
                if !registry.has(field) {
                    return Err(format!(
                        "`{name}` works on the field `{field}`, which no plugin registers"
                    ));
                }
                if depth > PATCH {
                    return Err(format!(
                        "`{name}` reads {depth} halo layers of the field `{field}`; a patch has {PATCH}"
                    ));
                }
            }
            for statement in &added.statements {
                let mut others = self.of_phase(added.phase);
                let exists = others.any(|other| other.names.contains(&statement.other.set));
                if let Some(named) = statement.other.named.as_ref().filter(|_| !exists) {
                    let phase = added.phase;
                    return Err(format!(
                        "`{name}` is stated to run before or after `{named}`, but the phase `{phase:?}` has no system of that name"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if a system of `phase` reads halos or takes [`Comm`](nestar_engine_comm::Comm), so that ranks
    /// may wait for each other.
    pub(super) fn exchanges(&self, world: &World, phase: Phase) -> bool {
        let reads =
            |added: &RegisteredSystem| added.declared.iter().any(|d| d.depth.load(Relaxed) > 0);
        self.of_phase(phase)
            .any(|added| added.waits(world) || reads(added))
    }

    /// Adds the halo exchange before a system, if it needs one.
    fn add_exchange(&mut self, world: &World, number: usize, order: &[usize]) -> Option<OrderNode> {
        let added = &self.added[number];
        let names: Vec<&str> = added.needs().map(|need| need.field).collect();
        if names.is_empty() {
            return None;
        }
        let name = format!("exchange {}, if stale", names.join(" and "));
        let fields = self.exchanged_fields(world.resource::<Stores>(), number, order);
        let phase = added.phase;
        let exchange = move |world: &mut World| -> Result<(), RanksError> {
            levels(world, phase).try_for_each(|level| exchange::refresh_halo(world, level, &fields))
        };
        let system = IntoSystem::into_system(exchange).with_name(name);
        // it writes halo copies only, and systems that read them have exchanges of their own
        let is_single = world.get_resource::<Ranks>().is_none_or(Ranks::is_single);
        let owner = (!is_single).then_some(Activity::MESH);
        self.insert(OrderNode::Exchange(number), number, owner, system);
        Some(OrderNode::Exchange(number))
    }

    /// Returns the fields that the exchange before a system updates: also those that later ones would, unless the field
    /// changes in between.
    fn exchanged_fields(&self, registry: &Stores, number: usize, order: &[usize]) -> Vec<StoreRef> {
        let (mut wanted, mut changed) = (Vec::new(), Vec::new());
        let from = order.iter().skip_while(|&&other| other != number);
        let from = from.map(|&later| &self.added[later]);
        for later in from.take_while(|later| !later.takes_all()) {
            let needs = later.needs().map(|need| need.field);
            wanted.extend(needs.filter(|field| !changed.contains(field)));
            let writes = later.declared.iter().filter(|d| d.writes);
            changed.extend(writes.map(|d| d.field));
        }
        let mut fields = registry.all();
        fields.retain(|field| wanted.contains(&field.name));
        fields
    }

    /// Returns the systems of a phase after which the entities of particles are updated: the last one that may move
    /// particles, in the phase and before each system that queries entities.
    fn followed(&self, order: &[usize]) -> Vec<usize> {
        let (mut followed, mut latest) = (Vec::new(), None);
        for &number in order {
            let added = &self.added[number];
            if added.queries_entities() {
                followed.extend(latest.take());
            }
            if added.moves_particles(&self.particles) {
                latest = Some(number);
            }
        }
        followed.extend(latest);
        followed
    }

    /// Adds the update of particle entities after a system.
    fn add_follower(&mut self, number: usize) -> OrderNode {
        let after = short_name(&self.added[number].name);
        let system = IntoSystem::into_system(particle_entities::update_entities);
        let system = system.with_name(format!("update particle entities after {after}"));
        // it spawns and despawns entities that later systems query
        self.insert(
            OrderNode::Entities(number),
            number,
            Some(Activity::MESH),
            system,
        );
        OrderNode::Entities(number)
    }

    /// Adds a system of the engine to the set of system `number`.
    fn insert(
        &mut self,
        node: OrderNode,
        number: usize,
        owner: Option<usize>,
        system: impl System<In = (), Out = Result<(), RanksError>>,
    ) {
        let (phase, set) = (self.added[number].phase, self.added[number].set);
        let name = system.name().to_string();
        let begins = begin_system(owner, &name);
        self.get(phase).add_systems(
            SystemOutcome::with_error_handling(system)
                .in_set(set)
                .in_set(node)
                .run_if(begins)
                .ambiguous_with_all(),
        );
    }

    /// Describes the systems of `phase` in their order of execution, with the fields that they access. Halo exchanges
    /// are part of the systems that need them.
    #[must_use]
    pub fn order(&self, world: &World, phase: Phase) -> Vec<SystemSummary> {
        let of_node = |(node, name): (Option<OrderNode>, String)| match node {
            Some(OrderNode::System(number)) => Some(SystemSummary::of(&self.added[number], world)),
            Some(OrderNode::Entities(number)) => Some(SystemSummary {
                set: Some(format!("{:?}", self.added[number].set)),
                name,
                fields: Vec::new(),
            }),
            Some(OrderNode::Exchange(_)) => None,
            None => Some(SystemSummary {
                set: None,
                name: short_name(&name),
                fields: Vec::new(),
            }),
        };
        self.nodes(phase).into_iter().filter_map(of_node).collect()
    }
}

/// Systems that run one after the other: a tuple of two to four.
pub trait SystemChain<M> {
    /// Adds the systems to a set.
    fn add_to<S: StepSet>(self, schedules: &mut Schedules, world: &mut World, set: S);
}

macro_rules! chains {
    ($($(($system:ident, $outcome:ident, $marker:ident)),+;)+) => {$(
        impl<$($system, $outcome, $marker),+> SystemChain<fn($($outcome, $marker),+)> for ($($system,)+)
        where
            $($system: StatelessSystem<$outcome, $marker>, $outcome: SystemOutcome),+
        {
            #[allow(non_snake_case, reason = "the names of the types name the systems as well")]
            fn add_to<Set: StepSet>(self, schedules: &mut Schedules, world: &mut World, set: Set) {
                let ($($system,)+) = self;
                let mut previous: Option<OrderNode> = None;
                $(
                    let mut options = schedules.add(world, set, $system);
                    let node = options.node();
                    if let Some(previous) = previous.replace(node) {
                        options.after(previous);
                    }
                )+
            }
        }
    )+};
}

chains! {
    (S1, O1, M1), (S2, O2, M2);
    (S1, O1, M1), (S2, O2, M2), (S3, O3, M3);
    (S1, O1, M1), (S2, O2, M2), (S3, O3, M3), (S4, O4, M4);
}
