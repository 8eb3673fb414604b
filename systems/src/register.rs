//! Registers functions of cells and faces as sources, fluxes, time-step limits, refinement criteria, initial values and
//! diagnostics columns. Each system is named by its kind and the function, such as `split source cool`.

use crate::fields::GasModel;
use crate::order::{Advance, Aligned, Flag, Initialise, Limit, Ready, Split};
use crate::subcycling::{StateSelection, Subcycling, add_subcycle, measure_costs};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParamFunction;
use nestar_engine::comm::{ColumnInputs, DiagnosticColumns, Reduce};
use nestar_engine::data::{
    CellMap, CellMark, CellSubcycle, CellValue, Components, DerivedInputs, FaceMap, Field,
    InputList, LevelRows, Parameters, Patches, Pool,
};
use nestar_engine::mesh::{LevelClock, RefinementFlags};
use nestar_engine::step::{
    AlignedLevels, Catalogue, CatalogueEntry, FunctionFields, OtherFields, OtherHandles, Read,
    Settings, StatelessSystem, StepLimits, StepSet, Write,
};
use nestar_engine::{Engine, Error};
use std::sync::Arc;

/// Adds `#[device]` functions of a cell or face to a simulation. The functions read the fields `F`, a field or a tuple of
/// fields, on the host or device that holds them; they change or reduce the first one. Their parameters are constant for
/// the whole run; place, time, width and step come with the cell. Functions that a plugin adds to one
/// set run in the order in which it adds them. A system of [`system_in`](Engine::system_in) names one by
/// [`SystemNamed`](nestar_engine::step::SystemNamed) to state an order: `.after(SystemNamed("source cool".into()))`.
pub trait Register {
    /// Returns the simulation, and what the functions read besides the fields.
    #[doc(hidden)]
    fn selection(&mut self) -> StateSelection<'_>;

