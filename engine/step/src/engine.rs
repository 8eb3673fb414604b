//! The simulation: world, schedules and the plugins that fill them.

mod hierarchy;
mod preview;
mod registration;

pub use preview::HierarchyPreview;

use super::access::{FunctionFields, OtherFields};
use super::budgets::Budgets;
use super::config::{MeshSettings, TimeSettings};
use super::driver::DriverSettings;
use super::initial::StateChecks;
use super::memory::{MemoryGuard, MemorySharers};
use super::regrid::{correct, restrict, share};
use super::state::{PluginState, StateOperations, StateRegistry};
use super::{
    Activity, AlignedLevels, Catalogue, ChangingUnits, Driver, Error, KeptKeys, Phase, Remarks,
    Replays, RunCounters, RunFacts, Schedules, Settings, StatelessSystem, StepLimits, StepReport,
    StepSet, StepVerdict, Synchronise, SystemChain, SystemOptions, SystemOutcome, SystemSummary,
};
use bevy_ecs::component::RequiredComponentsError;
use bevy_ecs::prelude::*;
use hierarchy::{check_domain, check_mesh};
use nestar_deck::{CodeUnits, Deck};
use nestar_device::random::{Purposes, Stream};
use nestar_engine_comm::{DiagnosticColumns, ExchangePlans, Halos, Ranks};
use nestar_engine_data::PoolResource;
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_data::operators::RepairedOnHost;
use nestar_engine_data::{
    Correct, DerivedFields, FaultBox, Field, FieldSpec, InputList, ParticleEntityIndex,
    ParticleKinds, Pool, Precision, Restrict, Stores, SubcycleQueues,
};
use nestar_engine_device::ComputeDevice;
use nestar_engine_mesh::patch::PatchComponents;
use nestar_engine_mesh::{
    Cost, Domain, LevelClock, Levels, NewRows, PatchComponent, PatchRow, RefineRequests, Topology,
    audit,
};
use nestar_kernels::mesh::Centring;
use registration::BoundaryRules;
use std::path::Path;
use std::sync::Arc;

/// Adds a piece of physics or of a scenario: fields, systems, limits and a deck table.
pub trait Plugin {
    /// Returns the name that other plugins use in [`Plugin::after`]: by default the name of the type. A plugin with a table
    /// has the name of the table in a program.
    fn name(&self) -> &str {
        let name = std::any::type_name::<Self>();
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Returns the names of the plugins that are built before this one, where they are part of the run.
    fn after(&self) -> &[&str] {
        &[]
    }

    /// Prepares the deck before any of its tables is read, such as the code units or keys that follow from the plugin's table.
    ///
    /// # Errors
    /// An error in the plugin's deck table.
    fn prepare(&self, deck: &mut Deck) -> Result<(), Error> {
        let _ = deck;
        Ok(())
    }

    /// Declares additions to fields of other plugins, such as components or boundary rules. Called for all
    /// plugins before any is built.
    ///
    /// # Errors
    /// A declaration that does not fit.
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let _ = sim;
        Ok(())
    }

    /// Adds the plugin to `sim`.
    ///
    /// # Errors
    /// An error in the plugin's deck table.
    fn build(&self, sim: &mut Engine) -> Result<(), Error>;
}

/// A simulation that is being set up or running.
pub struct Engine {
    /// Entities and resources: the complete state.
    pub world: World,
    /// The deck; plugins read their tables from it.
    pub deck: Deck,
    /// The engine's settings.
    pub settings: Settings,
    /// Schedules and the recursion over levels.
    pub driver: Driver,
    /// Registered purposes of random numbers.
    purposes: Purposes,
    /// Work that needs everything that plugins register.
    deferred: Vec<DeferredSetup>,
}

/// Part of the setup that is called once all plugins are built.
type DeferredSetup = Box<dyn FnOnce(&mut Engine) -> Result<(), Error> + Send + Sync>;

