//! Schedules of all phases: systems in sets, with the halo exchanges that their signatures require.

use super::access::{FieldAccess, FieldAccesses};
use super::faults::no_fault;
use super::resources::Resources;
use super::{AlignedLevels, Error, Phase, StepSet};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{
    IntoScheduleConfigs, LogLevel, ScheduleBuildSettings, SingleThreadedExecutor,
};
use bevy_ecs::system::{BoxedSystem, IntoSystem, PipeSystem, System, SystemAccess};
use nestar_engine_comm::{Halos, RanksError, exchange, particle_entities};
use nestar_engine_data::{FaultBox, Field, ParticleKinds, StoreRef, Stores};
use nestar_engine_mesh::{LevelClock, PATCH};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// Set of one system and the exchange before it. The groups of a set run in the order of registration, so
/// plugins that use the same field have a defined order.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
struct SystemGroup {
    phase: Phase,
    set: String,
    number: usize,
}

/// Set of the system of a group, without its exchange.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
struct SystemOnly(SystemGroup);

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
        let leave = |In(outcome): In<Self>, faults: Res<FaultBox>| {
            if let Err(error) = outcome {
                faults.fail(error.into());
            }
        };
        Box::new(PipeSystem::new(
            system,
            IntoSystem::into_system(leave),
            name,
        ))
    }
}

/// Fields that an exchange updates; set when the order is known.
type Fields = Arc<OnceLock<Vec<StoreRef>>>;

/// Describes a registered system.
struct RegisteredSystem {
    batch: SystemGroup,
    name: String,
    declared: Vec<Arc<FieldAccess>>,
    /// `true` if it takes the whole world and may change any field.
    takes_all: bool,
    /// `true` if it may wait for other ranks while it runs.
    waits: bool,
    resources: Resources,
    fields: Fields,
}

impl RegisteredSystem {
    /// Returns the field accesses whose halo must be up to date before the system runs.
    fn needs(&self) -> impl Iterator<Item = &FieldAccess> {
        let declared = self.declared.iter().map(|declaration| &**declaration);
        declared.filter(|d| d.depth.load(Relaxed) > 0 && !d.manages_itself.load(Relaxed))
    }
}

/// Sets options of a registered system that its signature cannot express.
pub struct SystemOptions<'a>(&'a mut RegisteredSystem);

impl SystemOptions<'_> {
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
    built: bool,
}

impl Default for Schedules {
    fn default() -> Self {
        Self {
            schedules: Phase::ALL.map(new_schedule),
            added: Vec::new(),
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
        self.schedules[phase as usize].systems_len() == 0
    }

    /// Adds a system to a set, after those added before. Initialising it here assigns the field accesses of
    /// its signature to it.
    pub fn add<S: StepSet, O: SystemOutcome, M>(
        &mut self,
        world: &mut World,
        set: S,
        system: impl IntoSystem<(), O, M>,
    ) -> SystemOptions<'_> {
        let system = IntoSystem::into_system(system);
        let name = system.name().to_string();
        let mut system = O::with_error_handling(system);
        world.insert_resource(FieldAccesses::default());
        let access = system.initialize(world);
        let halos = world.component_id::<Halos>();
        let takes_all = access.is_exclusive();
        let waits = match &access {
            SystemAccess::Shared(access) => {
                halos.is_some_and(|halos| access.combined_access().has_write(halos))
            }
            _ => takes_all,
        };
        let resources = Resources::of::<M>(&access);
        let declared = std::mem::take(&mut world.resource_mut::<FieldAccesses>().0);
        let (batch, earlier) = self.next_batch(set);
        let schedule = self.get(set.phase());
        schedule.configure_sets(batch.clone().in_set(set));
        schedule.configure_sets(SystemOnly(batch.clone()).in_set(batch.clone()));
        if let Some(earlier) = earlier {
            schedule.configure_sets(batch.clone().after(earlier));
        }
        let runs: Arc<str> = name.as_str().into();
        let begins = move |faults: Res<FaultBox>| faults.begin_system(&runs);
        schedule.add_systems(system.in_set(SystemOnly(batch.clone())).run_if(begins));
        let fields = Fields::default();
        let at = self.added.len();
        self.added.push(RegisteredSystem {
            batch,
            name,
            declared,
            takes_all,
            waits,
            resources,
            fields,
        });
        SystemOptions(&mut self.added[at])
    }

    /// Returns a new group and the latest one of the same set.
    fn next_batch<S: StepSet>(&self, set: S) -> (SystemGroup, Option<SystemGroup>) {
        let (phase, set) = (set.phase(), format!("{set:?}"));
        let same = |a: &&RegisteredSystem| a.batch.phase == phase && a.batch.set == set;
        let earlier = self.added.iter().rfind(same).map(|a| a.batch.clone());
        let number = earlier.as_ref().map_or(0, |b| b.number + 1);
        (SystemGroup { phase, set, number }, earlier)
    }

    /// Builds all schedules: inserts halo exchanges before systems that read halos and merges exchanges that
    /// can share messages.
    ///
    /// # Errors
    /// Names of systems whose order is ambiguous or contradictory, or that need missing fields or resources.
    pub fn build(&mut self, world: &mut World) -> Result<(), String> {
        if !std::mem::replace(&mut self.built, true) {
            self.check(world)?;
            self.insert_exchanges(world);
            self.insert_followers(world);
        }
        for phase in Phase::ALL {
            let schedule = self.get(phase);
            if let Err(e) = schedule.initialize(world) {
                let why = e.to_string(schedule.graph(), world);
                return Err(format!(
                    "the systems of the phase {phase:?} have no well-defined order; those of a set that `sim.system_in` adds have one: {why}"
                ));
            }
            self.merge(world.resource::<Stores>(), phase);
        }
        Ok(())
    }