    /// Selects functions of the gas and of these scalars: their state has the five components of the gas, then the
    /// scalars in this order. Gas without an energy reads as gas with an energy of 0; functions that return its state are
    /// refused.
    ///
    /// # Errors
    /// The gas has no such scalar, or is not built yet.
    fn with_scalars(&mut self, names: &[&str]) -> Result<StateSelection<'_>, Error> {
        let mut selection = self.selection();
        selection.components = gas(selection.sim, "with_scalars")?.components(names)?;
        Ok(selection)
    }

    /// Selects functions, as [`Register::with_scalars`], that see the gas in its rest frame. With `hydro.dual_energy`
    /// they get the internal energy instead of the total energy, and zero momentum; otherwise the gas as it is. They
    /// must not change density and momentum.
    ///
    /// # Errors
    /// As [`Register::with_scalars`].
    fn at_rest(&mut self, names: &[&str]) -> Result<StateSelection<'_>, Error> {
        let mut selection = self.selection();
        selection.components = gas(selection.sim, "at_rest")?.components_at_rest(names)?;
        Ok(selection)
    }

    /// Selects functions that read `numbers` as their second state, in place of a second field.
    fn with_numbers(&mut self, numbers: &Arc<DerivedInputs>) -> StateSelection<'_> {
        let mut selection = self.selection();
        selection.numbers = Some(numbers.clone());
        selection
    }

    /// Adds a source: each cell is set to the result of `M` once per step, after the gas is advanced.
    fn source<F: FunctionFields, M: CellMap>(
        &mut self,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        add_update::<F, M>("source", self.selection(), Advance::Sources, parameters);
    }

    /// Adds a split source: it acts over half a step before and half a step after the gas is advanced (Strang 1968),
    /// which is of second order in time.
    fn split_source<F: FunctionFields, M: CellMap>(
        &mut self,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        add_update::<F, M>("split source", self.selection(), Split::Sources, parameters);
    }

    /// Adds a sub-cycled source: `M` is called repeatedly in a cell until it is done, once per step, after the gas is
    /// advanced. It returns a [`Subcycle`](nestar_kernels::mesh::subcycle::Subcycle) or an
    /// [`Outcome`](nestar_kernels::mesh::subcycle::Outcome) and may carry values from call to call. Values that it
    /// returns for summation are added to the account of `attempts`.
    ///
    /// # Errors
    /// The account and `M` differ in the number of sums; the name of the account is in use.
    fn subcycle<F: FunctionFields, M: CellSubcycle>(
        &mut self,
        attempts: Subcycling,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) -> Result<(), Error>
    where
        M::Parameters: Send + Sync,
    {
        add_subcycle::<F, M>(self.selection(), attempts, parameters)
    }

    /// Lets systems of `Advance` measure the work of patches for the partition. With several ranks the
    /// [`Cost`](nestar_engine::mesh::Cost) of each patch is 1 at the start of a step of its level, and systems add their
    /// work relative to that of the other physics. Returns `false` on one rank, where patches have no cost.
    fn measure_costs(&mut self) -> bool {
        measure_costs(self.selection().sim)
    }

    /// Adds initial values: new patches of the initial hierarchy are set to the result of `M`, after the scenario has
    /// set the gas.
    fn initial<F: FunctionFields, M: CellMap>(
        &mut self,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        add_update::<F, M>("initial", self.selection(), Initialise::State, parameters);
    }

    /// Adds fluxes through cell faces after the gas is advanced. They are conservative across levels: the field `F`
    /// must be corrected by fluxes. The function reads the leading components of the field.
    fn flux<F: Field, M: FaceMap>(&mut self, parameters: impl Into<Parameters<M::Parameters>>)
    where
        M::Parameters: Send + Sync,
    {
        let parameters = parameters.into();
        let flow = move |rows: LevelRows, mut field: Write<F>| {
            field.flux::<M>(&rows, &parameters.at(rows.numbers_in_step()));
        };
        let StateSelection {
            sim,
            components,
            numbers,
        } = self.selection();
        let flow = IntoSystem::into_system(flow).with_name(format!("fluxes {}", M::ITEM.name));
        sim.system_in(Advance::Sources, flow)
            .in_sequence()
            .halo_width::<F>(M::REACH);
        let name = M::ITEM.name;
        sim.check_fields::<F>(name, move |field, _| match numbers {
            Some(_) => Err(format!("`{name}` gives fluxes and reads no derived inputs")),
            None => field.prepare_flux::<M>(&components),
        });
        catalogue_entry::<F>(sim, "fluxes", M::ITEM.name, M::DOC);
    }

    /// Adds a time-step limit: the smallest value of `M` in the cells of a level, in units of time. The run log shows
    /// `name`.
    fn limit<F: FunctionFields, M: CellValue>(
        &mut self,
        name: &'static str,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        let parameters = parameters.into();
        let mut selection = self.selection();
        selection.prepare::<F>(M::ITEM.name, Pool::prepare_reduction::<M>);
        let (components, numbers) = (selection.components, selection.numbers.take());
        let limit = move |mut rows: LevelRows,
                          field: Read<F::First>,
                          others: OtherHandles<F>,
                          mut limits: ResMut<StepLimits>| {
            rows.choose(components);
            let inputs = F::Others::read(&others).with_numbers(numbers.as_deref());
            let parameters = parameters.at(rows.numbers_in_step());
            limits.propose(name, field.reduce::<M>(&rows, inputs, &parameters));
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("limit {name}"));
        let sim = selection.sim;
        sim.system_in(Limit::Propose, limit)
            .in_sequence()
            .halo_width::<F::First>(M::REACH);
        catalogue_entry::<F::First>(sim, "limit", name, M::DOC).unit("time");
    }

    /// Adds a refinement criterion: cells for which `M` is `true` are refined, with the flag buffer of the deck.
    fn criterion<F: FunctionFields, M: CellMark>(
        &mut self,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) where
        M::Parameters: Send + Sync,
    {
        let parameters = parameters.into();
        let mut selection = self.selection();
        selection.prepare::<F>(M::ITEM.name, Pool::prepare_mark::<M>);
        let (components, numbers) = (selection.components, selection.numbers.take());
        let flag = move |mut rows: LevelRows,
                         field: Read<F::First>,
                         others: OtherHandles<F>,
                         settings: Res<Settings>,
                         mut patches: Patches<&mut RefinementFlags>| {
            rows.choose(components);
            let inputs = F::Others::read(&others).with_numbers(numbers.as_deref());
            let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
            let parameters = parameters.at(rows.numbers_in_step());
            let marked = field.mark::<M>(&rows, inputs, buffer, &parameters);
            for ((_, mut flags), sectors) in patches.iter_mut().zip(marked) {
                flags.refine_sectors(sectors);
            }
        };
        let flag = IntoSystem::into_system(flag).with_name(format!("criterion {}", M::ITEM.name));
        let sim = selection.sim;
        sim.system_in(Flag::Criteria, flag)
            .in_sequence()
            .halo_width::<F::First>(M::REACH);
        catalogue_entry::<F::First>(sim, "criterion", M::ITEM.name, M::DOC);
    }

    /// Adds a column of the diagnostics: `M` in all leaf cells, reduced. `.unit("mass")` sets the unit that lists show.
    fn column<F: FunctionFields, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) -> &mut CatalogueEntry
    where
        M::Parameters: Send + Sync,
    {
        let mut selection = self.selection();
        selection.prepare::<F>(M::ITEM.name, Pool::prepare_reduction::<M>);
        let StateSelection {
            sim,
            components,
            numbers,
        } = selection;
        let inputs = ColumnInputs {
            components,
            others: others_of::<F>,
            numbers,
        };
        DiagnosticColumns::add::<F::First, M>(&mut sim.world, inputs, name, reduce, parameters);
        catalogue_entry::<F::First>(sim, "column", name, M::DOC)
    }
}