impl Engine {
    /// Creates a simulation on one rank from the engine's tables of `deck`, with default time settings. All
    /// later calls must run inside the thread pool of the run.
    ///
    /// # Errors
    /// An error in the deck.
    pub fn new(deck: Deck, mesh: MeshSettings) -> Result<Self, Error> {
        let time = |_: &mut Deck| Ok(TimeSettings::default());
        Self::with_ranks(deck, mesh, time, Ranks::default())
    }

    /// Creates one rank's part of a simulation as [`Engine::new`]. The device follows from the rank's
    /// placement; `time` reads the `[time]` table.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_ranks(
        mut deck: Deck,
        mesh: MeshSettings,
        time: impl FnOnce(&mut Deck) -> Result<TimeSettings, Error>,
        ranks: Ranks,
    ) -> Result<Self, Error> {
        let settings = Settings {
            domain: deck.table("domain")?,
            time: time(&mut deck)?,
            output: deck.table("output")?,
            run: deck.table("run")?,
            units: deck.take_units()?,
            mesh,
        };
        let folder = &settings.run.folder;
        if !folder.is_empty() && !Path::new(folder).is_absolute() {
            let message = format!("`run.folder` must be an absolute path, found {folder:?}");
            return Err(deck.error_at("run.folder", message).into());
        }
        let domain = check_domain(&deck, &settings.domain)?;
        check_mesh(&deck, &domain, settings.mesh.max_level)?;
        let device = ComputeDevice::choose(
            settings.run.device,
            ranks.communicator().placement().local_rank,
        )?;
        let world = empty_world(&settings, domain, device, ranks)?;
        let driver = Driver::new(Schedules::default(), driver_settings(&settings));
        Ok(Self {
            world,
            deck,
            settings,
            driver,
            purposes: Purposes::default(),
            deferred: Vec::new(),
        })
    }

    /// Adds a plugin after others have been built; its declarations must still be possible.
    ///
    /// # Errors
    /// As [`Plugin::declare`] and [`Plugin::build`].
    pub fn add(&mut self, plugin: impl Plugin) -> Result<&mut Self, Error> {
        self.in_plugin(plugin.name(), |sim| {
            plugin.declare(sim)?;
            plugin.build(sim)
        })?;
        Ok(self)
    }

    /// Calls `work`; the systems that it adds belong to the plugin `name`. In a set they run after those of plugins that
    /// were built earlier.
    pub fn in_plugin<T>(&mut self, name: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.driver.schedules.begin_plugin(name);
        let result = work(self);
        self.driver.schedules.continue_plugin(outer);
        result
    }

    /// Adds a system to a set of a phase, with the halo exchanges that its signature declares. If another system of the
    /// plugin in the set accesses the same data, one of them states the order: `sim.system_in(set, cool).after(heat)`.
    ///
    /// A closure must not change what it has captured, which would be lost at a restart:
    ///
    /// ```compile_fail,E0525
    /// use nestar_engine_step::{Engine, Phase, StepSet};
    ///
    /// fn count_steps(sim: &mut Engine, set: impl StepSet) {
    ///     let mut steps = 0;
    ///     sim.system_in(set, move || steps += 1);
    /// }
    /// ```
    ///
    /// # Panics
    /// If [`Engine::finish_setup`] was called.
    pub fn system_in<S: StepSet, O: SystemOutcome, M>(
        &mut self,
        set: S,
        system: impl StatelessSystem<O, M>,
    ) -> SystemOptions<'_> {
        self.driver.schedules.add(&mut self.world, set, system)
    }

    /// Adds a tuple of systems to a set of a phase, as [`Engine::system_in`]; they run one after the other.
    pub fn chain_in<S: StepSet, M>(&mut self, set: S, systems: impl SystemChain<M>) {
        systems.add_to(&mut self.driver.schedules, &mut self.world, set);
    }

    /// Returns `true` if a system that has been added to `set` may write field `F`. In [`Engine::defer_setup`] the
    /// answer includes the systems that plugins add when they are built.
    #[must_use]
    pub fn writes_in<F: Field>(&self, set: impl StepSet) -> bool {
        self.driver.schedules.writes_in(set, F::NAME)
    }

    /// Returns the schedule of a phase; used where the order of its sets is defined.
    pub fn schedule(&mut self, phase: Phase) -> &mut bevy_ecs::schedule::Schedule {
        self.driver.schedules.get(phase)
    }

    /// Returns the precision of the fields.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.settings.run.precision
    }

    /// Returns the code units at `time`, which change during a run only if a plugin defines them so.
    #[must_use]
    pub fn units_at(&self, time: f64) -> CodeUnits {
        let units = self.settings.units.clone();
        match &self.world.resource::<ChangingUnits>().0 {
            None => units,
            Some(scale_factor) => units.at_scale_factor(scale_factor(time)),
        }
    }

    /// Returns the code units at the present time.
    #[must_use]
    pub fn present_units(&self) -> CodeUnits {
        self.units_at(self.world.resource::<Levels>().time(0))
    }

    /// Returns the code units of data of several times: without factors to cgs if the units change with time.
    #[must_use]
    pub fn lasting_units(&self) -> CodeUnits {
        match self.settings.units.are_changing() {
            true => CodeUnits::default(),
            false => self.settings.units.clone(),
        }
    }

    /// Returns the largest number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.settings.mesh.max_level + 1
    }

    /// Registers field `F`: creates its pool and adds the restriction and correction systems that `spec` requests.
    ///
    /// # Errors
    /// `spec` is invalid for a pool; a boundary rule works on the host only; the device fails.
    pub fn register_field<F: Field>(&mut self, spec: FieldSpec) -> Result<(), Error> {
        spec.check_pool(F::NAME).map_err(Error::Setup)?;
        let (restrict_by, correct_by) = (spec.restrict, spec.correct);
        let shared = spec.centring != Centring::Cell && restrict_by != Restrict::None;
        let beyond = self.beyond::<F>(&spec)?;
        let mut catalogue = self.world.resource_mut::<Catalogue>();
        for component in &spec.components {
            let (name, doc) = (&component.name, &component.long_name);
            catalogue.add("field", name, doc).unit(&component.units);
        }
        let device = self.world.resource::<ComputeDevice>().device.as_ref();
        let pool = Pool::new(spec, &beyond, self.precision(), device, self.levels())?;
        self.world.insert_resource(PoolResource::<F>(pool));
        self.world.resource_mut::<Stores>().add_field::<F>();
        if restrict_by == Restrict::Mean {
            self.system_in(Synchronise::Restrict, restrict::<F>)
                .in_sequence()
                .of_mesh();
        }
        if correct_by != Correct::None {
            self.system_in(Synchronise::Correct, correct::<F>)
                .in_sequence()
                .of_mesh();
        }
        if shared {
            self.system_in(Synchronise::Correct, share::<F>)
                .in_sequence()
                .of_mesh();
        }
        Ok(())
    }

    /// Registers component `C` so that it moves with its patch or particle between ranks and is stored in
    /// snapshots.
    pub fn register_carried<C: PatchComponent>(&mut self) {
        self.world.resource_mut::<PatchComponents>().add::<C>();
    }

    /// Registers the [`Cost`] of patches for systems that measure their work. With several ranks every patch has one
    /// from its creation, and the result is `true`; one rank needs no costs.
    ///
    /// # Panics
    /// If patches exist already.
    pub fn register_measured_cost(&mut self) -> bool {
        self.register_carried::<Cost>();
        let is_needed = !self.world.resource::<Ranks>().is_single();
        if is_needed {
            let required = self
                .world
                .try_register_required_components_with::<PatchRow, Cost>(|| Cost(1.0));
            let is_late = matches!(required, Err(RequiredComponentsError::ArchetypeExists(_)));
            assert!(!is_late, "costs are registered before patches exist");
        }
        is_needed
    }

    /// Inserts `state` as a resource that snapshots store under `name` (letters, digits and `_`) and restarts
    /// restore.
    ///
    /// # Errors
    /// The name is used by another plugin or is invalid.
    pub fn register_state<S: PluginState>(&mut self, name: &str, state: S) -> Result<(), Error> {
        self.keep_state(name, StateOperations::of::<S>())?;
        self.world.insert_resource(state);
        Ok(())
    }

    /// Registers operations that save and restore a state under `name`.
    pub(super) fn keep_state(&mut self, name: &str, state: StateOperations) -> Result<(), Error> {
        self.world
            .resource_mut::<StateRegistry>()
            .add(name, state)?;
        let doc = "State stored in snapshots.";
        let catalogue = self.world.resource_mut::<Catalogue>().into_inner();
        catalogue.add("state", name, doc);
        Ok(())
    }

    /// Registers the purpose `name` of random numbers and returns its stream. Pass
    /// [`Stream::at_step`]`(clock.step)` as a parameter to a `#[device]` function that draws from it
    /// ([`random`](nestar_device::random)). Numbers depend only on the name and the seed.
    ///
    /// # Errors
    /// Another purpose has the name, or would draw the same numbers.
    pub fn random_stream(&mut self, name: &str, seed: u32) -> Result<Stream, Error> {
        let stream = self.purposes.register(name, seed);
        stream.map_err(|shared| Error::Setup(shared.to_string()))
    }

    /// Defers a part of the setup to [`Engine::finish_setup`], when all plugins have registered their fields.
    pub fn defer_setup(
        &mut self,
        work: impl FnOnce(&mut Engine) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        self.deferred.push(Box::new(work));
    }

    /// Completes the setup: checks that all keys of the deck are used and that the order of systems is
    /// defined. Starts the remaining compilations for a device, without waiting for them.
    ///
    /// # Errors
    /// Unknown keys, tables or boundaries; functions that do not match their fields; an ambiguous order.
    pub fn finish_setup(&mut self) -> Result<(), Error> {
        self.run_deferred_setup()?;
        self.check_boundary_words()?;
        self.check_derived()?;
        self.deck.finish()?;
        for check in self.world.resource::<StateChecks>().registered.clone() {
            check(&self.world)?;
        }
        self.build_order()
    }

    fn run_deferred_setup(&mut self) -> Result<(), Error> {
        for work in std::mem::take(&mut self.deferred) {
            work(self)?;
        }
        Ok(())
    }

    /// Completes the deferred parts of the setup and builds all schedules, including halo exchanges.
    ///
    /// # Errors
    /// Errors of the deferred parts; an ambiguous order.
    pub fn build_order(&mut self) -> Result<(), Error> {
        self.run_deferred_setup()?;
        let schedules = &mut self.driver.schedules;
        schedules.build(&mut self.world).map_err(Error::Setup)
    }

    /// Describes the systems of `phase` in their order of execution, after [`Engine::finish_setup`].
    #[must_use]
    pub fn order(&self, phase: Phase) -> Vec<SystemSummary> {
        self.driver.schedules.order(&self.world, phase)
    }

    /// Fails if the simulation has already been initialised or restored.
    pub fn require_fresh(&self) -> Result<(), Error> {
        if self.world.resource::<Topology>().patches() == 0 {
            return Ok(());
        }
        Err(Error::Setup(
            "this simulation has started already; create a new one from its deck".into(),
        ))
    }

    /// Takes one root step, at most to `until`, without writing files. For programs that step a simulation
    /// themselves; call [`Engine::finish_setup`] and [`Engine::initialise`] first.
    ///
    /// # Errors
    /// A step stays unphysical after all retries; requested patches do not fit into memory; the audit finds
    /// an inconsistency.
    pub fn root_step(&mut self, until: f64) -> Result<StepReport, Error> {
        // a caller that continues after a lack of memory continues without the regrid
        self.driver.run_pending_regrid(&mut self.world)?;
        let before = self.world.resource_mut::<MemoryGuard>().shortage.take();
        let report = self.driver.root_step(&mut self.world, until)?;
        let shortage = self.world.resource_mut::<MemoryGuard>().shortage.take();
        let shortage = shortage.or(before);
        shortage.map_or(Ok(report), |shortage| Err(Error::Memory(shortage)))
    }

    /// Registers a collective check of the initial state. It runs after the hierarchy is built, but not after
    /// a restart. It must not read fields, because [`Engine::preview_hierarchy`] calls it without any; it
    /// uses what systems have recorded.
    pub fn check_initial(
        &mut self,
        check: impl Fn(&World) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        let mut checks = self.world.resource_mut::<StateChecks>();
        checks.initial.push(Arc::new(check));
    }

    /// Registers a collective check of restored states that differ from the snapshot. They differ by keys
    /// with a changed meaning ([`Engine::keep_keys`]), or by added and dropped components.
    pub fn check_changed(
        &mut self,
        check: impl Fn(&World) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        let mut checks = self.world.resource_mut::<StateChecks>();
        checks.changed.push(Arc::new(check));
    }

    /// Registers a check of the function `name` of the fields `L`, called once all plugins are built. `check` gets the
    /// first field and the others.
    pub fn check_fields<L: FunctionFields>(
        &mut self,
        name: &'static str,
        check: impl Fn(&Pool<L::First>, InputList) -> Result<(), String> + Send + Sync + 'static,
    ) {
        let mut checks = self.world.resource_mut::<StateChecks>();
        checks.registered.push(Arc::new(move |world| {
            let missing = |field| {
                let why = "which no plugin registers";
                Error::Setup(format!("`{name}` works on the field `{field}`, {why}"))
            };
            let first = world.get_resource::<PoolResource<L::First>>();
            let first = first.ok_or_else(|| missing(L::First::NAME))?;
            let others = L::Others::of(world).map_err(missing)?;
            check(&first.0, others).map_err(Error::Setup)
        }));
    }

    /// Checks the consistency of the hierarchy if `run.audit` is set.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn audit(&self) -> Result<(), Error> {
        if self.settings.run.audit {
            audit(self.world.resource::<Topology>())?;
            self.world.resource::<ParticleKinds>().audit(&self.world)?;
        }
        Ok(())
    }
}

