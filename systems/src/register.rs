//! Registers functions of cells and faces as sources, fluxes, time-step limits, refinement criteria, initial values and
//! diagnostics columns. Each system is named by its kind and the function, such as `split source cool`.

use crate::fields::GasModel;
use crate::order::{Advance, Flag, Initialise, Limit, Split};
use crate::subcycling::{Subcycling, subcycle_in};
use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;
use nestar_engine::comm::{DiagnosticColumns, Reduce};
use nestar_engine::data::{
    CellMap, CellMark, CellSubcycle, CellValue, Components, DerivedInputs, FaceMap, Field,
    LevelRows,
};
use nestar_engine::mesh::RefineRequests;
use nestar_engine::step::{Catalogue, CatalogueEntry, Read, Settings, StepLimits, StepSet, Write};
use nestar_engine::{Engine, Error};
use std::sync::Arc;

/// Adds `#[device]` functions of a cell or face to a simulation. The functions read field `F` on the host or device
/// that holds it. Their parameters are constant for the whole run; place, time, width and step come with the cell.
/// Functions of one set run in the order in which they were added.
pub trait Register {
    /// Returns the simulation and the components of a field that form the state of the functions.
    fn parts(&mut self) -> (&mut Engine, Components);

    /// Selects functions of the gas and of these scalars: their state has the five components of the gas, then the
    /// scalars in this order.
    ///
    /// # Errors
    /// The gas has no such scalar, or is not built yet.
    fn with_scalars(&mut self, names: &[&str]) -> Result<WithScalars<'_>, Error> {
        let (sim, _) = self.parts();
        let components = gas(sim, "with_scalars")?.components(names)?;
        Ok(WithScalars { sim, components })
    }

    /// Selects functions, as [`Register::with_scalars`], that see the gas in its rest frame. With `hydro.dual_energy`
    /// they get the internal energy instead of the total energy, and zero momentum; otherwise the gas as it is. They
    /// must not change density and momentum.
    ///
    /// # Errors
    /// As [`Register::with_scalars`].
    fn at_rest(&mut self, names: &[&str]) -> Result<WithScalars<'_>, Error> {
        let (sim, _) = self.parts();
        let numbers = gas(sim, "at_rest")?.component_numbers_at_rest(names)?;
        let components = Components::of(&numbers);
        Ok(WithScalars { sim, components })
    }

    /// Adds a source: each cell is set to the result of `M` once per step, after the gas is advanced.
    fn source<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        add_map::<F, M>("source", self.parts(), Advance::Sources, parameters);
    }

    /// Adds a split source: it acts over half a step before and half a step after the gas is advanced (Strang 1968),
    /// which is of second order in time.
    fn split_source<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        add_map::<F, M>("split source", self.parts(), Split::Sources, parameters);
    }

    /// Adds a sub-cycled source: `M` is called repeatedly in a cell until it is done, once per step, after the gas is
    /// advanced. It returns a [`Subcycle`](nestar_kernels::mesh::subcycle::Subcycle) or an
    /// [`Outcome`](nestar_kernels::mesh::subcycle::Outcome) and may carry values from call to call. Values that it
    /// returns for summation are added to the account of `attempts`.
    ///
    /// # Errors
    /// The account and `M` differ in the number of sums; the name of the account is in use.
    fn subcycle<F: Field, M: CellSubcycle>(
        &mut self,
        attempts: Subcycling,
        parameters: M::Parameters,
    ) -> Result<(), Error>
    where
        M::Parameters: Send + Sync,
    {
        subcycle_in::<F, M>(self.parts(), attempts, None, parameters)
    }

    /// Adds initial values: new patches of the initial hierarchy are set to the result of `M`, after the scenario has
    /// set the gas.
    fn initial<F: Field, M: CellMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        add_map::<F, M>("initial", self.parts(), Initialise::State, parameters);
    }

    /// Adds fluxes through cell faces after the gas is advanced. They are conservative across levels: the field `F`
    /// must be corrected by fluxes.
    fn fluxes<F: Field, M: FaceMap>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let flow = move |rows: LevelRows, mut field: Write<F>| {
            field.flux::<M>(&rows, &parameters);
        };
        let (sim, components) = self.parts();
        let flow = IntoSystem::into_system(flow).with_name(format!("fluxes {}", M::ITEM.name));
        sim.system_in(Advance::Sources, flow)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits_flux::<M>(&components));
        catalogue_entry::<F>(sim, "fluxes", M::ITEM.name, M::DOC);
    }

    /// Adds a time-step limit: the smallest value of `M` in the cells of a level, in units of time. The run log shows
    /// `name`.
    fn limit<F: Field, M: CellValue>(&mut self, name: &'static str, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let limit = move |mut rows: LevelRows, field: Read<F>, mut limits: ResMut<StepLimits>| {
            rows.choose(components);
            limits.propose(name, field.reduce::<M>(&rows, (), &parameters));
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("limit {name}"));
        sim.system_in(Limit::Propose, limit)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        catalogue_entry::<F>(sim, "limit", name, M::DOC).unit("time");
    }

    /// Adds a limit, as [`Register::limit`], by a function that reads `numbers` as the state of a second field.
    fn limit_by<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        numbers: Arc<DerivedInputs>,
        parameters: M::Parameters,
    ) where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let limit = move |mut rows: LevelRows, field: Read<F>, mut limits: ResMut<StepLimits>| {
            rows.choose(components);
            limits.propose(name, field.reduce::<M>(&rows, &*numbers, &parameters));
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("limit {name}"));
        sim.system_in(Limit::Propose, limit);
        catalogue_entry::<F>(sim, "limit", name, M::DOC).unit("time");
    }

    /// Adds a refinement criterion: cells for which `M` is `true` are refined, with the flag buffer of the deck.
    fn criterion<F: Field, M: CellMark>(&mut self, parameters: M::Parameters)
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        let flag = move |mut rows: LevelRows,
                         field: Read<F>,
                         settings: Res<Settings>,
                         mut requests: ResMut<RefineRequests>| {
            rows.choose(components);
            let buffer = settings.mesh.flag_buffer[rows.level()] as usize;
            let marked = field.mark::<M>(&rows, (), buffer, &parameters);
            for (&row, sectors) in rows.rows().iter().zip(marked) {
                requests.add(row, sectors);
            }
        };
        let flag = IntoSystem::into_system(flag).with_name(format!("criterion {}", M::ITEM.name));
        sim.system_in(Flag::Criteria, flag)
            .halo_width::<F>(M::REACH);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        catalogue_entry::<F>(sim, "criterion", M::ITEM.name, M::DOC);
    }

    /// Adds a column of the diagnostics: `M` in all leaf cells, reduced. `.unit("mass")` sets the unit that lists show.
    fn column<F: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) -> &mut CatalogueEntry
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        DiagnosticColumns::add::<F, M>(&mut sim.world, components, name, reduce, parameters);
        sim.check_field::<F>(M::ITEM.name, move |field| field.fits::<M>(&components));
        catalogue_entry::<F>(sim, "column", name, M::DOC)
    }

    /// Adds a column, as [`Register::column`], by a function of the states of two fields.
    fn column_of_two<F: Field, G: Field, M: CellValue>(
        &mut self,
        name: &'static str,
        reduce: Reduce,
        parameters: M::Parameters,
    ) -> &mut CatalogueEntry
    where
        M::Parameters: Send + Sync,
    {
        let (sim, components) = self.parts();
        DiagnosticColumns::add_of_two::<F, G, M>(
            &mut sim.world,
            components,
            name,
            reduce,
            parameters,
        );
        catalogue_entry::<F>(sim, "column", name, M::DOC)
    }
}