    /// Rejects missing fields and resources, and halos wider than a patch.
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
        }
        Ok(())
    }

    /// Returns `true` if a system of `phase` reads halos or takes [`Comm`](nestar_engine_comm::Comm), so that ranks
    /// may wait for each other.
    pub(super) fn exchanges(&self, phase: Phase) -> bool {
        let reads =
            |added: &RegisteredSystem| added.declared.iter().any(|d| d.depth.load(Relaxed) > 0);
        let mut of_phase = self.added.iter().filter(|added| added.batch.phase == phase);
        of_phase.any(|added| added.waits || reads(added))
    }

    fn insert_exchanges(&mut self, world: &mut World) {
        let mut registry = world.resource_mut::<Stores>();
        for declaration in self.added.iter().flat_map(|added| &added.declared) {
            registry.reads(declaration.field, declaration.depth.load(Relaxed));
        }
        for added in &self.added {
            let names: Vec<&str> = added.needs().map(|need| need.field).collect();
            if names.is_empty() {
                continue;
            }
            let fields = added.fields.clone();
            let phase = added.batch.phase;
            let exchange = move |world: &mut World| -> Result<(), RanksError> {
                let fields = fields.get().map_or(&[][..], |fields| fields);
                levels(world, phase)
                    .try_for_each(|level| exchange::refresh_halo(world, level, fields))
            };
            let name = format!("exchange {}, if stale", names.join(" and "));
            let system = IntoSystem::into_system(exchange).with_name(name);
            let (batch, alone) = (added.batch.clone(), SystemOnly(added.batch.clone()));
            // it writes halo copies only, and systems that read them have exchanges of their own
            self.schedules[batch.phase as usize].add_systems(
                SystemOutcome::with_error_handling(system)
                    .in_set(batch)
                    .before(alone)
                    .run_if(no_fault)
                    .ambiguous_with_all(),
            );
        }
    }

    /// Adds a system that updates particle entities after each system that may migrate particles.
    fn insert_followers(&mut self, world: &World) {
        if world.resource::<ParticleKinds>().all().is_empty() {
            return;
        }
        for added in self.added.iter().filter(|added| added.waits) {
            let (batch, alone) = (added.batch.clone(), SystemOnly(added.batch.clone()));
            let system = IntoSystem::into_system(particle_entities::update_entities);
            let system = system.with_name("entities follow their items");
            // it spawns and despawns entities that later systems query
            self.schedules[batch.phase as usize].add_systems(
                SystemOutcome::with_error_handling(system)
                    .in_set(batch)
                    .after(alone)
                    .run_if(no_fault)
                    .ambiguous_with_all(),
            );
        }
    }

    /// Merges exchanges of `phase`: each also updates what later ones would, unless the field changes in
    /// between.
    fn merge(&self, registry: &Stores, phase: Phase) {
        let mut left: Vec<&RegisteredSystem> = self.added.iter().collect();
        left.retain(|added| added.batch.phase == phase);
        let mut take = |name: &String| {
            let at = left.iter().position(|added| added.name == *name)?;
            Some(left.remove(at))
        };
        let ordered: Vec<&RegisteredSystem> =
            self.systems(phase).iter().filter_map(&mut take).collect();
        for (n, added) in ordered.iter().enumerate() {
            let (mut wanted, mut changed) = (Vec::new(), Vec::new());
            for later in ordered[n..].iter().take_while(|later| !later.takes_all) {
                let needs = later.needs().map(|need| need.field);
                wanted.extend(needs.filter(|field| !changed.contains(field)));
                let writes = later.declared.iter().filter(|d| d.writes);
                changed.extend(writes.map(|d| d.field));
            }
            let mut fields = registry.all();
            fields.retain(|field| wanted.contains(&field.name));
            added.fields.get_or_init(|| fields);
        }
    }

    /// Returns the names of the systems of `phase` in execution order.
    #[must_use]
    pub fn systems(&self, phase: Phase) -> Vec<String> {
        let names = self.schedules[phase as usize].systems().map(|systems| {
            systems
                .map(|(_, system)| system.name().to_string())
                .collect::<Vec<_>>()
        });
        names.unwrap_or_default()
    }

    /// Describes the fields that the system `name` of `phase` reads and writes.
    #[must_use]
    pub fn access(&self, phase: Phase, name: &str) -> String {
        let mut systems = self.added.iter().filter(|a| a.batch.phase == phase);
        let Some(added) = systems.find(|a| a.name == name) else {
            return String::new();
        };
        let access = added.declared.iter().map(|d| {
            let (does, depth) = (
                if d.writes { "writes" } else { "reads" },
                d.depth.load(Relaxed),
            );
            let itself = if d.manages_itself.load(Relaxed) {
                ", exchanged inside"
            } else {
                ""
            };
            match depth {
                0 => format!("{does} {}", d.field),
                1 => format!("{does} {} (1 layer of copies{itself})", d.field),
                _ => format!("{does} {} ({depth} layers of copies{itself})", d.field),
            }
        });
        access.collect::<Vec<_>>().join(", ")
    }
}