/// Returns all fields of a list but the first, in a world in which they exist.
pub(crate) fn others_of<F: FunctionFields>(world: &World) -> InputList<'_> {
    let others = F::Others::of(world);
    others.unwrap_or_else(|field| panic!("no plugin registers the field `{field}`"))
}

/// Returns the gas model, which exists when plugins are built.
fn gas<'a>(sim: &'a Engine, what: &str) -> Result<&'a GasModel, Error> {
    sim.world.get_resource::<GasModel>().ok_or_else(|| {
        Error::Setup(format!(
            "the gas is not built yet: call `{what}` in the method `build` of the plugin"
        ))
    })
}

/// Adds an update by a cell function to a set.
pub(crate) fn add_update<F: FunctionFields, M: CellMap>(
    kind: &'static str,
    mut selection: StateSelection,
    set: impl StepSet,
    parameters: impl Into<Parameters<M::Parameters>>,
) where
    M::Parameters: Send + Sync,
{
    let parameters = parameters.into();
    selection.prepare::<F>(M::ITEM.name, Pool::prepare_update::<M>);
    let StateSelection {
        sim,
        components,
        numbers,
    } = selection;
    let update = move |mut rows: LevelRows, mut field: Write<F::First>, others: OtherHandles<F>| {
        rows.choose(components);
        let inputs = F::Others::read(&others).with_numbers(numbers.as_deref());
        field.update::<M>(&rows, inputs, &parameters.at(rows.numbers_in_step()));
    };
    let update = IntoSystem::into_system(update).with_name(format!("{kind} {}", M::ITEM.name));
    sim.system_in(set, update)
        .in_sequence()
        .halo_width::<F::First>(M::REACH);
    catalogue_entry::<F::First>(sim, kind, M::ITEM.name, M::DOC);
}

/// Checks that an update by `M` fits its fields, and starts to compile it for a device; for systems that call the function
/// themselves.
pub(crate) fn prepare_update<F: FunctionFields, M: CellMap>(sim: &mut Engine) {
    prepare_chosen_update::<F, M>(sim, Components::default());
}

/// Does the same for a function whose first state consists of `components`.
pub(crate) fn prepare_chosen_update<F: FunctionFields, M: CellMap>(
    sim: &mut Engine,
    components: Components,
) {
    let mut selection = sim.selection();
    selection.components = components;
    selection.prepare::<F>(M::ITEM.name, Pool::prepare_update::<M>);
}

/// Adds a function of field `F` to the catalogue.
fn catalogue_entry<'a, F: Field>(
    sim: &'a mut Engine,
    kind: &'static str,
    name: &str,
    doc: &str,
) -> &'a mut CatalogueEntry {
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    catalogue.add(kind, name, doc).of(F::NAME)
}