/// Returns the gas model, which exists when plugins are built.
fn gas<'a>(sim: &'a Engine, what: &str) -> Result<&'a GasModel, Error> {
    sim.world.get_resource::<GasModel>().ok_or_else(|| {
        Error::Setup(format!(
            "the gas is not built yet: call `{what}` in the method `build` of the plugin"
        ))
    })
}

/// Adds a cell function to a set.
pub(crate) fn add_map<F: Field, M: CellMap>(
    kind: &'static str,
    (sim, components): (&mut Engine, Components),
    set: impl StepSet,
    parameters: M::Parameters,
) where
    M::Parameters: Send + Sync,
{
    let map = move |mut rows: LevelRows, mut field: Write<F>| {
        rows.choose(components);
        field.update::<M>(&rows, (), &parameters);
    };
    let map = IntoSystem::into_system(map).with_name(format!("{kind} {}", M::ITEM.name));
    sim.system_in(set, map).halo_width::<F>(M::REACH);
    sim.check_field::<F>(M::ITEM.name, move |field| {
        field.fits_update::<M>(&components)
    });
    catalogue_entry::<F>(sim, kind, M::ITEM.name, M::DOC);
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
    fn parts(&mut self) -> (&mut Engine, Components) {
        (self, Components::default())
    }
}

/// A simulation for functions of the gas with some of its scalars; see [`Register::with_scalars`].
pub struct WithScalars<'a> {
    sim: &'a mut Engine,
    components: Components,
}

impl Register for WithScalars<'_> {
    fn parts(&mut self) -> (&mut Engine, Components) {
        (self.sim, self.components)
    }
}

/// A system that adds the density of some matter on a level to [`Matter`](crate::fields::Matter).
pub(crate) type MatterSource = BoxedSystem<In<usize>, Result<(), Error>>;

/// Sources of gravity, in the order in which they are added.
#[derive(Resource, Default)]
pub(crate) struct MatterSources(pub Vec<MatterSource>);

/// Initialises a source of gravity so that it can be run.
pub(crate) fn matter_source<M>(
    world: &mut World,
    system: impl IntoSystem<In<usize>, Result<(), Error>, M>,
) -> MatterSource {
    let mut system: MatterSource = Box::new(IntoSystem::into_system(system));
    system.initialize(world);
    system
}

/// Adds sources of gravity.
pub trait GravitySources {
    /// Adds matter to the source of gravity: `system` adds its density to [`Matter`](crate::fields::Matter) on the
    /// given level, after the gas has set the field. It calls [`LevelRows::visit`] with the level and works on its own
    /// rows. It has no effect without a table `[gravity]`. Call it in `Plugin::build`.
    ///
    /// ```text
    /// sim.gravity_source(|In(level): In<usize>, mut rows: LevelRows, dust: Read<Dust>, mut matter: Write<Matter>| {
    ///     rows.visit(level);
    ///     matter.update::<add>(&rows, &dust, &[]);       // fn add<R: Real>(u: (R, R)) -> R { u.0 + u.1 }
    ///     Ok(())
    /// });
    /// ```
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>);
}

impl GravitySources for Engine {
    fn gravity_source<M>(&mut self, system: impl IntoSystem<In<usize>, Result<(), Error>, M>) {
        if self.world.contains_resource::<MatterSources>() {
            let system = matter_source(&mut self.world, system);
            self.world.resource_mut::<MatterSources>().0.push(system);
        }
    }
}