/// Creates the world before any plugin is built.
fn empty_world(
    settings: &Settings,
    domain: Domain,
    device: ComputeDevice,
    ranks: Ranks,
) -> Result<World, Error> {
    let levels = settings.mesh.max_level + 1;
    let mut world = World::new();
    world.insert_resource(MemorySharers::find(&ranks, device.device.as_ref())?);
    if let Some(device) = &device.device {
        world.insert_resource(DeviceTopology::new(device, domain, levels)?);
    }
    world.insert_resource(device);
    world.insert_resource(Topology::new(domain, settings.mesh.max_level));
    world.insert_resource(Levels::new(levels, 0.0));
    world.insert_resource(SubcycleQueues(settings.run.queue));
    world.insert_resource(ranks);
    world.insert_resource(settings.clone());
    insert_empty(&mut world);
    Ok(world)
}

/// Inserts resources that plugins and the driver fill.
fn insert_empty(world: &mut World) {
    world.init_resource::<Activity>();
    world.init_resource::<LevelClock>();
    world.init_resource::<AlignedLevels>();
    world.init_resource::<StepLimits>();
    world.init_resource::<StepVerdict>();
    world.init_resource::<RunCounters>();
    world.init_resource::<RefineRequests>();
    world.init_resource::<NewRows>();
    world.init_resource::<Stores>();
    world.init_resource::<DerivedFields>();
    world.init_resource::<ParticleKinds>();
    world.init_resource::<ParticleEntityIndex>();
    world.init_resource::<BoundaryRules>();
    world.init_resource::<Catalogue>();
    world.init_resource::<RepairedOnHost>();
    world.init_resource::<DiagnosticColumns>();
    world.init_resource::<RunFacts>();
    world.init_resource::<ChangingUnits>();
    world.init_resource::<Remarks>();
    world.init_resource::<KeptKeys>();
    world.init_resource::<StateRegistry>();
    world.init_resource::<Budgets>();
    world.init_resource::<StateChecks>();
    world.init_resource::<PatchComponents>();
    world.init_resource::<MemoryGuard>();
    world.init_resource::<FaultBox>();
    world.init_resource::<Replays>();
    world.init_resource::<ExchangePlans>();
    world.init_resource::<Halos>();
}

fn driver_settings(settings: &Settings) -> DriverSettings {
    DriverSettings {
        time: settings.time.clone(),
        regrid_interval: settings.mesh.regrid_interval.clone(),
        audit: settings.run.audit,
    }
}