impl Register for Engine {
    fn selection(&mut self) -> StateSelection<'_> {
        StateSelection {
            sim: self,
            components: Components::default(),
            numbers: None,
        }
    }
}

impl Register for StateSelection<'_> {
    fn selection(&mut self) -> StateSelection<'_> {
        StateSelection {
            sim: self.sim,
            components: self.components,
            numbers: self.numbers.clone(),
        }
    }
}

/// Names of the sources of gravity, in the order in which they are added.
#[derive(Resource, Default)]
pub(crate) struct MatterSources(pub Vec<String>);

/// A function that adds the density of some matter on the given level to [`Matter`](crate::fields::Matter).
pub trait MatterSource<M>:
    SystemParamFunction<M, In = In<usize>, Out = Result<(), Error>, Param: 'static> + Clone
{
}

impl<M, F> MatterSource<M> for F where
    F: SystemParamFunction<M, In = In<usize>, Out = Result<(), Error>, Param: 'static> + Clone
{
}

/// Adds sources of gravity.
pub trait GravitySources {
    /// Adds matter to the source of gravity: `source` adds its density to [`Matter`](crate::fields::Matter) on the
    /// given level, after the gas has set the field. It calls [`LevelRows::visit`] with the level and works on its own
    /// rows. The order of a step lists it as `deposit NAME` in the sets `Deposit`. It has no effect without a table
    /// `[gravity]`. Call it in `Plugin::build`.
    ///
    /// ```text
    /// sim.gravity_source("dust", |In(level): In<usize>, mut rows: LevelRows, dust: Read<Dust>, mut matter: Write<Matter>| {
    ///     rows.visit(level);
    ///     matter.update::<add>(&rows, &dust, &[]);       // fn add<R: Real>(u: (R, R)) -> R { u.0 + u.1 }
    ///     Ok(())
    /// });
    /// ```
    fn gravity_source<M: 'static>(&mut self, name: &str, source: impl MatterSource<M>);
}

impl GravitySources for Engine {
    fn gravity_source<M: 'static>(&mut self, name: &str, source: impl MatterSource<M>) {
        let Some(mut sources) = self.world.get_resource_mut::<MatterSources>() else {
            return;
        };
        sources.0.push(name.into());
        let initial = IntoSystem::into_system(on_current_level(source.clone()));
        let initial = initial.with_name(format!("deposit initial {name}"));
        add_deposit(self, Ready::Deposit, initial);
        let in_step = IntoSystem::into_system(on_current_level(source.clone()));
        let in_step = in_step.with_name(format!("deposit {name}"));
        add_deposit(self, Advance::Deposit, in_step);
        let aligned = IntoSystem::into_system(on_aligned_levels(source));
        let aligned = aligned.with_name(format!("deposit {name} on aligned levels"));
        add_deposit(self, Aligned::Deposit, aligned);
    }
}

fn add_deposit<M>(
    sim: &mut Engine,
    set: impl StepSet,
    deposit: impl StatelessSystem<Result<(), Error>, M>,
) {
    sim.system_in(set, deposit).in_sequence().keeps_particles();
}

/// Returns a system that calls `source` with the current level.
fn on_current_level<M: 'static, F: MatterSource<M>>(
    mut source: F,
) -> impl FnMut(Res<LevelClock>, ParamSet<(F::Param,)>) -> Result<(), Error> {
    move |clock: Res<LevelClock>, mut parameters: ParamSet<(F::Param,)>| {
        source.run(clock.level, parameters.p0())
    }
}

/// Returns a system that calls `source` with all aligned levels, coarsest first.
fn on_aligned_levels<M: 'static, F: MatterSource<M>>(
    mut source: F,
) -> impl FnMut(Res<AlignedLevels>, ParamSet<(F::Param,)>) -> Result<(), Error> {
    move |aligned: Res<AlignedLevels>, mut parameters: ParamSet<(F::Param,)>| {
        let mut levels = aligned.coarsest..=aligned.finest.max(aligned.coarsest);
        levels.try_for_each(|level| source.run(level, parameters.p0()))
    }
}
